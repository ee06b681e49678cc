/* SPDX-License-Identifier: MIT */
/*
 * The content of .rocm_kpack_layout: the structure of .hip_fatbin, so that the section
 * can be rebuilt from the archives, and the hash of every object, which ties the binary
 * to them.
 *
 * It is one MessagePack map (internal.h), optionally compressed with zstd; unknown keys
 * are skipped.
 */
#ifndef KP_CORE_LAYOUT_LAYOUT_H
#define KP_CORE_LAYOUT_LAYOUT_H

#include "core/elf/host_fatbin.h"
#include "core/base/file.h"

/*
 * Bytes of an object's XXH3-128, in canonical order, that are kept: enough to distinguish
 * builds, which is their only purpose.  Whole hashes would be most of the section.
 */
#define KP_LAYOUT_HASH 6

/* An entry of an original container. */
struct kp_layout_image {
	uint32_t container;
	const char *id; /* bundle entry ID; NULL: bare code object */
	bool host;      /* its bytes are in the layout, not in an archive */
	char arch[KP_TARGET_TEXT_MAX]; /* canonical, as in the archive; "" for the host */
	uint64_t offset; /* in the container's payload; empty entry: as stated there */
	uint64_t size;
	const uint8_t *bytes; /* host entry: its size bytes; NULL: none */
	bool has_xxh3;
	uint8_t xxh3[KP_LAYOUT_HASH];
};

struct kp_layout_container; /* internal.h: format, place, how it was compressed */

struct kp_layout {
	uint64_t size; /* bytes of .hip_fatbin */
	struct kp_layout_container *containers;
	size_t n_containers;
	struct kp_layout_image *images; /* by container, as stored */
	size_t n_images;
	uint32_t *wrapper_container; /* per wrapper */
	size_t n_wrappers;
	struct kp_layout_heap *heap; /* owned; the pointers in images point into it */
	struct kp_source section;    /* kp_layout_read: borrowed, for kept containers */
};

/* Encoded bytes on the heap; the caller frees DATA with free(). */
struct kp_layout_bytes {
	uint8_t *data;
	size_t size;
	size_t n_kept;      /* kept containers ... */
	uint64_t kept_size; /* ... and their bytes in DATA */
};

/* How a layout is made. */
enum {
	/* read and hash images without a hash, instead of leaving them without one */
	KP_LAYOUT_COMPUTE = 1,
	/* keep what is needed to restore compressed containers with any compressor */
	KP_LAYOUT_KEEP = 2,
};

/*
 * Describe FAT (kind ELF).  XXH3 is NULL or has 16 bytes per image of FAT->containers;
 * KNOWN says which images have a hash there.  HOW is a set of KP_LAYOUT_...; without
 * KP_LAYOUT_COMPUTE, images without a hash are those that are not packed.
 * Compressed containers are decoded, and kp_ccob_find_level searches how they were
 * compressed.  A plain container whose images have known hashes is read only between its
 * images.
 * NOT_IMPLEMENTED: FAT cannot be described: a wrapper leads to no container, more than
 * KP_LAYOUT_INLINE_MAX bytes are in no archive, or more than KP_LAYOUT_SECTION_MAX bytes
 * in all, where bytes that entries share count for each.  INVALID_FORMAT,
 * DECOMPRESSION_FAILED: a compressed container is damaged.  IO_ERROR: the file changed,
 * or cannot be read.  OUT_OF_MEMORY.
 */
kpack_error_t kp_layout_make(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
			     const bool *known, unsigned how, struct kp_layout_bytes *out,
			     struct kpackx_error *why);

/*
 * Parse an encoded layout; BYTES are not needed afterwards, and the kept bytes of
 * containers are not available.  OUT is untouched on failure.
 * MSGPACK_PARSE_FAILED: not MessagePack, or cut short.  INVALID_METADATA: an impossible
 * layout.  UNSUPPORTED_VERSION: a newer version.  NOT_IMPLEMENTED: an unknown container
 * format or compression method.  OUT_OF_MEMORY.
 */
kpack_error_t kp_layout_parse(struct kp_span bytes, struct kp_layout *out,
			      struct kpackx_error *why);
/*
 * As kp_layout_parse, for SECTION, whose kept bytes of containers are read when they are
 * needed: SECTION's file stays open as long as OUT.  Also IO_ERROR.
 */
kpack_error_t kp_layout_read(const struct kp_source *section, struct kp_layout *out,
			     struct kpackx_error *why);
void kp_layout_fini(struct kp_layout *layout);

/* The first index (the n of KEY#n) whose objects are those of CONTAINER. */
uint32_t kp_layout_index(const struct kp_layout *layout, uint32_t container);

/*
 * Rebuilding the section.  The caller provides the objects: HAVE says for each image
 * whether it is available, and READ writes its bytes (image->size) to BUF.  They are
 * compared with the image's xxh3.
 */
struct kp_layout_source {
	const bool *have; /* per image; host and empty images need not be set */
	kpack_error_t (*read)(void *arg, size_t image, void *buf,
			      struct kpackx_error *why);
	void *arg;
};

/* The offset of a container that is not written: a bare code object that is missing. */
#define KP_LAYOUT_NOWHERE UINT64_MAX

/* The section to be written. */
struct kp_layout_plan {
	uint64_t size;              /* bytes of the section */
	uint64_t *wrapper_offset;   /* per wrapper; KP_LAYOUT_NOWHERE: no container */
	uint64_t *container_offset; /* per container; or KP_LAYOUT_NOWHERE */
	size_t n_dropped;           /* missing images */
	size_t n_recompressed; /* compressed containers with the same objects but other
				  bytes, because this compressor makes other bytes */
	size_t n_unpacked;     /* compressed containers that become plain bundles, because
				  their form cannot be written */
	bool exact;            /* the section will equal the original bit for bit */
	struct kp_layout_place *places; /* per container */
};

/*
 * Plan the section.  Containers keep their offsets, unless one needs more room than it
 * had: then all containers get new offsets with the original alignment, and the section
 * may grow.  A bundle with missing images is rebuilt without them; unless it is
 * compressed, it never needs more room.
 * The caller decides whether a missing bare code object may be omitted
 * (KP_LAYOUT_NOWHERE).  OUT is untouched on failure.
 * INVALID_METADATA: an image is not the object that was packed.  OUT_OF_MEMORY, and the
 * errors of READ, which is called here for compressed containers: only encoding them
 * shows whether they get the same bytes.
 */
kpack_error_t kp_layout_plan(const struct kp_layout *layout,
			     const struct kp_layout_source *source,
			     struct kp_layout_plan *out, struct kpackx_error *why);
void kp_layout_plan_fini(struct kp_layout_plan *plan);

/*
 * Write the section to OUT at OFFSET as planned, never outside
 * [OFFSET, OFFSET + plan->size).  Bytes between the described parts are not written,
 * except the section's last byte, so OUT must have no data there yet.
 * One object is in memory at a time, or one compressed container.
 * INVALID_METADATA, OUT_OF_MEMORY, and the errors of READ and of writing; IO_ERROR also
 * if encoding gives another size than planned.
 */
kpack_error_t kp_layout_write(const struct kp_layout *layout,
			      const struct kp_layout_plan *plan,
			      const struct kp_layout_source *source,
			      struct kp_outfile *out, uint64_t offset,
			      struct kpackx_error *why);

#endif
