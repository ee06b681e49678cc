/* SPDX-License-Identifier: MIT */
/* Messages of joining and splitting archives: clashes, faults, progress. */
#ifndef PACKER_MERGE_REPORT_H
#define PACKER_MERGE_REPORT_H

#include "merge.h"
#include "packer/cli/progress.h"
#include "packer/cli/report.h"

/* The number of clashes that are reported one by one; the rest is counted. */
#define MERGE_CLASHES_REPORTED 100

struct merge_report {
	struct progress progress;
	size_t clashes; /* all of them */
	json_t *list;   /* the caller's: the reported clashes as JSON; NULL: not wanted */
};

/* Callbacks for struct merge_options, whose argument is a struct merge_report. */
void merge_report_clash(void *arg, const struct merge_clash *clash);
void merge_report_faulty(void *arg, const struct kpack_archive *archive);
void merge_report_mismatch(void *arg, const struct merge_mismatch *mismatch);
void merge_report_progress(void *arg, uint64_t bytes);

/* End the progress display, and report how many clashes were not reported one by one. */
void merge_report_end(struct merge_report *r);

/* Add the statistics to OBJECT. */
void merge_stats_json(const struct merge_stats *stats, json_t *object);

#endif
