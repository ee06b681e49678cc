/* SPDX-License-Identifier: MIT */
/*
 * Foreign formats of device code, one file each behind one table.
 *
 * A container is a run of bytes in a source (a .hip_fatbin section, a file): an offload
 * bundle, a compressed one (CCOB), an offload binary, an archive, a host ELF.  Its payload
 * - the bytes themselves, or what they decompress to - holds the images.  An object (a code
 * object, a cubin, PTX, bitcode ...) is a container with one image, itself, where it stands
 * alone.  Images can be containers in turn: nest.h.
 * Adding a format is adding a file and a row.
 */
#ifndef KP_CORE_FORMAT_FORMAT_H
#define KP_CORE_FORMAT_FORMAT_H

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/span.h"
#include "core/target/target.h"
#include "pairs.h"

/* First bytes by which every format is known, where there are as many. */
#define KP_HEAD_SIZE 4096

/* What is said of an image by that name, of LTO-IR in CUDA's fat binaries. */
#define KP_PAIR_IMAGE_KIND "image kind"
#define KP_LTO_IR "lto-ir"

/* No container, no image. */
#define KP_NOWHERE SIZE_MAX

struct kp_format;
struct kp_object;

/* One container, found but not decoded. */
struct kp_container {
	const struct kp_format *format;
	size_t inside;   /* the image that contains it; KP_NOWHERE: the source itself */
	size_t next;     /* the next container among the same bytes, or KP_NOWHERE */
	uint64_t offset; /* in that image, or in the source */
	uint64_t size;   /* bytes there */
	uint64_t payload_size; /* bytes the images' offsets refer to */
	size_t first_image;    /* its images are [first_image, first_image + n_images) */
	size_t n_images;
};

/* One entry of a container. */
struct kp_image {
	size_t container; /* 0-based, in file order; what is inside follows its container */
	char *id; /* as stored: bundle entry ID, name of a section or member; NULL: none */
	bool host;    /* the host's entry */
	bool stream;  /* holds containers one after another, and nothing else */
	bool damaged; /* cannot be decoded, as kp_nest_salvage found */
	char kind
		[16]; /* the compiler's offload kind, as in entry IDs: "hip", "openmp", "cuda" ...; or "" */
	char arch[KP_TARGET_TEXT_MAX]; /* canonical target ID, "" when it states none */
	uint64_t offset;               /* in the container's payload */
	uint64_t size;
	size_t inside; /* the first container inside it (kp_nest_scan), or KP_NOWHERE */
	struct kp_pairs pairs; /* what the container says of it besides, as stored */
};

/* All containers of a source, in file order, and their images in stored order. */
struct kp_containers {
	struct kp_container *items;
	size_t count;
	struct kp_image *images;
	size_t n_images;
	size_t id_bytes; /* of all images' IDs */
};

/* A container's decoded bytes. */
struct kp_payload {
	struct kp_source source; /* what the images' offsets refer to */
	void *heap;              /* owned, or NULL when the source is the input itself */
};

/*
 * Told of image NUMBER of a container, which cannot be decoded for WHY.  True: it is left out,
 * and zeros stand in the payload for it.
 */
typedef bool kp_image_fault(void *arg, size_t number, const struct kpackx_error *why);

struct kp_format {
	const char *name; /* "bundle", "ccob", "code-object" ... */
	const char
		*type; /* of an object: its entry type, "hsaco" ...; NULL: a container */
	bool in_hip_fatbin; /* may stand in .hip_fatbin */

	/* Could a container of this format begin with HEAD (up to KP_HEAD_SIZE bytes)? */
	bool (*probe)(struct kp_span head);

	/*
	 * Read the container that begins at OFF of SRC: fill its size and payload_size
	 * and append its images (kp_containers_add_image).
	 */
	kpack_error_t (*parse)(const struct kp_source *src, uint64_t off,
			       struct kp_container *c, struct kp_containers *list,
			       struct kpackx_error *why);

	/* Read as much as can be of one that parse() refuses; NULL: there is no such way. */
	kpack_error_t (*salvage)(const struct kp_source *src, uint64_t off,
				 struct kp_container *c, struct kp_containers *list,
				 struct kpackx_error *why);

