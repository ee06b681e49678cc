/* SPDX-License-Identifier: MIT */
/*
 * Foreign containers of device code, one file each behind one table.
 *
 * A container is a run of bytes in a source (a .hip_fatbin section, a file):
 * a plain offload bundle, a compressed one (CCOB), a bare code object.  Its
 * payload holds the images: the bytes themselves, or what they decompress to.
 * Adding a format is adding a file and a row.
 */
#ifndef KP_FORMAT_H
#define KP_FORMAT_H

#include "../error.h"
#include "../file.h"
#include "../span.h"
#include "../target.h"

struct kp_format;

/* One container, found but not decoded. */
struct kp_container {
	const struct kp_format *format;
	uint64_t offset;       /* in the source */
	uint64_t size;         /* bytes in the source */
	uint64_t payload_size; /* bytes the images' offsets refer to */
	size_t first_image;    /* its images are [first_image, first_image + n_images) */
	size_t n_images;
};

/* One entry of a container. */
struct kp_image {
	size_t container; /* 0-based, in file order */
	char *id;         /* bundle entry ID as stored; NULL: bare code object */
	bool host;        /* the host's entry */
	char arch[KP_TARGET_TEXT_MAX]; /* canonical target ID, "" when it states none */
	uint64_t offset;               /* in the container's payload */
	uint64_t size;
};

/* All containers of a source, in file order, and their images in stored order. */
struct kp_containers {
	struct kp_container *items;
	size_t count;
	struct kp_image *images;
	size_t n_images;
};

/* A container's decoded bytes. */
struct kp_payload {
	struct kp_source source; /* what the images' offsets refer to */
	void *heap;              /* owned, or NULL when the source is the input itself */
};

struct kp_format {
	const char *name; /* "bundle", "ccob", "code-object" */

	/* Could a container of this format begin with HEAD (up to 64 bytes)? */
	bool (*probe)(struct kp_span head);

	/*
	 * Read the container that begins at OFF of SRC: fill its size and payload_size
	 * and append its images (kp_containers_add_image).
	 */
	kpack_error_t (*parse)(const struct kp_source *src, uint64_t off,
			       struct kp_container *c, struct kp_containers *list,
			       struct kpackx_error *why);

	/* Decode the payload; NULL: the payload is the container's own bytes. */
	kpack_error_t (*load)(const struct kp_source *src, const struct kp_container *c,
			      struct kp_payload *out, struct kpackx_error *why);
};

extern const struct kp_format kp_format_bundle;
extern const struct kp_format kp_format_ccob;
extern const struct kp_format kp_format_code_object;

/* The format whose container begins with HEAD, or NULL. */
const struct kp_format *kp_format_probe(struct kp_span head);

/*
 * Find every container of SRC.  They may stand in any mix and at any alignment with zero
 * bytes between and after them; anything else is INVALID_FORMAT, naming the
 * offset.  A source of zero bytes only has no containers.  Images in compressed
 * containers are listed without decoding more than their header.
 * On failure OUT is empty.
 */
kpack_error_t kp_containers_scan(const struct kp_source *src, struct kp_containers *out,
				 struct kpackx_error *why);
void kp_containers_fini(struct kp_containers *list);

/* For parsers: append an image with entry ID (data NULL: none); arch and host follow from it. */
kpack_error_t kp_containers_add_image(struct kp_containers *list, struct kp_container *c,
				      struct kp_span id, uint64_t offset, uint64_t size,
				      struct kpackx_error *why);

/* Decode container C of SRC.  Thread-safe; the caller frees it with kp_payload_fini. */
kpack_error_t kp_container_load(const struct kp_source *src, const struct kp_container *c,
				struct kp_payload *out, struct kpackx_error *why);
void kp_payload_fini(struct kp_payload *payload);

/*
 * Entry type of an object by its first bytes (64 are enough): "hsaco", "cubin", "bc",
 * "spv", "tileirbc", "ptx"; "co" for anything else.  Static.
 */
const char *kp_object_type(struct kp_span head);

#endif
