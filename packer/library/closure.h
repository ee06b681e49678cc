/* SPDX-License-Identifier: MIT */
/* Check that every file of a library finds the files that its loader will open. */
#ifndef PACKER_CLOSURE_CLOSURE_H
#define PACKER_CLOSURE_CLOSURE_H

#include "core/target/choice.h"
#include "library.h"

/* Report that a file that PATH needs is missing, or that a file should not exist. */
typedef void closure_report(void *arg, const char *path, const char *text);

/*
 * Check the files of FOUND for the GPUs that CHOSEN has, or all that the files name: parents
 * find children and code objects for each GPU; pairs of xnack modes are complete; no .dat
 * is next to its .dat.zlib; the files exist that co_path, kernel_path and
 * TensileLibrary.yaml name, and the index of external operations.  Files that only other
 * GPUs need may be missing.  Each fault is passed to REPORT, in
 * order of paths, and added to *FAULTS.  A file that cannot be read is a fault.
 * OUT_OF_MEMORY.
 */
kpack_error_t closure_check(const struct library_found *found,
			    const struct kp_choice *chosen, closure_report *report,
			    void *arg, size_t *faults, struct kpackx_error *why);

#endif
