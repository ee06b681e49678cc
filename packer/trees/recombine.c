/* SPDX-License-Identifier: MIT */
#include "recombine.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "other_trees.h"
#include "packer/pack/write_tree.h"
#include "packer/cli/progress.h"
#include "recombine_internal.h"
#include "core/target/target.h"

/* --- what the steps share ---------------------------------------------------------- */

char *recombine_path(const struct recombine_item *item)
{
	return xasprintf("%s/%s", item->tree->path, item->file->path);
}

const char *recombine_shown(const struct recombine_item *item, char out[512])
{
	snprintf(out, 512, "%s/%s_%s/%s", item->tree->shard, item->tree->component,
		 item->tree->target, item->file->path);
	return out;
}

static void __attribute__((format(printf, 2, 0)))
print_message(const struct recombine_component *c, const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0)
		xalloc_fail(0);
	report_error(c->name, "%s", text);
	free(text);
}

void recombine_fault(struct recombine_component *c, const char *fmt, ...)
{
	va_list args;

	c->faults++;
	va_start(args, fmt);
	print_message(c, fmt, args);
	va_end(args);
}

void recombine_note(struct recombine_component *c, const char *fmt, ...)
{
	va_list args;

	c->notes++;
	if (!c->args->verbose)
		return;
	va_start(args, fmt);
	print_message(c, fmt, args);
	va_end(args);
}

/* --- a run ------------------------------------------------------------------------- */

struct run {
	const struct recombine_args *args;
	struct shard_trees trees;
	struct library_set libraries;
	struct recombine_component *components;
	size_t n_components;
	struct recombine_tree *made; /* per component its groups, then the generic one */
	size_t *owner;               /* per output tree: its component's index */
	size_t n_made;
	struct staging staging;
	size_t faults;
};

static void component_fini(struct recombine_component *c)
{
	for (size_t i = 0; i < c->n_items; i++) {
		kp_archive_close(c->items[i].archive);
		kp_marker_fini(&c->items[i].marker);
	}
	free(c->items);
	free(c->delivered);
}

static void run_fini(struct run *r)
{
	staging_close(&r->staging);
	for (size_t i = 0; i < r->n_components; i++)
		component_fini(&r->components[i]);
	for (size_t i = 0; i < r->n_made; i++)
		free(r->made[i].name);
	free(r->components);
	free(r->made);
	free(r->owner);
	library_set_close(&r->libraries);
	shard_trees_fini(&r->trees);
}

/* --- components -------------------------------------------------------------------- */

