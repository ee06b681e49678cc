/* SPDX-License-Identifier: MIT */
#include "partition_internal.h"
#include <stdlib.h>
#include "old_archive.h"
#include "output_name.h"
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "core/target/target.h"

struct builder {
	const struct packing *p;
	struct partition *out;
	size_t *tree_of; /* indices of items before these are sorted */
};

/* --- files ------------------------------------------------------------------------- */

static void add_base_arches(struct output_tree *part, const struct library_object *o)
{
	char base[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < o->n_arches; i++) {
		output_name_base(o, i, base);
		partition_add_arch(part, base);
	}
}

/* Choose the output tree of a kernel database's file. */
static kpack_error_t place_file(struct builder *b, const struct library_object *o,
				size_t *number, struct kpackx_error *why)
{
	const struct family *family = output_name_family(&b->p->args.families, o);
	char base[KP_TARGET_TEXT_MAX];
	const char *name;

	*number = b->out->generic;
	if (strcmp(o->arches[0], KP_ARCH_GENERIC) == 0)
		return KPACK_SUCCESS;
	if (family)
		name = family->name;
	else if (*o->family)
		name = output_name_known(o->family);
	else if (output_name_common(o, base))
		name = base;
	else
		return KPACK_SUCCESS;
	KP_TRY(partition_take(b->out, name, family || *o->family, number, why));
	add_base_arches(&b->out->items[*number], o);
	return KPACK_SUCCESS;
}

/* Choose the output tree of each file of a kernel database that was written. */
static kpack_error_t place_files(struct builder *b, struct kpackx_error *why)
{
	const struct scan *scan = &b->p->scan;

	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];
		size_t entry = scan->file_entries[i];

		if (o && b->tree_of[entry] != PARTITION_NONE)
			KP_TRY(place_file(b, o, &b->tree_of[entry], why));
	}
	return KPACK_SUCCESS;
}

/* --- existing archives ------------------------------------------------------------- */

static kpack_error_t place_old(struct builder *b, const struct old_archive *a,
			       size_t *number, struct kpackx_error *why)
{
	if (strcmp(a->part, KP_ARCH_GENERIC) == 0)
		return KPACK_SUCCESS;
	KP_TRY(partition_take(b->out, a->part, a->family, number, why));
	for (size_t i = 0; i < a->n_arches; i++)
		partition_add_arch(&b->out->items[*number], a->arches[i]);
	return KPACK_SUCCESS;
}

/* A file that cannot be read as an archive is an ordinary file. */
static kpack_error_t place_archives_there(struct builder *b, struct kpackx_error *why)
{
	const struct scan *scan = &b->p->scan;

	for (size_t i = 0; i < scan->n_entries; i++) {
		struct old_archive archive;
		kpack_error_t err;

		if (b->tree_of[i] != b->out->generic ||
		    !old_archive_is(&scan->entries[i]) ||
		    old_archive_open(scan->entries[i].path, &b->p->args.families,
				     &archive, NULL))
			continue;
		err = place_old(b, &archive, &b->tree_of[i], why);
		old_archive_close(&archive);
		if (err)
			return err;
	}
	return KPACK_SUCCESS;
}

static bool is_there(const struct packing *p, size_t entry)
{
	switch (p->dispositions.items[entry].fate) {
	case FATE_NOTHING: /* in place: packing leaves the archives alone */
	case FATE_LEFT_OUT:
	case FATE_NOT_WANTED:
	case FATE_PACKED:
		return false;
	default:
		return true;
	}
}

/* --- directories ------------------------------------------------------------------- */

/* True if ENTRY makes the directory that contains it generic. */
static bool leaves_directory(const struct builder *b, size_t entry)
{
	enum fate fate = b->p->dispositions.items[entry].fate;

	return b->tree_of[entry] == b->out->generic || fate == FATE_PACKED ||
	       fate == FATE_LEFT_OUT;
}

