/* SPDX-License-Identifier: MIT */
/*
 * The result of kpack split: a table with a row for each tree, or JSON, with what
 * --gpu-targets dropped.  Both are printed after the trees have got their names: sizes of
 * archives are those of the files, everything else is known from the scan.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/pack/report.h"
#include "split.h"

struct sums {
	size_t files, archives;
	uint64_t bytes;
};

/* Whether archive K of PART is in the prefix, and not joined with another's. */
static bool has_archive(const struct split *s, const struct split_prefix *p,
			const struct output_tree *part, size_t k)
{
	return split_archive_home(s, p, part->name, part->archives[k], NULL) == p;
}

/* Sum up what TREE has.  Hard links count as files, but their bytes only once. */
static struct sums sum_up(const struct split *s, const struct split_tree *tree)
{
	struct sums sums = {0};

	for (size_t i = 0; i < s->n_items; i++) {
		const struct split_prefix *p = &s->items[i];
		const struct output_tree *part = partition_find(&p->parts, tree->part);

		for (size_t k = 0; part && k < part->n_entries; k++) {
			size_t entry = part->entries[k];
			const struct scan_entry *e = &p->packing.scan.entries[entry];
			const struct disposition *o =
				&p->packing.dispositions.items[entry];

			sums.files++;
			if (S_ISREG(e->mode) && o->fate != FATE_LINKED)
				sums.bytes +=
					o->fate == FATE_CONVERTED ? o->after : e->id.size;
		}
		for (size_t k = 0; part && k < part->n_archives; k++) {
			KP_AUTO_FREE char *relative =
				split_archive_path(p, part->archives[k]);
			KP_AUTO_FREE char *path = xasprintf("%s/%s/%s", s->args->output,
							    tree->name, relative);
			struct stat st;

			if (!has_archive(s, p, part, k))
				continue;
			sums.archives++;
			if (below_stat(path, &st) == 0)
				sums.bytes += (uint64_t)st.st_size;
			else
				report_error(path,
					     "note: its size is missing in the sums: %s",
					     strerror(errno));
		}
	}
	for (size_t i = 0; i < s->n_outside && tree == split_generic(s); i++) {
		const struct split_outside *e = &s->outside[i];

		if (e->left || S_ISDIR(e->id.mode))
			continue;
		sums.files++;
		sums.bytes += S_ISREG(e->id.mode) ? e->id.size : 0;
	}
	return sums;
}

void split_report_notes(const struct split *s)
{
	for (size_t i = 0; i < s->n_items; i++)
		pack_report_dispositions(&s->items[i].packing.scan,
					 &s->items[i].packing.dispositions,
					 s->args->quiet);
	for (size_t i = 0; i < s->n_outside && !s->args->quiet; i++)
		if (s->outside[i].left)
			report_error(s->outside[i].path, "note: left out: %s",
				     s->outside[i].left);
}

void split_report(const struct split *s)
{
	if (s->args->quiet)
		return;
	printf("%-40s %10s %10s %16s\n", "tree", "files", "archives", "bytes");
	for (size_t i = 0; i < s->n_trees; i++) {
		struct sums sums = sum_up(s, &s->trees[i]);
		size_t width = strlen(s->trees[i].name);

		report_text(s->trees[i].name);
		printf("%*s %10zu %10zu %16" PRIu64 "\n",
		       width < 40 ? (int)(40 - width) : 0, "", sums.files, sums.archives,
		       sums.bytes);
	}
	for (size_t i = 0; i < s->n_dropped; i++) {
		fputs("dropped ", stdout);
		report_text(s->dropped[i].arch);
		printf(": %zu code objects, %zu files, %" PRIu64 " bytes\n",
		       s->dropped[i].objects, s->dropped[i].files, s->dropped[i].bytes);
	}
}

/* --- JSON -------------------------------------------------------------------------- */

static void add_text(json_t *list, const char *text)
{
	json_array_append_new(list, report_json_text(text));
}

/* Several prefixes may have code for one architecture, which is listed once. */
static json_t *json_tree(const struct split *s, const struct split_tree *tree)
{
	json_t *arches = json_array(), *archives = json_array(), *prefixes = json_array();
	json_t *seen = json_object();
	struct sums sums = sum_up(s, tree);

	for (size_t i = 0; i < s->n_items; i++) {
		const struct split_prefix *p = &s->items[i];
		const struct output_tree *part = partition_find(&p->parts, tree->part);

		if (!split_contributes(p, tree->part))
			continue;
		for (size_t k = 0; k < part->n_arches; k++) {
			const char *arch = part->arches[k];

			if (!json_object_get(seen, arch))
				add_text(arches, arch);
			json_object_set_new(seen, arch, json_true());
		}
		add_text(prefixes, p->path);
		for (size_t k = 0; k < part->n_archives; k++) {
			KP_AUTO_FREE char *path =
				split_archive_path(p, part->archives[k]);

			if (has_archive(s, p, part, k))
				add_text(archives, path);
		}
	}
	json_decref(seen);
	return json_pack("{so so sb so so so sI sI}", "name",
			 report_json_text(tree->name), "part",
			 report_json_text(tree->part), "family", tree->family, "arches",
			 arches, "prefixes", prefixes, "archives", archives, "files",
			 (json_int_t)sums.files, "bytes", (json_int_t)sums.bytes);
}

json_t *split_report_json(const struct split *s)
{
	json_t *trees = json_array(), *absent = json_array();
	json_t *dropped = json_array(), *left = json_array();

	for (size_t i = 0; i < s->n_trees; i++)
		json_array_append_new(trees, json_tree(s, &s->trees[i]));
	for (size_t i = 0; i < s->prefixes.count; i++)
		if (s->prefixes.items[i].absent)
			add_text(absent, s->prefixes.items[i].path);
	for (size_t i = 0; i < s->n_dropped; i++)
		json_array_append_new(
			dropped, json_pack("{so sI sI sI}", "arch",
					   report_json_text(s->dropped[i].arch),
					   "objects", (json_int_t)s->dropped[i].objects,
					   "files", (json_int_t)s->dropped[i].files,
					   "bytes", (json_int_t)s->dropped[i].bytes));
	for (size_t i = 0; i < s->n_items; i++) {
		const struct packing *p = &s->items[i].packing;

		for (size_t k = 0; k < p->scan.n_entries; k++)
			if (p->dispositions.items[k].fate == FATE_LEFT_OUT)
				add_text(left, p->scan.entries[k].path);
	}
	for (size_t i = 0; i < s->n_outside; i++)
		if (s->outside[i].left)
			add_text(left, s->outside[i].path);
	return json_pack("{so so so so so so so}", "input", report_json_text(s->input),
			 "output", report_json_text(s->args->output), "name",
			 report_json_text(s->name), "trees", trees, "absent_prefixes",
			 absent, "dropped", dropped, "left_out", left);
}