static bool is_known(const struct run *r, const char *name)
{
	for (size_t i = 0; i < r->n_components; i++)
		if (strcmp(r->components[i].name, name) == 0)
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	const struct recombine_component *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static size_t count_arches(const struct recombine_config *config)
{
	size_t n = 0;

	for (size_t i = 0; i < config->n_groups; i++)
		n += config->groups[i].n_arches;
	return n;
}

static void find_components(struct run *r)
{
	size_t n = count_arches(r->args->config);

	r->components = xcalloc(r->trees.n_trees, sizeof(*r->components));
	for (size_t i = 0; i < r->trees.n_trees; i++) {
		struct recombine_component *c = &r->components[r->n_components];

		if (is_known(r, r->trees.trees[i].component))
			continue;
		*c = (struct recombine_component){.args = r->args,
						  .trees = &r->trees,
						  .libraries = &r->libraries,
						  .name = r->trees.trees[i].component,
						  .n_arches = n,
						  .delivered = xcalloc(n, sizeof(bool))};
		r->n_components++;
	}
	qsort(r->components, r->n_components, sizeof(*r->components), by_name);
}

/* Report all faults of the request, before files are compared. */
static void check_components(struct run *r)
{
	for (size_t i = 0; i < r->args->n_components; i++)
		if (!is_known(r, r->args->components[i])) {
			report_error(r->args->shards, "no shard has a component '%s'",
				     r->args->components[i]);
			r->faults++;
		}
	if (r->n_components == 0 && r->args->n_components == 0) {
		report_error(r->args->shards, "no shard has a tree");
		r->faults++;
	}
	if (r->args->prefer &&
	    shard_trees_number(&r->trees, r->args->prefer) == r->trees.n_shards) {
		report_error(r->args->shards, "has no shard '%s' to prefer",
			     r->args->prefer);
		r->faults++;
	}
}

static void check_primary(struct run *r, struct recombine_component *c)
{
	for (size_t i = 0; i < r->trees.n_trees; i++) {
		const struct shard_tree *t = &r->trees.trees[i];

		if (strcmp(t->component, c->name) == 0 &&
		    strcmp(t->target, KP_ARCH_GENERIC) == 0 &&
		    strcmp(t->shard, r->args->config->primary) == 0)
			return;
	}
	recombine_fault(c, "the primary shard %s has no %s_" KP_ARCH_GENERIC,
			r->args->config->primary, c->name);
}

static kpack_error_t plan_component(struct run *r, struct recombine_component *c,
				    struct kpackx_error *why)
{
	check_primary(r, c);
	KP_TRY(recombine_route(c, why));
	KP_TRY(recombine_settle(c, why));
	KP_TRY(recombine_clashes(c, why));
	/* no more than one component's archives are open at a time */
	for (size_t i = 0; i < c->n_items; i++) {
		kp_archive_close(c->items[i].archive);
		c->items[i].archive = NULL;
	}
	r->faults += c->faults;
	return KPACK_SUCCESS;
}

/* --- output trees ------------------------------------------------------------------ */

static bool is_needed(const struct recombine_component *c, int dest)
{
	for (size_t i = 0; i < c->n_items; i++)
		if (c->items[i].chosen && c->items[i].dest == dest)
			return true;
	return dest == DEST_GENERIC;
}

static void add_made(struct run *r, size_t component, int dest)
{
	const struct recombine_config *config = r->args->config;

	if (!is_needed(&r->components[component], dest))
		return;
	r->made[r->n_made] = (struct recombine_tree){
		.name = xasprintf("%s_%s", r->components[component].name,
				  dest < 0 ? KP_ARCH_GENERIC : config->groups[dest].name),
		.dest = dest,
	};
	r->owner[r->n_made++] = component;
}

static void name_trees(struct run *r)
{
	size_t groups = r->args->config->n_groups;

	r->made = xcalloc(r->n_components * (groups + 1), sizeof(*r->made));
	r->owner = xcalloc(r->n_components * (groups + 1), sizeof(*r->owner));
	for (size_t i = 0; i < r->n_components; i++) {
		for (size_t g = 0; g < groups; g++)
			add_made(r, i, (int)g);
		add_made(r, i, DEST_GENERIC);
	}
}

/* Report each tree that already exists. */
static void check_there(struct run *r)
{
	struct kpackx_error why;

	for (size_t i = 0; i < r->n_made; i++)
		if (staging_check(&r->staging, r->made[i].name, r->args->force, &why)) {
			report_why(NULL, &why);
			r->faults++;
		}
}

static uint64_t bytes_of(const struct run *r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->n_components; i++)
		for (size_t j = 0; j < r->components[i].n_items; j++)
			if (r->components[i].items[j].chosen)
				bytes += r->components[i].items[j].file->size;
	return bytes;
}

static kpack_error_t write_trees(struct run *r, struct kpackx_error *why)
{
	struct progress p;
	kpack_error_t err = KPACK_SUCCESS;

	progress_begin(&p, "recombining", bytes_of(r), !r->args->quiet && !r->args->json);
	for (size_t i = 0; i < r->n_made && !err; i++) {
		err = recombine_write(&r->components[r->owner[i]], &r->staging,
				      &r->made[i], why);
		progress_add(&p, r->made[i].bytes);
	}
	progress_end(&p);
	return err;
}

