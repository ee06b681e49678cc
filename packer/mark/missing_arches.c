/* SPDX-License-Identifier: MIT */
#include "missing_arches.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"

kpack_error_t absent_add(struct absent *list, const char *file, const char *arch,
			 struct kpackx_error *why)
{
	struct absent_item item = {strdup(file), strdup(arch), false};

	if (item.file && item.arch &&
	    kp_grow(&list->items, list->count, &list->cap, sizeof(*list->items))) {
		list->items[list->count++] = item;
		return KPACK_SUCCESS;
	}
	free(item.file);
	free(item.arch);
	return kp_fail_memory(why, strlen(file), "a path");
}

static int by_arch(const void *a, const void *b)
{
	const struct absent_item *x = a, *y = b;
	int order = strcmp(x->arch, y->arch);

	return order ? order : strcmp(x->file, y->file);
}

void absent_sort(struct absent *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_arch);
}

bool absent_begins(const struct absent *list, size_t i)
{
	return i == 0 || strcmp(list->items[i - 1].arch, list->items[i].arch) != 0;
}

void absent_fini(struct absent *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].file);
		free(list->items[i].arch);
	}
	free(list->items);
	*list = (struct absent){0};
}
