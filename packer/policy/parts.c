/* SPDX-License-Identifier: MIT */
#include "parts.h"
#include <stdlib.h>
#include <string.h>
#include "core/target/target.h"
#include "gpu_list.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"

/* A file with code. */
struct code_file {
	char *part;
	size_t entry; /* of the scan */
	bool *has;    /* per GPU of the filter: whether there is code for it */
	bool is_new;
};

struct code_files {
	const struct scan *scan;
	const struct kp_choice *gpus;
	struct code_file *items;
	size_t count, cap;
};

/* --- the files with code ------------------------------------------------------------- */

/* Note that a file has code for ARCH; false: ARCH is not known, or suits every GPU. */
static bool note_arch(const struct code_files *files, bool *has, const char *arch,
		      bool neutral_counts)
{
	struct kp_target code;
	bool neutral;

	if (kp_target_parse(kp_span_str(arch), &code, NULL))
		return false;
	neutral = kp_target_neutral(&code);
	for (size_t i = 0; i < files->gpus->count; i++)
		has[i] |=
			neutral ? neutral_counts : kp_choice_takes(files->gpus, i, &code);
	return neutral ? neutral_counts : code.known != 0;
}

static void add_file(struct code_files *files, size_t entry, char *part, bool *has,
		     bool is_new)
{
	xgrow(&files->items, files->count, &files->cap, sizeof(*files->items));
	files->items[files->count++] = (struct code_file){part, entry, has, is_new};
}

static void add_binary(struct code_files *files, const struct input *in)
{
	const char *path = files->scan->entries[in->entry].relative;
	const char *version = strstr(path, ".so.");
	bool *has = xcalloc(files->gpus->count + 1, sizeof(*has)), any = false;

	for (size_t i = 0; i < in->n_images; i++)
		if (in->packed[i] && in->images[i].size)
			any |= note_arch(files, has, in->images[i].arch, true);
	if (any)
		add_file(files, in->entry,
			 version ? xstrndup(path, (size_t)(version - path) + 3)
				 : xstrdup(path),
			 has, true);
	else
		free(has);
}

/* Add a file of a database; one for every GPU says nothing about any. */
static void add_database_file(struct code_files *files, size_t file, bool is_new)
{
	const struct library_object *o = files->scan->found.objects[file];
	size_t entry = files->scan->file_entries[file];
	const char *path = files->scan->entries[entry].relative;
	const char *name = strrchr(path, '/');
	bool *has = xcalloc(files->gpus->count + 1, sizeof(*has)), any = false;

	for (size_t i = 0; i < o->n_arches; i++) {
		char target[KP_TARGET_TEXT_MAX];

		library_object_target(o, i, target);
		any |= note_arch(files, has, target, false);
	}
	if (any)
		add_file(files, entry,
			 xasprintf("%.*s/", name ? (int)(name - path) : 1,
				   name ? path : "."),
			 has, is_new);
	else
		free(has);
}

static bool is_new(const struct scan *scan, size_t entry)
{
	const struct scan_entry *e = &scan->entries[entry];

	return !scan->skip.known ||
	       !scan->skip.known(scan->skip.arg, e->relative, &e->id);
}

static int by_part(const void *a, const void *b)
{
	const struct code_file *x = a, *y = b;
	int order = strcmp(x->part, y->part);

	return order ? order : KP_ORDER(x->entry, y->entry);
}

static void find_files(struct code_files *files)
{
	const struct scan *scan = files->scan;

	for (size_t i = 0; i < scan->n_inputs; i++)
		if (!scan->entries[scan->inputs[i]->entry].database)
			add_binary(files, scan->inputs[i]);
	for (size_t i = 0; i < scan->files.count && scan->found.objects; i++)
		if (scan->found.objects[i])
			add_database_file(files, i, is_new(scan, scan->file_entries[i]));
	if (files->count)
		qsort(files->items, files->count, sizeof(*files->items), by_part);
}

/* --- parts --------------------------------------------------------------------------- */

/* Files of one part: successive ones. */
struct part_files {
	struct code_file *first;
	size_t count;
	bool any_new;
};

/* The files of the part that begins with the file I; the first one's `has` is of all. */
static struct part_files part_at(const struct code_files *files, size_t i)
{
	struct part_files p = {.first = &files->items[i]};

	for (; i < files->count && strcmp(files->items[i].part, p.first->part) == 0;
	     i++) {
		for (size_t g = 0; g < files->gpus->count; g++)
			p.first->has[g] |= files->items[i].has[g];
		p.any_new |= files->items[i].is_new;
		p.count++;
	}
	return p;
}

static void gpu_name(const struct code_files *files, size_t gpu,
		     char out[KP_TARGET_TEXT_MAX])
{
	kp_target_format(&files->gpus->gpus[gpu], out);
}

