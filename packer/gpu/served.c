/* SPDX-License-Identifier: MIT */
#include "served.h"
#include <stdlib.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"

/* The group of A; if it states none, its file's name. */
static struct kp_span group_of(const struct kpack_archive *a)
{
	struct kp_span group = kp_archive_group(a);

	return group.size ? group : kp_span_str(kp_path_name(kp_archive_path(a)));
}

/* Whether A has entries that are for every GPU (NEUTRAL), or that are not. */
static bool has_entries(const struct kpack_archive *a, bool neutral)
{
	struct kp_target t;

	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if ((!kp_target_parse(kp_span_str(kp_archive_arch(a, i)), &t, NULL) &&
		     kp_target_neutral(&t)) == neutral)
			return true;
	return false;
}

static bool is_listed(const struct gpu_served *served, struct kp_span group)
{
	for (size_t g = 0; g < served->n_groups; g++)
		if (kp_span_eq(served->groups[g], group))
			return true;
	return false;
}

/* Close the archives of other groups. */
static void keep_group(struct archives *set, const char *group)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (kp_span_is(group_of(set->items[i]), group))
			set->items[kept++] = set->items[i];
		else
			kp_archive_close(set->items[i]);
	}
	set->count = kept;
}

void gpu_served_open(struct gpu_served *served, int n, char **operands, const char *group)
{
	struct archives *set = &served->archives;

	*served = (struct gpu_served){0};
	archives_open(set, n, operands);
	if (group)
		keep_group(set, group);
	served->groups = xcalloc(set->count + 1, sizeof(*served->groups));
	/* a group that was requested by name counts even if it has no archive */
	if (group)
		served->groups[served->n_groups++] = kp_span_str(group);
	for (size_t i = 0; i < set->count; i++)
		if (has_entries(set->items[i], false) &&
		    !is_listed(served, group_of(set->items[i])))
			served->groups[served->n_groups++] = group_of(set->items[i]);
}

void gpu_served_close(struct gpu_served *served)
{
	free(served->groups);
	archives_close(&served->archives);
	*served = (struct gpu_served){0};
}

bool gpu_served_by(const struct gpu_served *served, size_t i, const struct gpu_kind *kind)
{
	const struct kpack_archive *a = served->archives.items[i];

	return kp_archive_serves(a, &kind->target) || has_entries(a, true);
}

bool gpu_served_group(const struct gpu_served *served, size_t g,
		      const struct gpu_kind *kind)
{
	for (size_t i = 0; i < served->archives.count; i++)
		if (kp_span_eq(group_of(served->archives.items[i]), served->groups[g]) &&
		    kp_archive_serves(served->archives.items[i], &kind->target))
			return true;
	return false;
}