/* A directory is generic if it is empty or contains something generic. */
static bool is_generic_dir(const struct builder *b, size_t dir)
{
	const struct scan *scan = &b->p->scan;
	size_t i = dir + 1, end = scan->n_entries;
	bool empty = true;

	for (; i < end && strncmp(scan->entries[i].relative, scan->entries[dir].relative,
				  strlen(scan->entries[dir].relative)) == 0;
	     i++) {
		if (!kp_path_below(scan->entries[i].relative,
				   scan->entries[dir].relative))
			continue;
		empty = false;
		if (leaves_directory(b, i))
			return true;
	}
	return empty;
}

/* Innermost first, so that a directory is decided after its subdirectories. */
static void place_directories(struct builder *b)
{
	for (size_t i = b->p->scan.n_entries; i-- > 0;)
		if (S_ISDIR(b->p->scan.entries[i].mode) && is_generic_dir(b, i))
			b->tree_of[i] = b->out->generic;
}

/* --- all of it --------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct output_tree *)a)->name,
		      ((const struct output_tree *)b)->name);
}

/* Sort the lists of each output tree. */
static void sort_lists(struct partition *out)
{
	for (size_t i = 0; i < out->count; i++) {
		struct output_tree *part = &out->items[i];

		if (part->n_arches)
			qsort(part->arches, part->n_arches, sizeof(char *),
			      kp_order_texts);
		if (part->n_archives)
			qsort(part->archives, part->n_archives, sizeof(char *),
			      kp_order_texts);
	}
}

/* Sort the output trees by name, and update the indices in tree_of. */
static void sort_parts(struct builder *b)
{
	struct partition *out = b->out;
	const char **before = xmalloc(out->count * sizeof(*before));
	size_t *now = xmalloc(out->count * sizeof(*now)), n = b->p->scan.n_entries;

	for (size_t i = 0; i < out->count; i++)
		before[i] = out->items[i].name;
	qsort(out->items, out->count, sizeof(*out->items), by_name);
	for (size_t i = 0; i < out->count; i++)
		now[i] = partition_find(out, before[i]);
	for (size_t i = 0; i < n; i++)
		if (b->tree_of[i] != PARTITION_NONE)
			b->tree_of[i] = now[b->tree_of[i]];
	free(before);
	free(now);
	out->generic = partition_find(out, KP_ARCH_GENERIC);
	sort_lists(out);
}

/* The output tree that lists ENTRY; or NULL. */
static struct output_tree *part_with(const struct builder *b, size_t entry)
{
	size_t number = b->tree_of[entry];

	return number == PARTITION_NONE || S_ISDIR(b->p->scan.entries[entry].mode)
		       ? NULL
		       : &b->out->items[number];
}

static void list_entries(struct builder *b)
{
	size_t n = b->p->scan.n_entries;
	struct output_tree *part;

	for (size_t i = 0; i < n; i++)
		if ((part = part_with(b, i)))
			part->n_entries++;
	for (size_t i = 0; i < b->out->count; i++) {
		part = &b->out->items[i];
		part->entries = xmalloc(part->n_entries * sizeof(*part->entries));
		part->n_entries = 0;
	}
	for (size_t i = 0; i < n; i++)
		if ((part = part_with(b, i)))
			part->entries[part->n_entries++] = i;
}

static kpack_error_t build_partition(struct builder *b, struct kpackx_error *why)
{
	const struct scan *scan = &b->p->scan;

	b->tree_of = xmalloc(scan->n_entries * sizeof(*b->tree_of));
	b->out->tree_of = b->tree_of;
	KP_TRY(partition_take(b->out, KP_ARCH_GENERIC, false, &b->out->generic, why));
	for (size_t i = 0; i < scan->n_entries; i++)
		b->tree_of[i] = is_there(b->p, i) ? b->out->generic : PARTITION_NONE;
	KP_TRY(place_files(b, why));
	KP_TRY(place_archives_there(b, why));
	place_directories(b);
	KP_TRY(partition_archives(b->p, b->out, why));
	sort_parts(b);
	list_entries(b);
	return KPACK_SUCCESS;
}

kpack_error_t partition_open(const struct packing *p, struct partition *out,
			     struct kpackx_error *why)
{
	struct builder b = {.p = p, .out = out};
	kpack_error_t err;

	*out = (struct partition){0};
	err = build_partition(&b, why);
	if (err)
		partition_close(out);
	return err;
}
