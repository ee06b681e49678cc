/* SPDX-License-Identifier: MIT */
/* The texts of .kpackfs/stats and .kpackfs/metrics: the same figures in two formats. */
#ifndef FS_CONTROL_STATS_TEXT_H
#define FS_CONTROL_STATS_TEXT_H

#include <stdio.h>
#include "fs/content/content.h"
#include "fs/tree/edition.h"

/* The figures, at one moment. */
struct stats {
	const struct edition *edition;
	const struct kp_choice *arches; /* the GPUs whose code is shown */
	struct content_stats content;
	size_t retired_inodes, retired_archives;
	uint64_t reloads;           /* editions before this one */
	struct timespec started;    /* when the mount was made */
	struct timespec reloaded;   /* time of the last reload; 0: never */
	double uptime;              /* seconds, by a clock that nobody can set */
	const char *const *sandbox; /* names of the sandbox's parts, then NULL */
};

/* Write one JSON object, in one line. */
void stats_put_json(FILE *f, const struct stats *s);

/* Write the metrics in Prometheus' text format 0.0.4. */
void stats_put_metrics(FILE *f, const struct stats *s);

#endif
