/* SPDX-License-Identifier: MIT */
#include "split_groups.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

bool split_has_code(const struct split_prefix *i)
{
	for (size_t k = 0; k < i->packing.scan.n_inputs; k++)
		if (i->packing.scan.inputs[k]->kind == INPUT_HOST)
			return true;
	return false;
}

/* True if packing writes archives for the prefix. */
static bool stores_code(const struct split_prefix *i)
{
	for (size_t k = 0; k < i->packing.scan.n_inputs; k++)
		if (i->packing.scan.inputs[k]->kind == INPUT_DATABASE)
			return true;
	return split_has_code(i);
}

static bool is_taken(const struct split *s, const struct split_prefix *until,
		     const char *group)
{
	for (const struct split_prefix *i = s->items; i < until; i++)
		if (i->packing.args.group && strcmp(i->packing.args.group, group) == 0)
			return true;
	return false;
}

/* True for "blas.2", which would be mistaken for the second volume of "blas". */
static bool ends_like_volume(const char *group)
{
	const char *dot = strrchr(group, '.');

	return dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == '\0';
}

static char *group_of(const struct split *s, const struct split_prefix *i)
{
	char *group = xasprintf("%s.%s", s->name, i->prefix->path);

	for (char *c = group + strlen(s->name); *c; c++)
		if (*c == '/')
			*c = '.';
	while (ends_like_volume(group) || is_taken(s, i, group)) {
		char *longer = xasprintf("%sx", group);

		free(group);
		group = longer;
	}
	return group;
}

static kpack_error_t choose_group(const struct split *s, struct split_prefix *i,
				  bool first, struct kpackx_error *why)
{
	char *group = first ? xstrdup(s->name) : group_of(s, i);

	i->packing.args.group = group;
	if (!kp_component_ok(kp_span_str(group)) || !kp_text_ok(kp_span_str(group)))
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"the group '%s' cannot be part of a file name: give --name",
			group);
	return KPACK_SUCCESS;
}

/* A prefix that stores nothing does not use up the name of the trees. */
kpack_error_t split_choose_groups(struct split *s, struct kpackx_error *why)
{
	bool first = true;

	for (size_t i = 0; i < s->n_items; i++) {
		bool any = stores_code(&s->items[i]);

		KP_TRY(choose_group(s, &s->items[i], s->joined || first || !any, why));
		first = first && !any;
	}
	return KPACK_SUCCESS;
}
