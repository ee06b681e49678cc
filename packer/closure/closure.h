/* SPDX-License-Identifier: MIT */
/* Does every file of a library find those that its loader will want? */
#ifndef PACKER_CLOSURE_CLOSURE_H
#define PACKER_CLOSURE_CLOSURE_H

#include "packer/library/library.h"

/* Tell that what PATH needs is missing, or that something should not be there. */
typedef void closure_tell(void *arg, const char *path, const char *text);

/*
 * Check the files of FOUND: parents find children and code objects for each GPU, pairs of xnack
 * modes are complete, no .dat stands beside its .dat.zlib, co_path and kernel_path and
 * what TensileLibrary.yaml names exist.  Each fault is reported, in order of path, and counted.
 * A file that cannot be read is one.  OUT_OF_MEMORY; NOT_IMPLEMENTED: a tree that
 * needs a library (YAML, SQLite) that is not built in.
 */
kpack_error_t closure_check(const struct library_found *found, closure_tell *tell,
			    void *arg, size_t *faults, struct kpackx_error *why);

#endif