static char *gpus_of(const struct code_files *files, const bool *has)
{
	char *list = xstrdup("");

	for (size_t g = 0; g < files->gpus->count; g++) {
		char name[KP_TARGET_TEXT_MAX], *longer;

		if (!has[g])
			continue;
		gpu_name(files, g, name);
		longer = xasprintf("%s%s%s", list, *list ? "," : "", name);
		free(list);
		list = longer;
	}
	if (*list)
		return list;
	free(list);
	return xstrdup("-");
}

/* Whether S has the name of a directory's part, and files of it are still packed. */
static bool has_packed(const struct state *s, const char *part)
{
	size_t n = strlen(part);

	for (size_t i = 0; i < s->n_files && part[n - 1] == '/'; i++) {
		const char *path = s->files[i].path, *name = strrchr(path, '/');
		size_t dir = name ? (size_t)(name - path) : 1;

		if (s->files[i].kind == STATE_PACKED && dir == n - 1 &&
		    memcmp(name ? path : ".", part, dir) == 0)
			return true;
	}
	return false;
}

/* What archives have of a directory is not known by GPU: nothing of it is lost. */
static void keep_packed(const struct policy_tree *t, const struct code_files *files)
{
	for (size_t i = 0; i < files->count;) {
		const struct part_files p = part_at(files, i);
		const char *had = state_find_part(&t->state, p.first->part);

		i += p.count;
		if (!had || !has_packed(&t->state, p.first->part))
			continue;
		for (size_t g = 0; g < files->gpus->count; g++) {
			char name[KP_TARGET_TEXT_MAX];

			gpu_name(files, g, name);
			p.first->has[g] |= gpu_list_has(had, name, strlen(name));
		}
	}
}

/* Whether the part had code for GPU before, and has none any more. */
static bool part_lost(const struct policy_tree *t, const struct code_files *files,
		      const struct part_files *p, size_t gpu)
{
	const char *had = state_find_part(&t->state, p->first->part);
	char name[KP_TARGET_TEXT_MAX];

	gpu_name(files, gpu, name);
	return p->any_new && had && !p->first->has[gpu] &&
	       gpu_list_has(had, name, strlen(name));
}

static void warn_of_gpu(const struct policy_tree *t, const struct code_files *files,
			size_t gpu)
{
	const char *tree = strcmp(t->policy->tree, "/") ? t->policy->tree : "";
	char **paths = xcalloc(files->count + 1, sizeof(*paths));
	char name[KP_TARGET_TEXT_MAX], *packages;
	struct owners owners;
	const char *first = NULL;
	size_t n = 0, n_parts = 0;

	for (size_t i = 0; i < files->count;) {
		const struct part_files p = part_at(files, i);

		i += p.count;
		if (!part_lost(t, files, &p, gpu))
			continue;
		first = n_parts++ ? first : p.first->part;
		for (size_t k = 0; k < p.count; k++)
			if (p.first[k].is_new)
				paths[n++] = xasprintf(
					"%s/%s", tree,
					files->scan->entries[p.first[k].entry].relative);
	}
	owners_find(NULL, (const char *const *)paths, n, &owners);
	packages = owners_text(&owners);
	owners_fini(&owners);
	gpu_name(files, gpu, name);
	if (n_parts)
		report_error(t->policy->name,
			     "warning: %s: new files have no code for it, and older ones "
			     "had: %s%s: to use this GPU, install the older version "
			     "again%s%s",
			     name, first, n_parts > 1 ? " and other files" : "",
			     *packages ? ": packages" : "", packages);
	free(packages);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
}

/* The parts of this run, and those of earlier runs of which this one saw nothing new. */
static void save_parts(struct policy_tree *t, const struct code_files *files)
{
	struct state *s = &t->state;
	struct state_part *parts = xcalloc(s->n_parts + files->count + 1, sizeof(*parts));
	size_t n = 0, old = 0;

	for (size_t i = 0; i < files->count || old < s->n_parts;) {
		struct part_files p = {0};
		int order = 1;

		if (i < files->count) {
			p = part_at(files, i);
			order = old < s->n_parts
					? strcmp(p.first->part, s->parts[old].name)
					: -1;
		}
		if (order > 0) {
			parts[n++] = (struct state_part){xstrdup(s->parts[old].name),
							 xstrdup(s->parts[old].gpus)};
			old++;
			continue;
		}
		parts[n++] = (struct state_part){xstrdup(p.first->part),
						 gpus_of(files, p.first->has)};
		old += order == 0;
		i += p.count;
	}
	state_set_parts(s, parts, n);
}

void parts_compare(struct policy_tree *t, const struct scan *scan,
		   const struct arch_filter *filter, bool warn)
{
	struct code_files files = {.scan = scan, .gpus = &filter->chosen};

	find_files(&files);
	keep_packed(t, &files);
	for (size_t g = 0; g < filter->chosen.count && warn; g++)
		warn_of_gpu(t, &files, g);
	save_parts(t, &files);
	for (size_t i = 0; i < files.count; i++) {
		free(files.items[i].part);
		free(files.items[i].has);
	}
	free(files.items);
}
