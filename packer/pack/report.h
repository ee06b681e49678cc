/* SPDX-License-Identifier: MIT */
/* What kpack pack did, as a table or as JSON. */
#ifndef PACKER_PACK_REPORT_H
#define PACKER_PACK_REPORT_H

#include "packer/pack/tree/outcome.h"
#include "args.h"

struct pack_result {
	const struct scan *scan;
	const struct archive_set *set;   /* NULL: no archive was written */
	const struct outcomes *outcomes; /* NULL: archives only */
	bool done;         /* a part that existed before: nothing else is reported */
	const char *mount; /* the command that brings packed files back; or NULL */
};

/* Exit status. */
int pack_report(const struct pack_args *args, const struct pack_result *result);

/* Notes about what has device code and is not packed, or seems to, and warnings. */
void pack_report_notes(const struct pack_args *args, const struct scan *scan);
/* And, when all is done, about what became of paths against expectation. */
void pack_report_outcomes(const struct scan *scan, const struct outcomes *outcomes);

#endif
