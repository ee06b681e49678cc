/* SPDX-License-Identifier: MIT */
#include "look.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

/*
 * A file that is written again within one tick of the kernel's clock keeps its times.  File
 * systems without fractions of a second have ticks of up to two.
 */
static const int64_t tick = 20000000, long_tick = 2000000000;

static int64_t nanoseconds_of(const struct timespec *t)
{
	return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

/* Whether a file that was last changed at CTIME may have changed again since START. */
static bool is_unsure(const struct timespec *ctime, int64_t start)
{
	int64_t margin = ctime->tv_nsec ? tick : long_tick;

	return nanoseconds_of(ctime) > start - margin;
}

static void add_hash(struct kp_hash **list, size_t *n, size_t *cap,
		     const struct kp_hash *hash)
{
	xgrow(list, *n, cap, sizeof(**list));
	(*list)[(*n)++] = *hash;
}

static void take_file(struct look *look, const struct state *state,
		      const struct tree_item *item, int64_t start)
{
	const struct stat *st = &item->st;
	struct kp_hash hash = state_hash(item->rest, st->st_ino, (uint64_t)st->st_size,
					 &st->st_mtim, &st->st_ctim, st->st_mode);

	look->n_files++;
	look->n_new += !state_has_seen(state, &hash);
	add_hash(&look->hashes, &look->n_hashes, &look->hashes_cap, &hash);
	if (is_unsure(&st->st_ctim, start))
		add_hash(&look->unsure, &look->n_unsure, &look->unsure_cap, &hash);
}

void look_at(const char *tree, const struct state *state,
	     const struct mount_table *mounts, struct look *out)
{
	struct tree_list *list = tree_list_open(tree);
	struct timespec now;
	struct tree_item item;
	int64_t start;

	*out = (struct look){0};
	clock_gettime(CLOCK_REALTIME, &now);
	start = nanoseconds_of(&now);
	while (tree_list_next(list, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", below_strerror(item.error));
			out->failed = true;
		} else if (item.kind == TREE_DIR && item.level > 0 &&
			   mount_table_has_device(mounts, item.st.st_dev)) {
			tree_list_skip(list);
		} else if (item.kind == TREE_OTHER && S_ISREG(item.st.st_mode)) {
			take_file(out, state, &item, start);
		}
	}
	tree_list_close(list);
	state_sort(out->hashes, out->n_hashes);
	state_sort(out->unsure, out->n_unsure);
}

void look_fini(struct look *look)
{
	free(look->hashes);
	free(look->unsure);
	*look = (struct look){0};
}

struct kp_hash *look_same(const struct look *before, const struct look *after, size_t *n)
{
	struct kp_hash *same = xmalloc((before->n_hashes + 1) * sizeof(*same));
	struct state now = {.seen = after->hashes, .n_seen = after->n_hashes};
	struct state unsure = {.seen = before->unsure, .n_seen = before->n_unsure};

	*n = 0;
	for (size_t i = 0; i < before->n_hashes; i++)
		if (state_has_seen(&now, &before->hashes[i]) &&
		    !state_has_seen(&unsure, &before->hashes[i]))
			same[(*n)++] = before->hashes[i];
	return same;
}
