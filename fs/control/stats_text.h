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
	const struct arches *arches; /* the GPUs whose code is shown */
	struct content_stats content;
	size_t retired_inodes, retired_archives;
	uint64_t reloads;           /* editions before this one */
	struct timespec started;    /* the mount */
	struct timespec reloaded;   /* 0: never */
	double uptime;              /* seconds, whatever was done to the clock */
	const char *const *sandbox; /* names, then NULL */
};

/* One JSON object, in one line. */
void stats_put_json(FILE *f, const struct stats *s);

/* Prometheus' text format 0.0.4. */
void stats_put_metrics(FILE *f, const struct stats *s);

#endif
