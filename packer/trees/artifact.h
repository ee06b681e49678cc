/* SPDX-License-Identifier: MIT */
/*
 * Artifacts of TheRock's build.  A component is built into one directory, an artifact, with
 * several prefixes, each the root of an install tree; all are installed into one root.  The
 * file ARTIFACT_MANIFEST at the artifact's root names the prefixes, one per line; blank
 * lines and spaces around a name are ignored.  Split artifacts are called
 * "<component>_<target>".
 */
#ifndef PACKER_TREES_ARTIFACT_H
#define PACKER_TREES_ARTIFACT_H

#include "core/base/errors.h"
#include "core/base/span.h"
#include "packer/archives/binary.h"
#include "packer/files/tree_list.h"

#define ARTIFACT_MANIFEST "artifact_manifest.txt"

struct prefix {
	char *path;  /* relative to the artifact's root; "" is the root itself */
	bool absent; /* missing from the artifact: nothing was built for it */
};

struct prefixes {
	struct prefix *items; /* by path */
	size_t count;
	bool manifest; /* there is one; without one the root is the only prefix */
};

/*
 * Parse a manifest, which may name no prefix, or one twice.  INVALID_FORMAT, naming the line:
 * not a relative path inside the tree (it has ".", "..", a leading slash or bytes that are
 * not text), or too many prefixes.  The caller closes OUT in any case.
 */
kpack_error_t prefixes_parse(struct kp_span text, struct prefixes *out,
			     struct kpackx_error *why);
/* Parse the manifest PATH.  As prefixes_parse; IO_ERROR. */
kpack_error_t prefixes_list(const char *path, struct prefixes *out,
			    struct kpackx_error *why);

/*
 * Read the prefixes of the tree ROOT.  FILE_NOT_FOUND: a manifest is REQUIRED, but
 * missing.  INVALID_FORMAT: as prefixes_parse; or there is no prefix, or one is listed twice,
 * is inside another, is not a directory, or is reached through a symbolic link.  IO_ERROR.
 */
kpack_error_t prefixes_open(const char *root, bool required, struct prefixes *out,
			    struct kpackx_error *why);
void prefixes_close(struct prefixes *p); /* accepts a zeroed one */

/* Whether PATH, relative to the root, is a prefix. */
bool prefixes_has(const struct prefixes *p, const char *path);

/*
 * The size of the component in NAME, "<component>_<target>"; 0: NAME has another form.
 * The target is "generic", or begins with the last "gfx" that follows an underscore and
 * precedes a digit ("aotriton_gfx12_0").
 */
size_t artifact_component_size(const char *name);

/* The artifact that a list of files is in; zeroed: none. */
struct artifact_root {
	char *path;
	struct prefixes prefixes;
};

/*
 * Take the next item of a list: an artifact begins or ends.  Only the root of the list and
 * the directories in it are looked at; one whose manifest is invalid is no artifact.
 */
void artifact_root_item(struct artifact_root *a, const struct tree_item *item);

/*
 * The prefix of the file PATH, whose key is KEY: both must have it.  Sets REST to the path
 * inside it.  NULL: none.  The archive that a binary of one prefix looks for may be in
 * another.
 */
const struct prefix *artifact_root_prefix(const struct artifact_root *a, const char *path,
					  const char *key, const char **rest);

void artifact_root_fini(struct artifact_root *a);

/* --- generic trees ----------------------------------------------------------------- */

/*
 * The generic tree of a split: "<component>_generic", with the trees "<component>_gfx..."
 * beside it, with an artifact's manifest in it, or with converted binaries.  Packages of
 * any GPU are installed over it, so a fat binary in it was left by mistake: its code is in
 * the package that is for no GPU, and nowhere else.  A tree that was never packed, or that
 * has another name, may have fat binaries.
 */

/* FILE is a fat binary in a generic tree. */
typedef void generic_tree_fn(void *arg, const char *file, const char *text);

/* The generic tree that a list of files is in; zeroed: none. */
struct generic_tree {
	generic_tree_fn *fault;
	void *arg;
	char *path;
	/*
	 * Its name is not the only evidence; then the archives of its converted binaries are
	 * in other trees.
	 */
	bool certain;
	bool converted; /* a converted binary was seen */
	char **fat;     /* fat binaries, until the end of the tree */
	size_t n_fat, fat_cap;
};

/*
 * Take the next item of a list: a generic tree begins or ends; where one ends, FAULT gets
 * its fat binaries.  Only the root of the list and the directories in it are looked at.
 */
void generic_tree_item(struct generic_tree *g, const struct tree_item *item);

/* Take a binary of the list, whatever kind it is. */
void generic_tree_binary(struct generic_tree *g, const struct binary *b);

void generic_tree_fini(struct generic_tree *g);

/*
 * Look for generic trees at ROOT, a tree or a directory of trees, and for fat binaries in
 * them.  Faults of single files are not reported.
 */
void generic_tree_check(const char *root, generic_tree_fn *fault, void *arg);

#endif
