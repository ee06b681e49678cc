/* SPDX-License-Identifier: MIT */
/*
 * Recipes: how a file, the original, is made of bytes of the file that took its place, of
 * objects in archives, and of bytes that the recipe has itself.  kpack-recipe(5) describes the
 * stored form; a converted binary has its recipe in .rocm_kpack_layout.
 *
 *	recipe.c  the stored form: parsing it, and writing it
 *	make.c    making one, from a fat binary that is converted
 *	apply.c   putting the original's bytes back
 */
#ifndef KP_CORE_RESTORE_RECIPE_H
#define KP_CORE_RESTORE_RECIPE_H

#include <time.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/format/ccob.h"
#include "core/host/convert.h"

/*
 * Bytes of an object's XXH3-128, in canonical order, that are kept: enough to distinguish
 * builds, which is their only purpose.  Whole hashes would be most of a recipe.
 */
#define KP_RECIPE_HASH 6

/* Magic of the skippable frames that have differences, and bytes before theirs. */
#define KP_RECIPE_SKIP_MAGIC 0x184d2a50
#define KP_RECIPE_SKIP_HEADER 8

/* The kinds of parts, as they are stored. */
enum kp_part_kind {
	KP_PART_COPY,
	KP_PART_BYTES,
	KP_PART_ZEROS,
	KP_PART_PAD, /* only stored: it is parsed to ZEROS */
	KP_PART_OBJECT,
	KP_PART_RANGE,
	KP_PART_CONTAINER,
	KP_PART_HEADER,
	KP_PART_COMPRESSED,
	KP_PART_KINDS,
};

struct kp_part {
	enum kp_part_kind kind;
	/* OBJECT, RANGE: the image; CONTAINER, HEADER: the container; COMPRESSED: the form */
	uint32_t number;
	uint32_t inside; /* COMPRESSED: number of parts that follow, of its payload */
	/* COPY: in the changed file; BYTES: in `bytes`; RANGE: in the object */
	uint64_t from;
	uint64_t size;
	uint64_t at; /* in the original, or in the payload of a compressed bundle */
};

struct kp_recipe_target {
	char *id;   /* bundle entry ID; NULL: bare code object */
	char *arch; /* canonical, as in the archive */
	bool host;
};

/* An object: an entry of a container of the device code. */
struct kp_recipe_image {
	uint32_t container, target;
	const char *id, *arch; /* those of its target, which are borrowed */
	bool host;             /* its bytes are in the recipe, not in an archive */
	bool has_xxh3;         /* false: not packed, empty, or the host's */
	bool placed;           /* a part OBJECT or RANGE needs it */
	uint64_t size;
	uint64_t from; /* of the host: in `bytes` */
	uint64_t at;   /* of the part OBJECT, if there is one */
	uint8_t xxh3[KP_RECIPE_HASH];
};

struct kp_recipe_container {
	size_t first_image, n_images;
	uint64_t offset; /* in the original */
	uint32_t index;  /* the n of KEY#n of its objects, as archives have it */
};

/* How a bundle was compressed. */
struct kp_recipe_form {
	struct kp_ccob_form form;
	uint8_t xxh3[16]; /* of the compressed bundle */
	uint64_t kept;    /* bytes of its difference from its payload; 0: none is kept */
	uint64_t kept_offset; /* in the recipe's source */
};

/* What kpack thin --keep states besides. */
struct kp_recipe_file {
	uint8_t xxh3[16]; /* of the original */
	bool removed;     /* nothing took its place; the next two are zeros */
	uint64_t changed_size;
	uint8_t changed_xxh3[16];
	/* attributes of a file that was removed */
	unsigned mode, uid, gid;
	struct timespec mtime, kept;
};

struct kp_recipe {
	uint64_t size;      /* of the original */
	uint8_t copied[16]; /* the hash of all that is copied */
	bool has_section;   /* the original is a binary with .hip_fatbin: */
	uint64_t section_offset, section_size;
	size_t section_first, section_end; /* its parts */
	struct kp_part *parts;
	size_t n_parts, parts_cap;
	size_t apart; /* while it is made: nothing is added to parts before this one */
	struct kp_recipe_target *targets;
	size_t n_targets, targets_cap;
	struct kp_recipe_image *images; /* by container, as stored */
	size_t n_images, images_cap;
	struct kp_recipe_container *containers;
	size_t n_containers, containers_cap;
	struct kp_recipe_form *forms;
	size_t n_forms, forms_cap;
	uint32_t *wrapper_container; /* per wrapper */
	size_t n_wrappers;
	uint8_t *bytes;
	size_t n_bytes, bytes_cap;
	uint8_t *kept; /* while it is made: the frames of differences */
	size_t n_kept;
	bool has_file;
	struct kp_recipe_file file;
	struct kp_source source; /* kp_recipe_read: borrowed, for differences */
};

/* ---- the stored form ---- */

/*
 * Parse the recipe in SOURCE, which may have more after it.  Differences are read when they
 * are needed: SOURCE's file or memory stays as long as OUT.  OUT is untouched on failure.
 * MSGPACK_PARSE_FAILED: not a recipe, or cut short.  INVALID_METADATA: an impossible one.
 * UNSUPPORTED_VERSION: a newer version.  NOT_IMPLEMENTED: an unknown kind of part, or
 * compression.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_recipe_read(const struct kp_source *source, struct kp_recipe *out,
			     struct kpackx_error *why);
void kp_recipe_fini(struct kp_recipe *recipe);

/*
 * Store RECIPE; the caller frees *OUT with free().
 * NOT_IMPLEMENTED: more than KP_LAYOUT_MAX bytes.  OUT_OF_MEMORY.
 */
kpack_error_t kp_recipe_encode(const struct kp_recipe *recipe, uint8_t **out,
			       size_t *size, struct kpackx_error *why);

