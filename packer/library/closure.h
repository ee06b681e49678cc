/* SPDX-License-Identifier: MIT */
/*
 * Check that each file exists that a loader of kernel databases will ask for.  closure_tree.c opens
 * what is to be checked as one tree; closure.c has the loaders' rules; closure_names.c finds the
 * names of files in YAML and MessagePack.
 */
#ifndef PACKER_LIBRARY_CLOSURE_H
#define PACKER_LIBRARY_CLOSURE_H

#include "core/target/choice.h"
#include "core/view/view.h"
#include "library.h"
#include "packer/archives/operands.h"

/* --- the tree ------------------------------------------------------------------------- */

/*
 * An install tree as programs see it: its files and those that its archives show, merged;
 * and the libraries that files of kernel databases belong to.
 */
struct install_tree {
	struct file_tree files;
	struct library_found found;
	struct archives archives; /* hold the files that are entries */
	struct kp_view *view;
	size_t n_databases; /* files of kernel databases */
	size_t n_faults;    /* faults; each was reported */
	bool packing;       /* as in install_tree_of */
};

/* The trees and archives to open. */
struct install_tree_of {
	int n_paths;
	char **paths;
	const char *prefix; /* put before the path of each plain file; or "" */
	const struct library_set *libraries;
	/*
	 * The caller packs the tree, and itself reports faults of single plain files, and
	 * paths that have other bytes in archives.
	 */
	bool packing;
};

/*
 * Open the trees, directories of archives, and archives OF as one tree.  If paths are
 * equal, a plain file wins over an entry, and an earlier file over a later one.  Symbolic
 * links to files count as files.  If an entry's metadata names a library of the
 * set, that is trusted.  Faults of files, conflicts between archives, and paths with two
 * contents are reported and counted.  The caller must close T in any case.
 */
kpack_error_t install_tree_open(const struct install_tree_of *of, struct install_tree *t,
				struct kpackx_error *why);
void install_tree_close(struct install_tree *tree);

/* --- the rules ------------------------------------------------------------------------ */

/* Report that a file that PATH needs is missing, or that a file should not exist. */
typedef void closure_report(void *arg, const char *path, const char *text);

/*
 * Check the files of FOUND by the rules at the top of closure.c, for the GPUs that CHOSEN has.
 * Files that only other GPUs need may be missing.  Each fault is passed to REPORT, in order of
 * paths, and added to *FAULTS.  A file that cannot be read is a fault.  OUT_OF_MEMORY.
 */
kpack_error_t closure_check(const struct library_found *found,
			    const struct kp_choice *chosen, closure_report *report,
			    void *arg, size_t *faults, struct kpackx_error *why);

/* --- names in files ------------------------------------------------------------------- */

struct file_names {
	char **items;
	size_t count, cap;
	char **gpus; /* target IDs that a YAML file has anywhere */
	size_t n_gpus, gpus_cap;
};

/*
 * Collect every scalar of BYTES that names a .co, .hsaco, .dat or .yaml, and Tensile's
 * placeholders, which name PREFIX.yaml.  Aliases are not followed: their target is read
 * where it is defined.  The caller must finish OUT in any case.  INVALID_FORMAT: not YAML
 * (WHY names the line), or beyond a limit; OUT_OF_MEMORY.
 */
kpack_error_t file_names_of_yaml(struct kp_span bytes, struct file_names *out,
				 struct kpackx_error *why);
/*
 * Collect every string that is the value of a key KEY, at any depth of a MessagePack map.
 * Bytes after the map are ignored.  The caller must finish OUT in any case.
 * MSGPACK_PARSE_FAILED: not a map, or cut short.
 */
kpack_error_t file_names_of_msgpack(struct kp_span bytes, const char *key,
				    struct file_names *out, struct kpackx_error *why);
void file_names_fini(struct file_names *names);

#endif
