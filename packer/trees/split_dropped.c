/* SPDX-License-Identifier: MIT */
#include "split_dropped.h"
#include <stdlib.h>
#include "old_archive.h"
#include "packer/cli/xalloc.h"

static struct split_dropped *row_of(struct split *s, const char *arch)
{
	for (size_t i = 0; i < s->n_dropped; i++)
		if (strcmp(s->dropped[i].arch, arch) == 0)
			return &s->dropped[i];
	s->dropped = xrealloc(s->dropped, (s->n_dropped + 1) * sizeof(*s->dropped));
	s->dropped[s->n_dropped] = (struct split_dropped){.arch = xstrdup(arch)};
	return &s->dropped[s->n_dropped++];
}

static void count_images(struct split *s, const struct split_prefix *i,
			 const struct input *in)
{
	struct split_dropped *row;

	for (size_t k = 0; k < in->n_images; k++) {
		const struct kp_image *image = &in->images[k];

		if (!in->packed[k] ||
		    arch_filter_has(&i->packing.args.filter, kp_span_str(image->arch)))
			continue;
		row = row_of(s, image->arch);
		row->objects++;
		row->bytes += image->size;
	}
}

static void count_files(struct split *s, const struct split_prefix *i)
{
	const struct scan *scan = &i->packing.scan;
	char target[KP_TARGET_TEXT_MAX];
	struct split_dropped *row;

	for (size_t k = 0; scan->found.objects && k < scan->files.count; k++) {
		const struct library_object *o = scan->found.objects[k];
		size_t entry = scan->file_entries[k];

		if (!o || i->packing.dispositions.items[entry].fate != FATE_NOT_WANTED)
			continue;
		library_object_target(o, 0, target);
		row = row_of(s, *o->family ? o->family : target);
		row->files++;
		row->bytes += scan->entries[entry].id.size;
	}
}

/* Count an existing archive. */
static kpack_error_t count_archive(struct split *s, const struct split_prefix *i,
				   const struct scan_entry *e, struct kpackx_error *why)
{
	struct old_archive archive;
	struct split_dropped *row;
	kpack_error_t err =
		old_archive_open(e->path, &i->packing.args.families, &archive, why);

	if (err)
		return kp_fail_prefix(why, err, "%s", e->path);
	row = row_of(s, archive.family ? archive.part : archive.arches[0]);
	row->files++;
	row->bytes += e->id.size;
	old_archive_close(&archive);
	return KPACK_SUCCESS;
}

static kpack_error_t count_archives(struct split *s, const struct split_prefix *i,
				    struct kpackx_error *why)
{
	const struct scan *scan = &i->packing.scan;

	for (size_t k = 0; k < scan->n_entries; k++)
		if (i->packing.dispositions.items[k].fate == FATE_NOT_WANTED &&
		    old_archive_is(&scan->entries[k]))
			KP_TRY(count_archive(s, i, &scan->entries[k], why));
	return KPACK_SUCCESS;
}

static int by_arch(const void *a, const void *b)
{
	return strcmp(((const struct split_dropped *)a)->arch,
		      ((const struct split_dropped *)b)->arch);
}

kpack_error_t split_count_dropped(struct split *s, struct kpackx_error *why)
{
	if (!s->args->targets)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < s->n_items; i++) {
		const struct scan *scan = &s->items[i].packing.scan;

		for (size_t k = 0; k < scan->n_inputs; k++)
			if (scan->inputs[k]->kind == INPUT_HOST)
				count_images(s, &s->items[i], scan->inputs[k]);
		count_files(s, &s->items[i]);
		KP_TRY(count_archives(s, &s->items[i], why));
	}
	if (s->n_dropped)
		qsort(s->dropped, s->n_dropped, sizeof(*s->dropped), by_arch);
	return KPACK_SUCCESS;
}

void split_free_dropped(struct split *s)
{
	for (size_t i = 0; i < s->n_dropped; i++)
		free(s->dropped[i].arch);
	free(s->dropped);
}
