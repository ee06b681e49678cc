/* SPDX-License-Identifier: MIT */
#include "partition_internal.h"
#include <stdlib.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

size_t partition_find(const struct partition *partition, const char *name)
{
	for (size_t i = 0; i < partition->count; i++)
		if (strcmp(partition->items[i].name, name) == 0)
			return i;
	return PARTITION_NONE;
}

static kpack_error_t check_name(const char *name, struct kpackx_error *why)
{
	struct kp_span s = kp_span_str(name);

	if (kp_component_ok(s) && kp_text_ok(s))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "architecture %s cannot be part of a file name", name);
}

kpack_error_t partition_take(struct partition *out, const char *name, bool family,
			     size_t *number, struct kpackx_error *why)
{
	*number = partition_find(out, name);
	if (*number != PARTITION_NONE)
		return KPACK_SUCCESS;
	KP_TRY(check_name(name, why));
	out->items = xrealloc(out->items, (out->count + 1) * sizeof(*out->items));
	out->items[out->count] =
		(struct output_tree){.name = xstrdup(name), .family = family};
	*number = out->count++;
	return KPACK_SUCCESS;
}

void partition_add_arch(struct output_tree *part, const char *arch)
{
	for (size_t i = 0; i < part->n_arches; i++)
		if (strcmp(part->arches[i], arch) == 0)
			return;
	part->arches =
		xrealloc(part->arches, (part->n_arches + 1) * sizeof(*part->arches));
	part->arches[part->n_arches++] = xstrdup(arch);
}

static void part_fini(struct output_tree *part)
{
	for (size_t i = 0; i < part->n_arches; i++)
		free(part->arches[i]);
	free(part->arches);
	free(part->entries);
	free(part->archives);
	free(part->name);
}

void partition_close(struct partition *partition)
{
	for (size_t i = 0; i < partition->count; i++)
		part_fini(&partition->items[i]);
	free(partition->items);
	free(partition->tree_of);
	*partition = (struct partition){0};
}
