/* SPDX-License-Identifier: MIT */
/*
 * The originals of files, in archives of a directory: for each file a recipe (core/restore/recipe.h),
 * the entry PATH of type "recipe", and the bytes that the changed file does not have, in
 * the entries PATH#0, PATH#1 ... of type "bin", all for the architecture "generic".
 */
#ifndef PACKER_THIN_KEEP_H
#define PACKER_THIN_KEEP_H

#include "core/archive/archive.h"
#include "core/base/file.h"
#include "core/restore/recipe.h"
#include "packer/files/identity.h"

/*
 * Take the directory DIR, which exists, for what TREE loses, as its file "tree" states.
 * INVALID_ARGUMENT: it keeps what another tree lost.
 */
kpack_error_t keep_claim(const char *dir, const char *tree, struct kpackx_error *why);

/*
 * Keep in the directory DIR what the original of the file PATH, of a tree, has and CHANGED
 * has not.  If DIR has an earlier original, of which FILE is a change, that one is kept.
 * Whole and flushed; thread-safe for files of other paths.
 * INVALID_ARGUMENT: PATH cannot be a key.  Errors of reading and writing.
 */
kpack_error_t keep_changed(const char *dir, const char *path,
			   const struct kp_source *file, const struct kp_source *changed,
			   struct kpackx_error *why);

/* A file to be removed. */
struct keep_file {
	const char *path; /* in the tree */
	const char *disk; /* to open it */
	const struct file_identity *id;
};

/* Keep the N FILES, as keep_changed does. */
kpack_error_t keep_removed(const char *dir, const struct keep_file *files, size_t n,
			   struct kpackx_error *why);

/*
 * Whether entry number ENTRY of A is a recipe; then *OUT becomes it, and errors are those
 * of reading it.
 */
bool keep_is_recipe(const struct kpack_archive *a, size_t entry);
kpack_error_t keep_read(const struct kpack_archive *a, size_t entry,
			struct kp_recipe *out, struct kpackx_error *why);

/*
 * Write the original of PATH to OUT, by the recipe R and the entries of A, from CHANGED
 * (NULL: the file was removed).
 * INVALID_METADATA: the result is not the original.  Errors of reading and writing.
 */
kpack_error_t keep_restore(const struct kpack_archive *a, struct kp_span path,
			   const struct kp_recipe *r, const struct kp_source *changed,
			   struct kp_outfile *out, struct kpackx_error *why);

#endif
