/* SPDX-License-Identifier: MIT */
/*
 * The content of .rocm_kpack_layout: how .hip_fatbin was made up, so that it can be made
 * again from the archives, and the hash of every object, which ties a binary to them.
 *
 * It is one MessagePack map (layout_record.h), compressed with zstd or not; unknown keys
 * are skipped.
 */
#ifndef KP_CORE_LAYOUT_LAYOUT_H
#define KP_CORE_LAYOUT_LAYOUT_H

#include "core/binary/fatbin.h"
#include "core/base/file.h"

/*
 * Bytes of an XXH3-128, in canonical order, that are kept of each object: enough to tell
 * one build from another, which is all they are for; whole ones would be most of the section.
 */
#define KP_LAYOUT_HASH 6

/* An entry of a container as it was. */
struct kp_layout_image {
	uint32_t container;
	const char *id; /* bundle entry ID; NULL: bare code object */
	bool host;      /* its bytes are in the layout, not in an archive */
	char arch[KP_TARGET_TEXT_MAX]; /* canonical, as in the archive; "" for the host */
	uint64_t offset; /* in the container's payload; of an empty one, what it says */
	uint64_t size;
	const uint8_t *bytes; /* host: size of them, or NULL when there are none */
	bool has_xxh3;
	uint8_t xxh3[KP_LAYOUT_HASH];
};

struct kp_layout_container; /* layout_record.h: kind, place, how it was compressed */

struct kp_layout {
	uint64_t size; /* bytes of .hip_fatbin */
	struct kp_layout_container *containers;
	size_t n_containers;
	struct kp_layout_image *images; /* by container, as stored */
	size_t n_images;
	uint32_t *wrapper_container; /* per wrapper */
	size_t n_wrappers;
	struct kp_layout_heap *heap; /* owned: what the pointers above lead to */
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
 * same bytes.  Of plain ones whose hashes are known only what lies between the images is
 * read.
 * NOT_IMPLEMENTED: what cannot be described - a wrapper that leads to no container, more
 * than KP_LAYOUT_INLINE_MAX bytes that no archive has, more than KP_LAYOUT_SECTION_MAX in
 * all, where what several entries share counts for each.  INVALID_FORMAT, DECOMPRESSION_FAILED: a compressed container that is broken.
 * IO_ERROR: the file changed, or cannot be read.  OUT_OF_MEMORY.
 */
kpack_error_t kp_layout_make(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
			     const bool *known, bool compute, struct kp_layout_bytes *out,
			     struct kpackx_error *why);

/*
 * Read it back; BYTES are not needed afterwards.  OUT is untouched on failure.
 * MSGPACK_PARSE_FAILED: no MessagePack, or cut short.  INVALID_METADATA: what cannot be.
 * UNSUPPORTED_VERSION: a newer version; NOT_IMPLEMENTED: a format or a method we do not
 * know.
 */
kpack_error_t kp_layout_parse(struct kp_span bytes, struct kp_layout *out,
			      struct kpackx_error *why);
/* The same from a file: all of SECTION.  IO_ERROR too. */
kpack_error_t kp_layout_read(const struct kp_source *section, struct kp_layout *out,
			     struct kpackx_error *why);
void kp_layout_fini(struct kp_layout *layout);

/* Indices (the n of KEY#n) whose objects are those of CONTAINER: the first one. */
uint32_t kp_layout_index(const struct kp_layout *layout, uint32_t container);

/*
 * Making the section again.  Objects come from the caller: HAVE says per image whether it
 * can be had, READ gives its bytes (image->size of them), which are compared with the
 * image's xxh3.
 */
struct kp_layout_source {
	const bool *have; /* per image; host and empty images need not be set */
	kpack_error_t (*read)(void *arg, size_t image, void *buf,
			      struct kpackx_error *why);
	void *arg;
};

/* Where a container is that is not: a bare code object that could not be had. */
#define KP_LAYOUT_NOWHERE UINT64_MAX

/* What will be written. */
struct kp_layout_plan {
	uint64_t size; /* bytes of the section */
	uint64_t
		*wrapper_offset; /* per wrapper; KP_LAYOUT_NOWHERE: it can lead nowhere */
	uint64_t *container_offset; /* per container; or KP_LAYOUT_NOWHERE */
	size_t n_dropped;           /* images that could not be had */
	size_t n_unpacked; /* compressed containers that become plain bundles, because encoding
			      them again does not give the same bytes */
	bool exact;        /* the section will be what it was, bit for bit */
	struct kp_layout_place *places; /* per container */
};

/*
 * Decide.  Containers stay where they were, unless one needs more room than there is:
 * then all are laid out anew, aligned as they were, and the section may grow.  A bundle
 * some of whose images are not there is made anew without them; unless it is compressed,
 * it never needs more room.
 * Whether a bare code object that is missing may be left out (KP_LAYOUT_NOWHERE) is the
 * caller's business.  OUT is untouched on failure.
 * INVALID_METADATA: an image N is not the object that was packed.  OUT_OF_MEMORY, and
 * what READ returns (a compressed container must be encoded to know whether it comes out
 * the same).
 */
kpack_error_t kp_layout_plan(const struct kp_layout *layout,
			     const struct kp_layout_source *source,
			     struct kp_layout_plan *out, struct kpackx_error *why);
void kp_layout_plan_fini(struct kp_layout_plan *plan);

/*
 * Write the section to OUT at OFFSET as planned, never outside
 * [OFFSET, OFFSET + plan->size).  Between what is described nothing is written but the
 * last byte: OUT must have nothing there yet.
 * One object is in memory at a time, or one compressed container.
 * INVALID_METADATA, OUT_OF_MEMORY, and what READ and writing return; IO_ERROR: encoding
 * gave another size than when it was planned.
 */
kpack_error_t kp_layout_write(const struct kp_layout *layout,
			      const struct kp_layout_plan *plan,
			      const struct kp_layout_source *source,
			      struct kp_outfile *out, uint64_t offset,
			      struct kpackx_error *why);

#endif
