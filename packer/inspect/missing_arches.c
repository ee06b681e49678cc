/* SPDX-License-Identifier: MIT */
#include "missing_arches.h"
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"

void missing_arches_add(struct missing_arches *list, const char *file, const char *arch)
{
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	list->items[list->count++] =
		(struct missing_arches_item){xstrdup(file), xstrdup(arch), false};
}

static int by_arch(const void *a, const void *b)
{
	const struct missing_arches_item *x = a, *y = b;
	int order = strcmp(x->arch, y->arch);

	return order ? order : strcmp(x->file, y->file);
}

void missing_arches_sort(struct missing_arches *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_arch);
}

bool absent_begins(const struct missing_arches *list, size_t i)
{
	return i == 0 || strcmp(list->items[i - 1].arch, list->items[i].arch) != 0;
}

void missing_arches_fini(struct missing_arches *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].file);
		free(list->items[i].arch);
	}
	free(list->items);
	*list = (struct missing_arches){0};
}
