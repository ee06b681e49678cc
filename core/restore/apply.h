/* SPDX-License-Identifier: MIT */
/* Putting the bytes of an original back, by its recipe. */
#ifndef KP_CORE_RESTORE_APPLY_H
#define KP_CORE_RESTORE_APPLY_H

#include "recipe.h"

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
	size_t n_recompressed; /* compressed bundles with the same objects but other
				  bytes, because this compressor makes other bytes */
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
