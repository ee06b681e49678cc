/* SPDX-License-Identifier: MIT */
/*
 * Storing the objects of a plan: read, hash and compress on many threads; add to the archives in
 * order.
 */
#ifndef PACKER_PACK_STORE_H
#define PACKER_PACK_STORE_H

#include "core/writer/encode.h"
#include "core/base/slots.h"
#include "packer/cli/report.h"
#include "plan.h"

/*
 * Sizes of compressed bundles, in which the code of all GPUs is compressed together, and of
 * what is stored for it.
 */
struct bundle_sizes {
	uint64_t bundles; /* compressed bundles */
	uint64_t objects; /* stored for their objects */
	uint64_t all;     /* stored for all objects */
	/* of a sample of these objects: stored bytes, and decoded debugging information;
	 * of a smaller one, that decoded and compressed */
	uint64_t measured, debug, pressed_debug, pressed;
};

struct pack_options {
	kpack_compression_t scheme;
	int level;
	/* seconds of CPU time for 10^9 bytes of objects, in place of the level; or 0 */
	uint32_t effort;
	uint64_t chunk; /* larger objects are cut; 0: only those read at random */
	unsigned jobs;
	const bool
		*mine; /* per entry of the scan: store the objects of these; NULL: all */
	const char *source_prefix;  /* stated in the metadata of device code; or NULL */
	struct bundle_sizes *sizes; /* zeroed, to be added to; or NULL */
};

/*
 * Store the objects of PLAN into SET, where every binary has its volume.  Sets the hashes of
 * images.  Errors name the file.
 */
kpack_error_t pack_run(const struct plan *plan, const struct pack_options *options,
		       struct archive_set *set, struct progress *progress,
		       struct kpackx_error *why);

/* --- keys and metadata of entries: entry.c ------------------------------------------- */

#define KEY_SUFFIX_MAX 64

/* The objects stored from the current container for one architecture.  Zeroed: none. */
struct key_suffixes {
	const char *arch; /* borrowed */
	struct suffix_seen *rows;
	size_t count, cap;
	struct kp_slots slots; /* of the rows */
	size_t n_objects;
};

/*
 * Choose what follows the path in the key of an object of ARCH and KIND that is stored
 * under ORDINAL; equal bytes have equal ordinals.  The first object of an architecture
 * has no suffix; an object that differs from it gets "@kind", further ones of that kind
 * "@kind.2" and so on.  Bytes of the kind other than ASCII letters, digits, "_", "+" and
 * "-" become "_".
 * false: the very same object was already named, so it needs no other entry.
 * The objects of one architecture must come one after another.
 */
bool key_suffix_choose(struct key_suffixes *names, const char *arch, struct kp_span kind,
		       uint32_t ordinal, char out[KEY_SUFFIX_MAX]);
/* Forget all objects: another container begins. */
void key_suffixes_fini(struct key_suffixes *names);

/*
 * Add to F what the container of IMAGE in IN says about it ("keys" of an offload binary,
 * "fatbin" of a CUDA fatbin, "member" of an archive), and what the object SRC of TYPE
 * says about itself ("triple" of bitcode, "signatures" of cuTile's kernels).  Facts longer
 * than real ones are left out.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t entry_facts(const struct input *in, size_t image, const char *type,
			  const struct kp_source *src, struct facts *f,
			  struct kpackx_error *why);

/*
 * Write the metadata of the entries of an image, with FACTS; the caller frees *MAP.  For an
 * object of a database: with its path, mode, library and role.
 */
kpack_error_t entry_metadata(const struct input *in, size_t image,
			     const struct kp_content *content, const struct facts *facts,
			     uint8_t **map, size_t *size, struct kpackx_error *why);

/* --- objects of many bytes: large.c -------------------------------------------------- */

/*
 * Packing such an object without holding it or its frame in memory: both are in temporary
 * files (core/base/spill.h), whose pages are given back while they are mapped.
 */
struct large {
	struct kp_source raw;   /* the object's bytes */
	struct kp_source frame; /* encoded */
	int raw_fd, frame_fd;   /* owned; -1: none */
};

/* About how much memory it needs, besides its encoder. */
#define LARGE_COST (UINT64_C(24) << 20)

/* Whether objects of SIZE bytes are packed so. */
bool large_is(uint64_t size);

/*
 * Hash SOURCE, and copy it unless it is PRIVATE, a file that nobody else can change, which
 * is borrowed.  OUT is to be freed even after a failure.  IO_ERROR.
 */
kpack_error_t large_begin(const struct kp_source *source, bool private, struct large *out,
			  struct kp_hash *hash, struct kpackx_error *why);
/* Set the frame, which is that of kp_encode.  IO_ERROR; OUT_OF_MEMORY. */
kpack_error_t large_encode(struct large *l, struct kp_encoder *encoder,
			   struct kpackx_error *why);
/* Free the object's bytes, of which the frame is independent. */
void large_end_raw(struct large *l);
void large_fini(struct large *l);

#endif
