/* SPDX-License-Identifier: MIT */
/*
 * What --gpu-targets leaves out.  Packing itself takes only code for these GPUs; archives that
 * the input has already are taken or dropped as a whole.  What was dropped is counted per
 * architecture, because another run is expected to make its trees.
 */
#include <stdlib.h>
#include "core/base/order.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "split.h"

/* Add to the row of ARCH, a target or the name of a family. */
static void add_dropped(struct split *s, const char *arch, size_t objects, size_t files,
			uint64_t bytes)
{
	size_t i = 0;

	while (i < s->n_dropped && strcmp(s->dropped[i].arch, arch) != 0)
		i++;
	if (i == s->n_dropped) {
		s->dropped =
			xrealloc(s->dropped, (s->n_dropped + 1) * sizeof(*s->dropped));
		s->dropped[s->n_dropped++] =
			(struct split_dropped){.arch = xstrdup(arch)};
	}
	s->dropped[i].objects += objects;
	s->dropped[i].files += files;
	s->dropped[i].bytes += bytes;
}

kpack_error_t split_drop_archives(struct split *s, struct split_prefix *p,
				  struct kpackx_error *why)
{
	struct arch_filter *filter = &p->packing.args.filter;
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t k = 0; k < p->packing.scan.n_entries && !err; k++) {
		const struct scan_entry *e = &p->packing.scan.entries[k];
		struct kpackx_error fault = {0};
		struct old_archive a;
		bool wanted, other = false;

		if (!old_archive_is(e))
			continue;
		if (old_archive_open(e->path, &p->packing.args.families, &a, &fault)) {
			report_error(e->path, "warning: %s; it stays in the generic tree",
				     fault.text);
			continue;
		}
		p->n_old++;
		wanted = a.n_arches == 0; /* it suits every GPU */
		for (size_t n = 0; n < a.n_arches; n++) {
			struct kp_span arch = kp_span_str(a.arches[n]);

			wanted |= arch_filter_match(filter, arch);
			other |= !arch_filter_has(filter, arch);
		}
		if (!wanted) {
			char *copy =
				split_path(s, split_generic(s), p->path, e->relative);

			p->n_old_dropped++;
			disposition_set(&p->packing.dispositions.items[k],
					FATE_NOT_WANTED, "not for the requested targets");
			add_dropped(s, a.family ? a.part : a.arches[0], 0, 1, e->id.size);
			if (below_unlink(copy) < 0)
				err = below_fail(why, "%s: cannot remove", copy);
			free(copy);
		} else if (other && !s->args->quiet) {
			report_error(e->path,
				     "note: also has code for other targets; it stays "
				     "as it is");
		}
		old_archive_close(&a);
	}
	return err;
}

/* Count the code objects of host binaries, and the files of kernel databases. */
static void count_dropped(struct split *s, const struct split_prefix *p)
{
	const struct scan *scan = &p->packing.scan;
	char target[KP_TARGET_TEXT_MAX];

	for (size_t k = 0; k < scan->n_inputs; k++) {
		const struct input *in = scan->inputs[k];

		for (size_t n = 0; in->kind == INPUT_HOST && n < in->n_images; n++)
			if (in->packed[n] &&
			    !arch_filter_has(&p->packing.args.filter,
					     kp_span_str(in->images[n].arch)))
				add_dropped(s, in->images[n].arch, 1, 0,
					    in->images[n].size);
	}
	for (size_t k = 0; scan->found.objects && k < scan->files.count; k++) {
		const struct library_object *o = scan->found.objects[k];
		size_t entry = scan->file_entries[k];

		if (!o || p->packing.dispositions.items[entry].fate != FATE_NOT_WANTED)
			continue;
		library_object_target(o, 0, target);
		add_dropped(s, *o->family ? o->family : target, 0, 1,
			    scan->entries[entry].id.size);
	}
}

kpack_error_t split_check_targets(struct split *s, struct kpackx_error *why)
{
	bool had = false, has = false; /* code, before the selection and after it */

	if (!s->args->targets)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < s->n_items; i++) {
		const struct split_prefix *p = &s->items[i];

		for (size_t k = 0; k < p->packing.scan.n_inputs; k++)
			had |= p->packing.scan.inputs[k]->kind == INPUT_HOST;
		had |= p->n_old > 0;
		has |= p->packing.plan.n_names > 0 || p->n_old > p->n_old_dropped;
		count_dropped(s, p);
	}
	kp_sort(s->dropped, s->n_dropped, KP_BY_TEXT(struct split_dropped, arch));
	if (!had || has)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_ARCH_NOT_FOUND,
		       "no device code objects matched --gpu-targets %s",
		       s->args->targets);
}

void split_warn_unmatched(const struct split *s)
{
	/* all prefixes have the same filter, but each has its own matches */
	const struct kp_choice *all =
		s->n_items ? &s->items[0].packing.args.filter.chosen : NULL;

	for (size_t i = 0; all && i < all->count; i++) {
		char arch[KP_TARGET_TEXT_MAX];
		bool matched = false;

		for (size_t k = 0; k < s->n_items; k++)
			matched |= s->items[k].packing.args.filter.matched[i];
		kp_target_format(&all->gpus[i], arch);
		if (!matched)
			report_error(s->input, "warning: nothing for %s", arch);
	}
}
