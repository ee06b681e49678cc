/* SPDX-License-Identifier: MIT */
#include "archive_stats.h"
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"

struct arch_stats *archive_stats_of(struct archive_stats *stats, const char *arch)
{
	struct arch_stats *row;

	for (size_t i = 0; i < stats->count; i++)
		if (strcmp(stats->items[i].arch, arch) == 0)
			return &stats->items[i];
	stats->items = xrealloc(stats->items, (stats->count + 1) * sizeof(*row));
	row = &stats->items[stats->count++];
	*row = (struct arch_stats){.arch = xstrdup(arch)};
	return row;
}

static int by_arch(const void *a, const void *b)
{
	const struct arch_stats *x = a, *y = b;

	return strcmp(x->arch, y->arch);
}

void archive_stats_sort(struct archive_stats *stats)
{
	if (stats->count)
		qsort(stats->items, stats->count, sizeof(*stats->items), by_arch);
}

void archive_stats_fini(struct archive_stats *stats)
{
	for (size_t i = 0; i < stats->count; i++)
		free(stats->items[i].arch);
	free(stats->items);
	*stats = (struct archive_stats){0};
}
