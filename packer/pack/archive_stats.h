/* SPDX-License-Identifier: MIT */
/* Statistics of what a run stored, per architecture. */
#ifndef PACKER_PACK_ARCHIVES_STATS_H
#define PACKER_PACK_ARCHIVES_STATS_H

#include <stddef.h>
#include <stdint.h>

struct arch_stats {
	char *arch;
	size_t objects;      /* entries added by this run */
	uint64_t bytes_in;   /* decoded, duplicates counted */
	uint64_t bytes_out;  /* stored, duplicates not counted */
	size_t deduplicated; /* objects that share the bytes of another */
};

struct archive_stats {
	struct arch_stats *items;
	size_t count;
};

/* Returns the row of ARCH, which is added if missing; valid until the next call. */
struct arch_stats *archive_stats_of(struct archive_stats *stats, const char *arch);
/* Sort the rows by architecture. */
void archive_stats_sort(struct archive_stats *stats);
void archive_stats_fini(struct archive_stats *stats);

#endif
