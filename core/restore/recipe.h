/* SPDX-License-Identifier: MIT */
/*
 * Recipes: how a file, the original, is made of bytes of the file that took its place, of
 * objects in archives, and of bytes that the recipe has itself.  kpack-format(5) describes the
 * stored form; a converted binary has its recipe in .rocm_kpack_layout.
 *
 *	recipe.c  parsing the stored form
 *	encode.c  making a recipe part by part, and its stored form
 *	make.c    from a fat binary that is converted
 *	apply.c   putting the original's bytes back
 */
#ifndef KP_CORE_RESTORE_RECIPE_H
#define KP_CORE_RESTORE_RECIPE_H

#include <time.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/slots.h"
#include "core/format/ccob.h"

/*
 * Bytes of an object's XXH3-128, in canonical order, that are kept: enough to distinguish
 * builds, which is their only purpose.  Whole hashes would be most of a recipe.
 */
#define KP_RECIPE_HASH 6

/* Magic of the skippable frames that have differences. */
#define KP_RECIPE_SKIP_MAGIC 0x184d2a50

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
	uint64_t
		from; /* COPY: in the changed file; BYTES: in `bytes`; RANGE: in the object */
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
	uint32_t index;  /* kp_recipe_index */
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
	uint64_t size; /* of the original */
	uint8_t copied[16];
	bool has_section; /* the original is a binary with .hip_fatbin: */
	uint64_t section_offset, section_size;
	size_t section_first, section_end; /* its parts */
	struct kp_part *parts;
	size_t n_parts, parts_cap;
	size_t apart; /* while it is made: nothing is added to parts before this one */
	struct kp_recipe_target *targets;
	size_t n_targets, targets_cap;
	struct kp_slots target_slots;   /* while it is made */
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

/* The first index (the n of KEY#n) whose objects are those of CONTAINER. */
uint32_t kp_recipe_index(const struct kp_recipe *recipe, uint32_t container);

/*
 * For those who make recipes (encode.c): append a part.  What goes on where the last part ends becomes a
 * piece of that.  Only error: OUT_OF_MEMORY.
 */
kpack_error_t kp_recipe_add(struct kp_recipe *recipe, struct kp_part part,
			    struct kpackx_error *why);
/* Append SIZE bytes to `bytes`, which the caller fills in at once: *ROOM. */
kpack_error_t kp_recipe_room(struct kp_recipe *recipe, size_t size, uint8_t **room,
			     struct kpackx_error *why);
/* Append a zeroed object for the target ID, ARCH, HOST, which are copied if they are new. */
kpack_error_t kp_recipe_add_image(struct kp_recipe *recipe, const char *id,
				  const char *arch, bool host,
				  struct kp_recipe_image **out, struct kpackx_error *why);

/* The version, and the bins of the stored map, in their order, and their names. */
#define KP_RECIPE_VERSION 1
enum kp_recipe_bin {
	KP_BIN_COPIED,
	KP_BIN_OBJECTS,
	KP_BIN_UNKNOWN,
	KP_BIN_HASHES,
	KP_BIN_CONTAINERS,
	KP_BIN_WRAPPERS,
	KP_BIN_COMPRESSED,
	KP_BIN_PARTS,
	KP_BIN_BYTES,
	KP_BINS,
};
extern const char *const kp_recipe_bins[KP_BINS];

#endif