/* Add SIZE bytes at OFF of SOURCE to HASH. */
kpack_error_t kp_recipe_hash(struct kp_hasher *hash, const struct kp_source *source,
			     uint64_t off, uint64_t size, struct kpackx_error *why);

/* ---- making one ---- */

/*
 * Append a part.  What goes on where the last part ends becomes a piece of that.  Only error:
 * OUT_OF_MEMORY.
 */
kpack_error_t kp_recipe_add(struct kp_recipe *recipe, struct kp_part part,
			    struct kpackx_error *why);
/* Append a zeroed object for the target ID, ARCH, HOST, which are copied if they are new. */
kpack_error_t kp_recipe_add_image(struct kp_recipe *recipe, const char *id,
				  const char *arch, bool host,
				  struct kp_recipe_image **out, struct kpackx_error *why);

/* How the device code is described. */
enum {
	/* read and hash images without a hash, instead of leaving them without one */
	KP_RECIPE_COMPUTE = 1,
	/* keep what is needed to restore compressed containers with any compressor */
	KP_RECIPE_KEEP = 2,
	/* the device code stays in the file */
	KP_RECIPE_IN_FILE = 4,
};

/*
 * Describe the device code of FAT (kind HOST): the containers, objects and wrappers, and the
 * parts of .hip_fatbin.  XXH3 is NULL or has 16 bytes per image of FAT->containers; KNOWN says
 * which images have a hash there.  HOW is a set of KP_RECIPE_...; without KP_RECIPE_COMPUTE,
 * images without a hash are those that are not packed.
 * Compressed containers are decoded, and kp_ccob_find_level searches how they were
 * compressed.  A plain container whose images have known hashes is read only between its
 * images.
 * NOT_IMPLEMENTED: FAT cannot be described: a wrapper leads to no container, more than
 * KP_LAYOUT_INLINE_MAX bytes are in no archive, or more than KP_LAYOUT_SECTION_MAX bytes
 * in all, where bytes that entries share count for each.  INVALID_FORMAT,
 * DECOMPRESSION_FAILED: a compressed container is damaged.  IO_ERROR: the file changed,
 * or cannot be read.  OUT_OF_MEMORY.
 */
kpack_error_t kp_recipe_describe(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
				 const bool *known, unsigned how, struct kp_recipe *out,
				 struct kpackx_error *why);

/*
 * Complete recipes while a binary is converted or changed: `recipe` of struct
 * kp_convert_options is kp_recipe_complete, with this as its ARG.
 */
struct kp_recipe_maker {
	/* Of the device code: its section's parts are used, and all but the other parts. */
	const struct kp_recipe *recipe;
	int fd; /* the file that is read */
	/*
	 * The file that is read is the original, and SIZE are its bytes; or it was converted by
	 * RECIPE, all of whose parts are kept, as far as the bytes that they copy can be moved.
	 */
	bool converted;
	uint64_t size;
	struct kp_span bytes; /* the last result; the caller frees its data */
	/* Which bytes were copied last, and their hash: the next plan mostly copies the same. */
	uint64_t ranges;
	uint8_t copied[16];
};

kpack_error_t kp_recipe_complete(void *arg, const struct kp_move *moves, size_t n,
				 struct kp_span *out, struct kpackx_error *why);

/*
 * Whether SIZE bytes of device code are so many that neither a selection nor a recipe
 * handles them.  Entries may share bytes, so both are limited: the payloads' bytes, and the
 * entries'.
 */
bool kp_recipe_is_too_much(const struct kp_containers *list);

/* ---- applying it ---- */

/* What a recipe takes its bytes from. */
struct kp_recipe_source {
	/* The file that took the original's place; NULL: there is none. */
	const struct kp_source *changed;
	/*
	 * Per image: it is there; NULL: all are.  In place of others are zeros, and bundles'
	 * headers leave them out.
	 */
	const bool *have;
	/* Write the image's bytes to BUF, which are compared with its xxh3. */
	kpack_error_t (*read)(void *arg, size_t image, void *buf,
			      struct kpackx_error *why);
	void *arg;
};

/* What the bytes differ from the original in. */
struct kp_recipe_result {
	size_t n_missing; /* images that are not there */
	size_t n_unknown; /* images of which no hash says that they are the packed ones */
	/*
	 * compressed bundles with the same objects but other bytes, because this compressor
	 * makes other bytes
	 */
	size_t n_recompressed;
};

/*
 * Whether CHANGED still has all bytes that the recipe copies: then it gives the original.
 * IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_recipe_fits(const struct kp_recipe *recipe,
			     const struct kp_source *changed, bool *fits,
			     struct kpackx_error *why);

/*
 * Write the original to OUT, which is empty.  Zeros are not written, except the last byte.
 * One object is in memory at a time, or one compressed container.
 * INVALID_METADATA: an image is not the object that was packed, or CHANGED lacks bytes.
 * NOT_IMPLEMENTED: a compressed bundle would need more bytes than it had, or a bundle with
 * an unusual header lacks an image.  OUT_OF_MEMORY, and the errors of READ and of writing.
 */
kpack_error_t kp_recipe_restore(const struct kp_recipe *recipe,
				const struct kp_recipe_source *source,
				struct kp_outfile *out, struct kp_recipe_result *result,
				struct kpackx_error *why);

/*
 * As kp_recipe_restore, but write the bytes of .hip_fatbin alone, recipe->section_size of them,
 * to OUT at OFFSET; CHANGED is not needed.
 */
kpack_error_t kp_recipe_restore_section(const struct kp_recipe *recipe,
					const struct kp_recipe_source *source,
					struct kp_outfile *out, uint64_t offset,
					struct kp_recipe_result *result,
					struct kpackx_error *why);

#endif
