/* SPDX-License-Identifier: MIT */
/* Recipes for binaries that are converted (core/elf/convert.h). */
#ifndef KP_CORE_RESTORE_MAKE_H
#define KP_CORE_RESTORE_MAKE_H

#include "core/elf/convert.h"
#include "recipe.h"

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
 * Describe the device code of FAT (kind ELF): the containers, objects and wrappers, and the
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

#endif
