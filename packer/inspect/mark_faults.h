/* SPDX-License-Identifier: MIT */
/*
 * The faults that kpack mark check finds: printed at once, or kept for a report as JSON.
 */
#ifndef PACKER_MARK_FAULTS_H
#define PACKER_MARK_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "packer/cli/report.h"

#define MARK_NO_WRAPPER SIZE_MAX

struct mark_faults {
	bool json; /* keep the faults in LIST; false: print them */
	size_t count;
	json_t *list;
};

/* Record a fault of FILE; ARCH may be NULL.  The caller has escaped names in the text. */
void mark_fault(struct mark_faults *f, const char *file, size_t wrapper, const char *arch,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void mark_fault_why(struct mark_faults *f, const char *file,
		    const struct kpackx_error *why);

#endif
