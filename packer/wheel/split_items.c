/* SPDX-License-Identifier: MIT */
#include "split_items.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

bool wheel_items_made(const struct dist_info *info, const char *path)
{
	static const char *const names[] = {"RECORD", "RECORD.jws", "RECORD.p7s",
					    "METADATA"};
	size_t n = strlen(info->dir);

	if (strncmp(path, info->dir, n) != 0 || path[n] != '/')
		return false;
	for (size_t i = 0; i < KP_COUNT(names); i++)
		if (strcmp(path + n + 1, names[i]) == 0)
			return true;
	return false;
}

/* Copies the paths of ITEM. */
static void add_item(struct wheel_items *list, const struct wheel_item *item)
{
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	list->items[list->count] = *item;
	list->items[list->count].path = xstrdup(item->path);
	list->items[list->count].disk = item->disk ? xstrdup(item->disk) : NULL;
	list->count++;
}

/* --- members ----------------------------------------------------------------------- */

struct adder {
	struct wheel_items *list;
	struct wheel_source *source;
	/* Per item of the partition: its output wheel; NULL: the host wheel. */
	const struct device_wheel **devices;
};

/*
 * If the source was a directory, its temporary wheel only stores: compress the file now.
 */
static void add_member(struct adder *a, struct wheel_item *item)
{
	const struct wheel_source *s = a->source;
	const char *inside = wheel_source_inside(s, item->path);
	bool below = inside && !item->last;
	char *disk = NULL;

	if (!item->disk && s->unpacked)
		item->disk = disk = xasprintf("%s/%s", below ? s->root : s->rest,
					      below ? inside : item->path);
	add_item(a->list, item);
	free(disk);
}

/* A member inside the overlay. */
static kpack_error_t add_inside(struct adder *a, struct wheel_item *item,
				const char *inside, struct kpackx_error *why)
{
	const struct packing *p = &a->source->packing;
	size_t entry, device;

	if (!scan_find(&p->scan, kp_span_str(inside), &entry))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: it disappeared",
			       item->path);
	device = a->source->partition.tree_of[entry];
	if (device == PARTITION_NONE)
		return KPACK_SUCCESS;
	item->device = a->devices[device];
	item->database = p->scan.entries[entry].database;
	if (p->dispositions.items[entry].fate == FATE_CONVERTED) {
		item->kind = WHEEL_ITEM_BINARY;
		item->disk = p->scan.entries[entry].path;
	}
	add_member(a, item);
	return KPACK_SUCCESS;
}

static kpack_error_t add_members(struct adder *a, struct kpackx_error *why)
{
	const struct dist_info *info = &a->source->info;
	size_t count, n = strlen(info->dir);
	const struct wheel_member *members = wheel_in_members(a->source->in, &count);

	for (size_t i = 0; i < count; i++) {
		const struct wheel_member *m = &members[i];
		const char *inside = wheel_source_inside(a->source, m->path);
		struct wheel_item item = {.kind = WHEEL_ITEM_MEMBER,
					  .path = (char *)m->path,
					  .source = a->source,
					  .member = i,
					  .mode = m->mode};

		if (m->directory || wheel_items_made(info, m->path))
			continue;
		item.last = strncmp(m->path, info->dir, n) == 0 && m->path[n] == '/';
		if (inside && !item.last)
			KP_TRY(add_inside(a, &item, inside, why));
		else
			add_member(a, &item);
	}
	return KPACK_SUCCESS;
}

/* --- archives ---------------------------------------------------------------------- */

static void add_archive(struct adder *a, const char *name,
			const struct device_wheel *device)
{
	const char *overlay = a->source->overlay;
	struct wheel_item item = {
		.kind = WHEEL_ITEM_ARCHIVE,
		.path = xasprintf("%s%s" KP_ARCHIVES_DIR "/%s", overlay,
				  *overlay ? "/" : "", name),
		.source = a->source,
		.disk = xasprintf("%s/" KP_ARCHIVES_DIR "/%s", a->source->root, name),
		.mode = 0644,
		.device = device,
	};

	add_item(a->list, &item);
	free(item.path);
	free(item.disk);
}

static void add_archives(struct adder *a)
{
	const struct partition *partition = &a->source->partition;

	for (size_t i = 0; i < partition->count; i++)
		for (size_t k = 0; k < partition->items[i].n_archives; k++)
			add_archive(a, partition->items[i].archives[k], a->devices[i]);
}

/* --- output wheels ----------------------------------------------------------------- */

/* True if NAME is a family of the user. */
static bool is_asked(const struct families *families, const char *name)
{
	for (size_t i = 0; i < families->count; i++)
		if (strcmp(families->items[i].name, name) == 0)
			return true;
	return false;
}

/*
 * Find the device wheel of a kernel database's family; its members are those of its
 * files.
 */
static kpack_error_t find_family(struct device_wheels *devices,
				 const struct output_tree *from,
				 struct device_wheel **out, struct kpackx_error *why)
{
	char(*arches)[KP_TARGET_TEXT_MAX] = xcalloc(from->n_arches, sizeof(*arches));
	kpack_error_t err;

	for (size_t i = 0; i < from->n_arches; i++)
		snprintf(arches[i], sizeof(arches[i]), "%s", from->arches[i]);
	err = device_wheels_family(devices, from->name, arches, from->n_arches, out, why);
	free(arches);
	return err;
}

static kpack_error_t find_part(struct device_wheels *devices,
			       const struct output_tree *from, struct device_wheel **out,
			       struct kpackx_error *why)
{
	if (!from->family)
		return device_wheels_arch(devices, from->name, out, why);
	if (!is_asked(devices->families, from->name))
		return find_family(devices, from, out, why);
	for (size_t i = 0; i < from->n_arches; i++)
		KP_TRY(device_wheels_arch(devices, from->arches[i], out, why));
	return KPACK_SUCCESS;
}

static bool has_something(const struct output_tree *device)
{
	return device->n_entries || device->n_archives;
}

static kpack_error_t find_parts(struct adder *a, struct device_wheels *devices,
				struct kpackx_error *why)
{
	const struct partition *partition = &a->source->partition;

	a->devices = xcalloc(partition->count, sizeof(struct device_wheel *));
	for (size_t i = 0; i < partition->count; i++) {
		struct device_wheel *device = NULL;

		if (i != partition->generic && has_something(&partition->items[i]))
			KP_TRY(find_part(devices, &partition->items[i], &device, why));
		a->devices[i] = device;
	}
	return KPACK_SUCCESS;
}

/* --- all --------------------------------------------------------------------------- */

kpack_error_t wheel_items_add(struct wheel_items *list, struct wheel_source *source,
			      struct device_wheels *devices, struct kpackx_error *why)
{
	struct adder a = {.list = list, .source = source};
	kpack_error_t err = find_parts(&a, devices, why);

	if (!err)
		err = add_members(&a, why);
	if (!err)
		add_archives(&a);
	free(a.devices);
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct wheel_item *x = a, *y = b;
	int order;

	if (x->last != y->last)
		return KP_ORDER(x->last, y->last);
	order = strcmp(x->path, y->path);
	if (order == 0 && x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return order;
}

void wheel_items_sort(struct wheel_items *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_place);
}

void wheel_items_fini(struct wheel_items *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].path);
		free(list->items[i].disk);
	}
	free(list->items);
	*list = (struct wheel_items){0};
}
