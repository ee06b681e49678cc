/* SPDX-License-Identifier: MIT */
#include "split_report.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/pack/report.h"
#include "joined.h"
#include "split_move.h"
#include "core/target/target.h"

/* --- contents of a tree ------------------------------------------------------------ */

struct sums {
	size_t files, archives;
	uint64_t bytes;
};

static const struct output_tree *part_in(const struct split_prefix *i, const char *name)
{
	size_t number = partition_find(&i->parts, name);

	return number == PARTITION_NONE ? NULL : &i->parts.items[number];
}

/* Whether archive K of PART is in the prefix, and not joined with another's. */
static bool has_archive(const struct split *s, const struct split_prefix *i,
			const struct output_tree *part, size_t k)
{
	return split_archive_home(s, i, part->name, part->archives[k], NULL) == i;
}

/* The size of an archive in its published tree. */
static uint64_t archive_size(const struct split *s, const struct split_tree *tree,
			     const struct split_prefix *i, const char *name)
{
	struct stat st = {0};
	char *relative = split_archive_path(i, name);
	char *path = xasprintf("%s/%s%s%s/%s", s->args->output, tree->name,
			       *i->prefix->path ? "/" : "", i->prefix->path, relative);

	if (below_stat(path, &st) < 0) {
		report_error(path, "note: its size is missing in the sums: %s",
			     strerror(errno));
		st.st_size = 0;
	}
	free(relative);
	free(path);
	return (uint64_t)st.st_size;
}

static uint64_t entry_size(const struct split_prefix *i, size_t entry)
{
	const struct scan_entry *e = &i->packing.scan.entries[entry];
	const struct disposition *o = &i->packing.dispositions.items[entry];

	if (!S_ISREG(e->mode) || o->fate == FATE_LINKED)
		return 0;
	return o->fate == FATE_CONVERTED ? o->after : e->id.size;
}

static void add_prefix(struct sums *sums, const struct split *s,
		       const struct split_tree *tree, const struct split_prefix *prefix)
{
	const struct output_tree *part = part_in(prefix, tree->part);

	if (!part)
		return;
	for (size_t i = 0; i < part->n_entries; i++)
		sums->bytes += entry_size(prefix, part->entries[i]);
	sums->files += part->n_entries;
	for (size_t i = 0; i < part->n_archives; i++) {
		if (!has_archive(s, prefix, part, i))
			continue;
		sums->bytes += archive_size(s, tree, prefix, part->archives[i]);
		sums->archives++;
	}
}

/* Add what is in no prefix. */
static void add_outside(struct sums *sums, const struct outside *outside)
{
	for (size_t i = 0; i < outside->count; i++) {
		const struct outside_entry *e = &outside->items[i];

		if (e->left || S_ISDIR(e->id.mode))
			continue;
		sums->files++;
		sums->bytes += S_ISREG(e->id.mode) ? e->id.size : 0;
	}
}

static struct sums sum_up(const struct split *s, const struct split_tree *tree)
{
	struct sums sums = {0};

	for (size_t i = 0; i < s->n_items; i++)
		add_prefix(&sums, s, tree, &s->items[i]);
	if (strcmp(tree->part, KP_ARCH_GENERIC) == 0)
		add_outside(&sums, &s->outside);
	return sums;
}

/* --- text -------------------------------------------------------------------------- */

void split_report_notes(const struct split *s)
{
	for (size_t i = 0; i < s->n_items; i++)
		pack_report_dispositions(&s->items[i].packing.scan,
					 &s->items[i].packing.dispositions,
					 s->args->quiet);
	for (size_t i = 0; i < s->outside.count && !s->args->quiet; i++)
		if (s->outside.items[i].left)
			report_error(s->outside.items[i].path, "note: left out: %s",
				     s->outside.items[i].left);
}

static void print_dropped(const struct split *s)
{
	for (size_t i = 0; i < s->n_dropped; i++) {
		const struct split_dropped *d = &s->dropped[i];

		fputs("dropped ", stdout);
		report_text(d->arch);
		printf(": %zu code objects, %zu files, %" PRIu64 " bytes\n", d->objects,
		       d->files, d->bytes);
	}
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
	print_dropped(s);
}

/* --- JSON -------------------------------------------------------------------------- */

static void add_unique(json_t *list, char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *text = report_json_text(texts[i]), *there;
		size_t at;
		bool known = false;

		json_array_foreach(list, at, there) known |= json_equal(there, text) != 0;
		if (!known)
			json_array_append(list, text);
		json_decref(text);
	}
}

/* The path of the archive NAME below the tree's root. */
static json_t *json_archive(const struct split_prefix *i, const char *name)
{
	char *relative = split_archive_path(i, name);
	char *path = xasprintf("%s%s%s", i->prefix->path, *i->prefix->path ? "/" : "",
			       relative);
	json_t *text = report_json_text(path);

	free(relative);
	free(path);
	return text;
}

static json_t *json_tree(const struct split *s, const struct split_tree *tree)
{
	json_t *arches = json_array(), *archives = json_array(), *prefixes = json_array();
	struct sums sums = sum_up(s, tree);

	for (size_t i = 0; i < s->n_items; i++) {
		const struct split_prefix *prefix = &s->items[i];
		const struct output_tree *part = part_in(prefix, tree->part);

		if (!part || !split_contributes(prefix, tree->part))
			continue;
		add_unique(arches, part->arches, part->n_arches);
		json_array_append_new(prefixes, report_json_text(prefix->prefix->path));
		for (size_t k = 0; k < part->n_archives; k++)
			if (has_archive(s, prefix, part, k))
				json_array_append_new(
					archives,
					json_archive(prefix, part->archives[k]));
	}
	return json_pack("{so so sb so so so sI sI}", "name",
			 report_json_text(tree->name), "part",
			 report_json_text(tree->part), "family", tree->family, "arches",
			 arches, "prefixes", prefixes, "archives", archives, "files",
			 (json_int_t)sums.files, "bytes", (json_int_t)sums.bytes);
}

static json_t *json_dropped(const struct split *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_dropped; i++)
		json_array_append_new(
			list, json_pack("{so sI sI sI}", "arch",
					report_json_text(s->dropped[i].arch), "objects",
					(json_int_t)s->dropped[i].objects, "files",
					(json_int_t)s->dropped[i].files, "bytes",
					(json_int_t)s->dropped[i].bytes));
	return list;
}

static json_t *json_left(const struct split *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_items; i++) {
		const struct packing *p = &s->items[i].packing;

		for (size_t k = 0; k < p->scan.n_entries; k++)
			if (p->dispositions.items[k].fate == FATE_LEFT_OUT)
				json_array_append_new(
					list, report_json_text(p->scan.entries[k].path));
	}
	for (size_t i = 0; i < s->outside.count; i++)
		if (s->outside.items[i].left)
			json_array_append_new(list,
					      report_json_text(s->outside.items[i].path));
	return list;
}

json_t *split_report_json(const struct split *s)
{
	json_t *trees = json_array(), *absent = json_array();

	for (size_t i = 0; i < s->n_trees; i++)
		json_array_append_new(trees, json_tree(s, &s->trees[i]));
	for (size_t i = 0; i < s->prefixes.count; i++)
		if (s->prefixes.items[i].absent)
			json_array_append_new(
				absent, report_json_text(s->prefixes.items[i].path));
	return json_pack("{so so so so so so so}", "input", report_json_text(s->input),
			 "output", report_json_text(s->args->output), "name",
			 report_json_text(s->name), "trees", trees, "absent_prefixes",
			 absent, "dropped", json_dropped(s), "left_out", json_left(s));
}