	/* Decode the payload; NULL: the payload is the container's own bytes. */
	kpack_error_t (*load)(const struct kp_source *src, const struct kp_container *c,
			      struct kp_payload *out, struct kpackx_error *why);
	/* The same where each image is decoded by itself: FAULT says which to leave out. */
	kpack_error_t (*load_most)(const struct kp_source *src,
				   const struct kp_container *c, kp_image_fault *fault,
				   void *arg, struct kp_payload *out,
				   struct kpackx_error *why);

	/* What an object records of itself (object.h); NULL: nothing is known. */
	kpack_error_t (*describe)(const struct kp_source *src, struct kp_object *out,
				  struct kpackx_error *why);
};

extern const struct kp_format kp_format_bundle;
extern const struct kp_format kp_format_ccob;
extern const struct kp_format kp_format_text_bundle;
extern const struct kp_format kp_format_offload_binary;
extern const struct kp_format kp_format_archive; /* ar: static, heterogeneous */
extern const struct kp_format kp_format_host_elf;
extern const struct kp_format kp_format_code_object;
extern const struct kp_format kp_format_fatbin; /* CUDA's */
extern const struct kp_format kp_format_cubin;
extern const struct kp_format kp_format_ptx;
extern const struct kp_format kp_format_tileir;
extern const struct kp_format kp_format_bitcode;
extern const struct kp_format kp_format_spirv;

/* The format whose container begins with HEAD, or NULL. */
const struct kp_format *kp_format_probe(struct kp_span head);

/*
 * Find every container of SRC, which is what stands in .hip_fatbin: bundles, plain and
 * compressed, and code objects, in any mix and at any alignment with zero bytes between and
 * after them; anything else is INVALID_FORMAT, naming the offset.  A source of zero bytes
 * only has no containers.  Images in compressed containers are listed without decoding more
 * than their header, and images are not looked into.
 * On failure OUT is empty.
 */
kpack_error_t kp_containers_scan(const struct kp_source *src, struct kp_containers *out,
				 struct kpackx_error *why);
void kp_containers_fini(struct kp_containers *list);

/*
 * For parsers: append an image with ID (data NULL: none), of which kind, arch and host follow
 * when it is a bundle entry ID; set them afterwards where they follow from something else.
 */
kpack_error_t kp_containers_add_image(struct kp_containers *list, struct kp_container *c,
				      struct kp_span id, uint64_t offset, uint64_t size,
				      struct kpackx_error *why);

/* For scans: the steps of kp_containers_scan. */
kpack_error_t kp_skip_zeros(const struct kp_source *src, uint64_t *pos,
			    struct kpackx_error *why);
kpack_error_t kp_containers_add(const struct kp_source *src, uint64_t off,
				const struct kp_format *format, size_t inside,
				struct kp_containers *list, struct kpackx_error *why);
/* What can be read of the one that kp_containers_add refuses there. */
kpack_error_t kp_containers_salvage(const struct kp_source *src, uint64_t off,
				    const struct kp_format *format, size_t inside,
				    struct kp_containers *list, struct kpackx_error *why);

/*
 * Decode container C; SRC is what its offset refers to.  Thread-safe; the caller frees it
 * with kp_payload_fini.
 */
kpack_error_t kp_container_load(const struct kp_source *src, const struct kp_container *c,
				struct kp_payload *out, struct kpackx_error *why);
/*
 * As kp_format_find, but images that cannot be decoded are reported to FAULT, which may
 * leave them out.
 */
kpack_error_t kp_container_load_most(const struct kp_source *src,
				     const struct kp_container *c, kp_image_fault *fault,
				     void *arg, struct kp_payload *out,
				     struct kpackx_error *why);
/*
 * Decode all of container NUMBER of LIST wherever it is; SRC is the scanned source.  What it
 * is inside of is decoded first, and let go.
 */
kpack_error_t kp_containers_load(const struct kp_source *src,
				 const struct kp_containers *list, size_t number,
				 struct kp_payload *out, struct kpackx_error *why);
void kp_payload_fini(struct kp_payload *payload);

/*
 * Entry type of an object by its first bytes (KP_HEAD_SIZE are enough): "hsaco", "cubin",
 * "bc", "spv", "tileirbc", "ptx"; "co" for anything else.  Static.
 */
const char *kp_object_type(struct kp_span head);

/*
 * The kind of IMAGE, which begins with HEAD: "ltoir" where its container says so and the
 * bytes do not.
 */
const char *kp_image_type(const struct kp_image *image, struct kp_span head);

#endif
