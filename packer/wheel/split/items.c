/* SPDX-License-Identifier: MIT */
#include "items.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/archive/naming.h"

bool wheel_items_made(const struct dist_info *info, const char *path)
{
	static const char *const names[] = {"RECORD", "RECORD.jws", "RECORD.p7s",
					    "METADATA"};
	size_t n = strlen(info->dir);

	if (strncmp(path, info->dir, n) != 0 || path[n] != '/')
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(path + n + 1, names[i]) == 0)
			return true;
	return false;
}

static kpack_error_t add_item(struct wheel_items *list, const struct wheel_item *item,
			      struct kpackx_error *why)
{
	if (!kp_grow(&list->items, list->count, &list->cap, sizeof(*list->items)))
		return kp_fail_memory(why, list->count, "members");
	list->items[list->count] = *item;
	list->items[list->count].path = strdup(item->path);
	list->items[list->count].disk = item->disk ? strdup(item->disk) : NULL;
	list->count++;
	return list->items[list->count - 1].path &&
			       (!item->disk || list->items[list->count - 1].disk)
		       ? KPACK_SUCCESS
		       : kp_fail_memory(why, strlen(item->path), "a path");
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
static kpack_error_t add_member(struct adder *a, struct wheel_item *item,
				struct kpackx_error *why)
{
	const struct wheel_source *s = a->source;
	const char *inside = wheel_source_inside(s, item->path);
	bool below = inside && !item->last;
	kpack_error_t err;
	char *disk;

	if (item->disk || !s->unpacked)
		return add_item(a->list, item, why);
	if (asprintf(&disk, "%s/%s", below ? s->root : s->rest,
		     below ? inside : item->path) < 0)
		return kp_fail_memory(why, strlen(item->path), "a path");
	item->disk = disk;
	err = add_item(a->list, item, why);
	free(disk);
	return err;
}

/* A member inside the overlay. */
static kpack_error_t add_inside(struct adder *a, struct wheel_item *item,
				const char *inside, struct kpackx_error *why)
{
	const struct packing *p = &a->source->packing;
	size_t entry, device;

	if (!wheel_source_entry(a->source, inside, &entry))
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
	return add_member(a, item, why);
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
			KP_TRY(add_member(a, &item, why));
	}
	return KPACK_SUCCESS;
}

/* --- archives ---------------------------------------------------------------------- */

static kpack_error_t add_archive(struct adder *a, const char *name,
				 const struct device_wheel *device,
				 struct kpackx_error *why)
{
	const char *overlay = a->source->overlay;
	struct wheel_item item = {.kind = WHEEL_ITEM_ARCHIVE,
				  .source = a->source,
				  .mode = 0644,
				  .device = device};
	kpack_error_t err = KPACK_SUCCESS;

	if (asprintf(&item.path, "%s%s" KP_ARCHIVES_DIR "/%s", overlay,
		     *overlay ? "/" : "", name) < 0)
		return kp_fail_memory(why, strlen(name), "a path");
	if (asprintf(&item.disk, "%s/" KP_ARCHIVES_DIR "/%s", a->source->root, name) <
	    0) {
		item.disk = NULL;
		err = kp_fail_memory(why, strlen(name), "a path");
	}
	if (!err)
		err = add_item(a->list, &item, why);
	free(item.path);
	free(item.disk);
	return err;
}

static kpack_error_t add_archives(struct adder *a, struct kpackx_error *why)
{
	const struct partition *partition = &a->source->partition;

	for (size_t i = 0; i < partition->count; i++)
		for (size_t k = 0; k < partition->items[i].n_archives; k++)
			KP_TRY(add_archive(a, partition->items[i].archives[k],
					   a->devices[i], why));
	return KPACK_SUCCESS;
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
	char(*arches)[KP_TARGET_TEXT_MAX] = calloc(from->n_arches + 1, sizeof(*arches));
	kpack_error_t err;

	if (!arches)
		return kp_fail_memory(why, from->n_arches, "architectures");
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

	a->devices = calloc(partition->count + 1, sizeof(struct device_wheel *));
	if (!a->devices)
		return kp_fail_memory(why, partition->count, "device wheels");
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
		err = add_archives(&a, why);
	free(a.devices);
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct wheel_item *x = a, *y = b;
	int order;

	if (x->last != y->last)
		return x->last ? 1 : -1;
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

kpack_error_t wheel_item_size(const struct wheel_item *item, uint64_t *size,
			      struct kpackx_error *why)
{
	struct stat st;
	size_t count;

	if (!item->disk) {
		*size = wheel_in_members(item->source->in, &count)[item->member].size;
		return KPACK_SUCCESS;
	}
	if (stat(item->disk, &st) < 0)
		return kp_fail_errno(why, errno, "%s: cannot stat", item->path);
	*size = (uint64_t)st.st_size;
	return KPACK_SUCCESS;
}