/* Generic trees get their names last: if one exists, so do all other trees. */
static kpack_error_t publish_trees(struct run *r, struct kpackx_error *why)
{
	const char **names = xmalloc(r->n_made * sizeof(*names));
	kpack_error_t err;
	size_t n = 0;

	for (int generic = 0; generic < 2; generic++)
		for (size_t i = 0; i < r->n_made; i++)
			if ((r->made[i].dest == DEST_GENERIC) == generic)
				names[n++] = r->made[i].name;
	err = staging_publish(&r->staging, names, n, r->args->force, why);
	for (size_t i = 0; i < r->n_components && !err; i++)
		if (r->args->force && !r->args->quiet)
			other_trees_report(r->args->output, r->components[i].name, names,
					   n);
	free(names);
	return err;
}

/* --- the report -------------------------------------------------------------------- */

static void print_trees(const struct run *r)
{
	char size[24];

	for (size_t i = 0; i < r->n_made; i++) {
		const struct recombine_tree *t = &r->made[i];

		report_text(t->name);
		printf(": %zu files, %s", t->files, report_size(t->bytes, size));
		if (t->joined)
			printf(", %zu binaries with the markers of several shards",
			       t->joined);
		putchar('\n');
	}
}

static json_t *trees_json(const struct run *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_made; i++) {
		const struct recombine_tree *t = &r->made[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:s, s:I, s:I, s:I}", "name",
				  report_json_text(t->name), "component",
				  report_json_text(r->components[r->owner[i]].name),
				  "group",
				  t->dest < 0 ? KP_ARCH_GENERIC
					      : r->args->config->groups[t->dest].name,
				  "files", (json_int_t)t->files, "bytes",
				  (json_int_t)t->bytes, "joined", (json_int_t)t->joined));
	}
	return list;
}

static bool print_json(const struct run *r)
{
	size_t unwanted = 0, notes = 0;

	for (size_t i = 0; i < r->n_components; i++) {
		unwanted += r->components[i].unwanted;
		notes += r->components[i].notes;
	}
	return report_json(json_pack("{s:o, s:I, s:I}", "trees", trees_json(r),
				     "files_of_no_group", (json_int_t)unwanted, "notes",
				     (json_int_t)notes));
}

/* --- all of it --------------------------------------------------------------------- */

static kpack_error_t plan_run(struct run *r, struct kpackx_error *why)
{
	const struct recombine_args *args = r->args;

	kpack_error_t err = output_check_beside(args->shards, args->output, why);

	if (err)
		return kp_fail_prefix(why, err, "%s", args->shards);
	KP_TRY(shard_trees_read(args->shards, args->config->primary, args->components,
				args->n_components, &r->trees, why));
	KP_TRY(library_set_open(NULL, NULL, &r->libraries, why));
	r->libraries.plain = true;
	find_components(r);
	check_components(r);
	for (size_t i = 0; i < r->n_components; i++)
		KP_TRY(plan_component(r, &r->components[i], why));
	name_trees(r);
	return KPACK_SUCCESS;
}

static kpack_error_t write_run(struct run *r, struct kpackx_error *why)
{
	KP_TRY(staging_open(&r->staging, r->args->output, why));
	check_there(r);
	if (r->faults)
		return KPACK_SUCCESS;
	KP_TRY(write_trees(r, why));
	return publish_trees(r, why);
}

int recombine(const struct recombine_args *args)
{
	struct run r = {.args = args, .staging.fd = -1};
	struct kpackx_error why = {0};
	kpack_error_t err = plan_run(&r, &why);

	if (!err && r.faults == 0)
		err = write_run(&r, &why);
	if (err)
		report_why(NULL, &why);
	else if (r.faults)
		report_error(NULL, "nothing was written because of the faults above");
	else if (args->json && !print_json(&r))
		err = KPACK_ERROR_OUT_OF_MEMORY;
	else if (!args->json && !args->quiet)
		print_trees(&r);
	run_fini(&r);
	return err || r.faults ? EXIT_FAULT : EXIT_OK;
}
