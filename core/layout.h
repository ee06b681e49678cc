/* SPDX-License-Identifier: MIT */
/*
 * The content of .rocm_kpack_layout: how .hip_fatbin was made up, so that it can be made
 * again from the archives, and the hash of every object, which ties a binary to them.
 *
 * It is one MessagePack map; unknown keys are skipped.
 */
#ifndef KP_LAYOUT_H
#define KP_LAYOUT_H

#include "fatbin.h"
#include "file.h"

/* An entry of a container as it was. */
struct kp_layout_image {
	uint32_t container;
	char *id;   /* bundle entry ID; NULL: bare code object */
	bool host;  /* its bytes are in the layout, not in an archive */
	char arch[KP_TARGET_TEXT_MAX]; /* canonical, as in the archive; "" for the host */
	uint64_t size;
	bool has_xxh3;
	uint8_t xxh3[16]; /* XXH3-128 of the bytes, canonical order */
};

struct kp_layout_container; /* inside: kind, place, header, how it was compressed */

struct kp_layout {
	uint64_t size; /* bytes of .hip_fatbin */
	struct kp_layout_container *containers;
	size_t n_containers;
	struct kp_layout_image *images; /* by container, as stored */
	size_t n_images;
	uint32_t *wrapper_container; /* per wrapper */
	size_t n_wrappers;
	void *heap; /* owned */
};

/* Encoded bytes on the heap; free() them. */
struct kp_layout_bytes {
	uint8_t *data;
	size_t size;
};

/*
 * Describe FAT (kind ELF).  XXH3 may be NULL or has 16 bytes per image of
 * FAT->containers; KNOWN says which are set.  What is not is left out when COMPUTE is
 * false (an image that is not packed), else read and hashed here.
 * Compressed containers are decoded and encoded again to find whether that gives the
 * same bytes.
 */
kpack_error_t kp_layout_make(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
			     const bool *known, bool compute, struct kp_layout_bytes *out,
			     struct kpackx_error *why);

/* Read it back.  INVALID_METADATA for anything that cannot be; OUT untouched then. */
kpack_error_t kp_layout_parse(struct kp_span bytes, struct kp_layout *out,
			      struct kpackx_error *why);
void kp_layout_fini(struct kp_layout *layout);

/* Indices (the n of KEY#n) whose objects are those of CONTAINER: the first one. */
uint32_t kp_layout_index(const struct kp_layout *layout, uint32_t container);

/*
 * Making the section again.  Objects come from the caller: HAVE says per image whether it
 * can be had, READ gives its bytes (image->size of them).
 */
struct kp_layout_source {
	const bool *have; /* per image; host images need not be set */
	kpack_error_t (*read)(void *arg, size_t image, void *buf, struct kpackx_error *why);
	void *arg;
};

/* What will be written. */
struct kp_layout_plan {
	uint64_t size;              /* bytes of the section */
	uint64_t *wrapper_offset;   /* per wrapper */
	uint64_t *container_offset; /* per container */
	size_t n_dropped;           /* images that could not be had */
	size_t n_unpacked; /* compressed containers that become plain bundles, because encoding
			      them again does not give the same bytes */
	bool exact;        /* the section will be what it was, bit for bit */
	void *heap;
};

/*
 * Decide.  Containers stay where they were as long as everything fits in the old size;
 * a bundle some of whose images are not there is made anew without them.
 * INVALID_METADATA, OUT_OF_MEMORY, and what READ returns (a compressed container
 * must be encoded to know whether it comes out the same).
 */
kpack_error_t kp_layout_plan(const struct kp_layout *layout,
			     const struct kp_layout_source *source,
			     struct kp_layout_plan *out, struct kpackx_error *why);
void kp_layout_plan_fini(struct kp_layout_plan *plan);

/* Write the section to OUT at OFFSET as planned. */
kpack_error_t kp_layout_write(const struct kp_layout *layout,
			      const struct kp_layout_plan *plan,
			      const struct kp_layout_source *source,
			      struct kp_outfile *out, uint64_t offset,
			      struct kpackx_error *why);

#endif
