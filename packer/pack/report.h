/* SPDX-License-Identifier: MIT */
/* The report of kpack pack, as a table or as JSON. */
#ifndef PACKER_PACK_REPORT_H
#define PACKER_PACK_REPORT_H

#include "run.h"

struct pack_result {
	bool done;   /* the shard was already finished: nothing else is reported */
	char *mount; /* the command that makes packed files visible; or NULL */
	char *boot;  /* the one that does so at every boot; or NULL */
	char *undo;  /* the one that undoes the run; or NULL */
};

/* Print what P has done, which was written. */
void pack_report(const struct packing *p, const struct pack_result *result);

/*
 * After the run, print warnings about paths that were not converted, and unless QUIET notes
 * about those that were not copied as expected.
 */
void pack_report_dispositions(const struct scan *scan,
			      const struct dispositions *dispositions, bool quiet);

#endif
