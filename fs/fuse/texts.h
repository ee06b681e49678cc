/* SPDX-License-Identifier: MIT */
/* The texts of the files of .kpackfs, for control.c. */
#ifndef FS_FUSE_TEXTS_H
#define FS_FUSE_TEXTS_H

#include <stdio.h>
#include "fs/content/content.h"
#include "fs/tree/edition.h"

/* What the texts are about, at one moment. */
struct stats {
	const struct edition *edition;
	const struct kp_choice *arches; /* the GPUs whose code is shown */
	const char *subdir;             /* NULL: the whole tree */
	struct content_stats content;
	size_t retired_inodes, retired_archives;
	uint64_t reloads;           /* editions before this one */
	struct timespec started;    /* when the mount was made */
	struct timespec reloaded;   /* time of the last reload; 0: never */
	double uptime;              /* seconds, by a clock that nobody can set */
	const char *const *sandbox; /* names of the sandbox's parts, then NULL */
};

typedef void text_put(FILE *f, const struct stats *s);

/* The first line of the status if no archive is refused and no decode failed. */
#define SUMMARY_GOOD "healthy"

/* A summary for people; one JSON object in one line; Prometheus' text format 0.0.4. */
text_put status_text_put, stats_text_put, metrics_text_put;

/* A line for each archive: its content, or why it is refused. */
text_put archives_text_put;

/*
 * A line for each path of an entry that the edition does not show, each refused entry and
 * each refused archive: the path below the root of the whole tree, or the archive's path, a
 * tab, and the reason.
 */
text_put missing_text_put;

#endif
