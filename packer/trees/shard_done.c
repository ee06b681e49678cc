/* SPDX-License-Identifier: MIT */
#include "shard_done.h"
#include <stdlib.h>
#include <unistd.h>
#include "shard_part.h"
#include "shard_log.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* --- is the record of this run? ------------------------------------------------------ */

static bool is_of_run(const struct packing *p, const uint8_t plan[16],
		      const struct shard_record *r)
{
	char version[SHARD_VERSION_SIZE], *options;
	bool same;

	if (r->shard.index != p->args.shard.index ||
	    r->shard.count != p->args.shard.count ||
	    memcmp(r->plan, plan, sizeof(r->plan)) != 0 ||
	    strcmp(r->version, shard_log_version(version)) != 0)
		return false;
	options = shard_log_options(&p->args);
	same = strcmp(r->options, options) == 0;
	free(options);
	return same;
}

/* --- is INPUT older? ----------------------------------------------------------------- */

/*
 * Whether PATH was changed last before THAN.  The change time also covers what no plan
 * has, such as attributes.
 */
static bool is_older(const char *path, const struct timespec *than)
{
	struct stat st;

	return below_lstat(path, &st) == 0 &&
	       (st.st_ctim.tv_sec < than->tv_sec || (st.st_ctim.tv_sec == than->tv_sec &&
						     st.st_ctim.tv_nsec < than->tv_nsec));
}

static bool is_all_older(const struct packing *p, const struct timespec *than)
{
	if (!is_older(p->args.input, than))
		return false;
	for (size_t i = 0; i < p->scan.n_entries; i++)
		if (!is_older(p->scan.entries[i].path, than))
			return false;
	return true;
}

static bool is_newer_than_input(const struct packing *p)
{
	char *record = xasprintf("%s/" SHARD_RECORD, p->archives);
	struct stat st = {0};
	bool there = below_lstat(record, &st) == 0;

	free(record);
	return there && is_all_older(p, &st.st_mtim);
}

/* ------------------------------------------------------------------------------------- */

bool shard_done(const struct packing *p, const uint8_t plan[16])
{
	struct kpackx_error ignored = {0};
	struct shard_part part;
	bool done;

	if (!is_newer_than_input(p))
		return false;
	/* another user's record would keep root from packing */
	done = !shard_part_open(p->args.output, &part, &ignored) &&
	       (geteuid() != 0 || part.owner == 0) && is_of_run(p, plan, &part.record) &&
	       !shard_part_check(&part, &ignored);
	shard_part_close(&part);
	return done;
}
