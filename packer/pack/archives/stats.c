/* SPDX-License-Identifier: MIT */
#include "stats.h"
#include <stdlib.h>
#include <string.h>

kpack_error_t archive_stats_of(struct archive_stats *stats, const char *arch,
			       struct arch_stats **out, struct kpackx_error *why)
{
	struct arch_stats *bigger;

	for (size_t i = 0; i < stats->count; i++)
		if (strcmp(stats->items[i].arch, arch) == 0) {
			*out = &stats->items[i];
			return KPACK_SUCCESS;
		}
	bigger = realloc(stats->items, (stats->count + 1) * sizeof(*bigger));
	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "statistics");
	stats->items = bigger;
	*out = &bigger[stats->count];
	**out = (struct arch_stats){.arch = strdup(arch)};
	if (!(*out)->arch)
		return kp_fail_memory(why, strlen(arch), "statistics");
	stats->count++;
	return KPACK_SUCCESS;
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
