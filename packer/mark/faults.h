/* SPDX-License-Identifier: MIT */
/* What kpack mark check finds wrong: told at once, or kept for a report as JSON. */
#ifndef PACKER_MARK_FAULTS_H
#define PACKER_MARK_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "packer/cli/report.h"

#define MARK_NO_WRAPPER SIZE_MAX

struct mark_faults {
	bool json; /* keep them */
	size_t count;
#if KP_WITH_JSON
	json_t *list;
#endif
};

/* A fault of FILE; ARCH may be NULL.  Names in the text are escaped already. */
void mark_fault(struct mark_faults *f, const char *file, size_t wrapper, const char *arch,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void mark_fault_why(struct mark_faults *f, const char *file,
		    const struct kpackx_error *why);

#endif
