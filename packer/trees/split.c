/* SPDX-License-Identifier: MIT */
#include "split.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/cli/exit.h"
#include "other_trees.h"
#include "packer/pack/report.h"
#include "packer/pack/lost_code.h"
#include "packer/pack/write_tree.h"
#include "packer/cli/report.h"
#include "packer/pack/runtimes.h"
#include "split_check.h"
#include "split_dropped.h"
#include "split_groups.h"
#include "joined.h"
#include "split_move.h"
#include "old_archives.h"
#include "core/base/text.h"
#include "core/archive/naming.h"
#include "core/target/target.h"

/* --- trees ------------------------------------------------------------------------- */

struct split_tree *split_tree_of(const struct split *s, const char *part)
{
	for (size_t i = 0; i < s->n_trees; i++)
		if (strcmp(s->trees[i].part, part) == 0)
			return &s->trees[i];
	return NULL;
}

/* Join the components that are not empty with one slash between them. */
char *split_path(const struct split *s, const struct split_tree *tree, const char *prefix,
		 const char *relative)
{
	return xasprintf("%s/%s%s%s%s%s", s->staging.path, tree->name, *prefix ? "/" : "",
			 prefix, *relative ? "/" : "", relative);
}

char *split_archive_path(const struct split_prefix *i, const char *name)
{
	return xasprintf("%s/%s", i->packing.args.archive_dir, name);
}

static kpack_error_t check_tree_name(const char *name, struct kpackx_error *why)
{
	if (kp_component_ok(kp_span_str(name)))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: cannot be the name of a tree", name);
}

static kpack_error_t add_tree(struct split *s, const char *part, bool family,
			      struct kpackx_error *why)
{
	struct split_tree *tree;

	if (split_tree_of(s, part))
		return KPACK_SUCCESS;
	s->trees = xrealloc(s->trees, (s->n_trees + 1) * sizeof(*s->trees));
	tree = &s->trees[s->n_trees++];
	*tree = (struct split_tree){.part = part,
				    .name = xasprintf("%s_%s", s->name, part),
				    .family = family};
	KP_TRY(check_tree_name(tree->name, why));
	tree->root = split_path(s, tree, "", "");
	tree_write_begin(&tree->writer, tree->root, true);
	return tree_write_directory(&tree->writer, "", s->input, NULL, why);
}

static bool is_generic(const struct split_tree *tree)
{
	return strcmp(tree->part, KP_ARCH_GENERIC) == 0;
}

static int by_part(const void *a, const void *b)
{
	const struct split_tree *x = a, *y = b;

	if (is_generic(x) != is_generic(y))
		return KP_ORDER(is_generic(x), is_generic(y));
	return strcmp(x->part, y->part);
}

static kpack_error_t list_trees(struct split *s, struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n_items; i++)
		for (size_t k = 0; k < s->items[i].parts.count; k++)
			KP_TRY(add_tree(s, s->items[i].parts.items[k].name,
					s->items[i].parts.items[k].family, why));
	qsort(s->trees, s->n_trees, sizeof(*s->trees), by_part);
	return KPACK_SUCCESS;
}

/* --- prefixes ---------------------------------------------------------------------- */

static kpack_error_t open_prefix(struct split *s, struct split_prefix *i,
				 const struct prefix *prefix, struct kpackx_error *why)
{
	i->prefix = prefix;
	i->input = xasprintf("%s%s%s", s->input, *prefix->path ? "/" : "", prefix->path);
	i->output = split_path(s, split_tree_of(s, KP_ARCH_GENERIC), prefix->path, "");
	KP_TRY(split_args_pack(s->args, i->input, i->output, &i->packing.args, why));
	if (s->joined && *prefix->path)
		i->packing.args.how.source_prefix = prefix->path;
	return KPACK_SUCCESS;
}

/* Open the prefixes that exist, by path. */
static kpack_error_t open_prefixes(struct split *s, struct kpackx_error *why)
{
	KP_TRY(add_tree(s, KP_ARCH_GENERIC, false, why));
	s->items = xcalloc(s->prefixes.count, sizeof(*s->items));
	for (size_t i = 0; i < s->prefixes.count; i++) {
		const struct prefix *p = &s->prefixes.items[i];

		if (!p->absent)
			KP_TRY(open_prefix(s, &s->items[s->n_items++], p, why));
		else if (!s->args->quiet)
			report_error(s->input, "note: the prefix %s does not exist",
				     p->path);
	}
	return KPACK_SUCCESS;
}

static int scan_prefixes(struct split *s)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < s->n_items && !status; i++) {
		status = packing_scan(&s->items[i].packing);
		if (!status && s->joined)
			split_prefix_keys(&s->items[i]);
	}
	return status;
}

/* Write a prefix into the generic tree, but for the attributes of directories. */
static int pack_prefix(struct split_prefix *i)
{
	struct packing *p = &i->packing;
	struct kpackx_error why = {0};

	pack_report_notes(&p->args, &p->scan);
	dispositions_open(&p->scan, false, &p->dispositions);
	packing_check_binaries(p, true);
	if (packing_plan(p, &why))
		return packing_status(why.code, &why);
	packing_settle(p);
	lost_code_check(&p->converter, &p->args.filter, p->args.quiet || p->args.json,
			&p->faults);
	if (packing_faulty(p))
		return EXIT_FAULT;
	p->converter.apart = true;
	tree_write_begin(&p->tree, i->output, true);
	return packing_status(packing_write_tree(p, &why), &why);
}

static int pack_prefixes(struct split *s)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < s->n_items && !status; i++)
		status = pack_prefix(&s->items[i]);
	return status;
}

/* --- checks ------------------------------------------------------------------------ */

static bool any_code(const struct split *s, bool stored)
{
	for (size_t i = 0; i < s->n_items; i++)
		if (stored ? s->items[i].packing.plan.n_names > 0
			   : split_has_code(&s->items[i]))
			return true;
	return false;
}

/* Fail if --gpu-targets leaves no device code for the converted binaries. */
static kpack_error_t check_targets(const struct split *s, struct kpackx_error *why)
{
	bool had = any_code(s, false), has = any_code(s, true);

	for (size_t i = 0; i < s->n_items; i++) {
		had |= s->items[i].n_old > 0;
		has |= s->items[i].n_old > s->items[i].n_old_dropped;
	}
	if (!s->args->targets || !had || has)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_ARCH_NOT_FOUND,
		       "no device code objects matched --gpu-targets %s",
		       s->args->targets);
}

/* True if E is the archive NAME in the archive directory of I. */
static bool is_archive_called(const struct split_prefix *i, const struct scan_entry *e,
			      const char *name)
{
	size_t n = strlen(i->packing.args.archive_dir);

	return e->archive && strlen(e->relative) > n &&
	       strcmp(e->relative + n + 1, name) == 0;
}

/* An archive of the input with the same name would be overwritten. */
static kpack_error_t check_archives(const struct split_prefix *i,
				    struct kpackx_error *why)
{
	size_t n = 0;
	const char *const *names =
		i->packing.set ? archive_set_names(i->packing.set, &n) : NULL;

	for (size_t k = 0; k < i->packing.scan.n_entries; k++) {
		const struct scan_entry *e = &i->packing.scan.entries[k];

		for (size_t m = 0; m < n; m++)
			if (is_archive_called(i, e, names[m]))
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "%s: the input has an archive of that "
					       "name: give another --name",
					       e->path);
	}
	return KPACK_SUCCESS;
}

/* Whether trees in the way may be replaced is known once this run's are made. */
static kpack_error_t check_names(const struct split *s, struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n_trees; i++)
		KP_TRY(staging_check(&s->staging, s->trees[i].name, true, why));
	return KPACK_SUCCESS;
}

/* --- the run ----------------------------------------------------------------------- */

/* Warn if the input's HIP runtime, or else this system's, refuses converted binaries. */
static void warn_of_runtimes(const struct split *s)
{
	struct hip_runtimes list = {0};
	bool converts = false;

	for (size_t i = 0; i < s->n_items; i++) {
		converts |= packing_converts(&s->items[i].packing);
		pack_runtimes_add(&list, &s->items[i].packing.scan);
	}
	if (converts && !s->args->quiet)
		runtimes_judge(&list, s->input, false);
	runtimes_fini(&list);
}

static void report_unmatched(const struct split *s)
{
	const struct arch_filter *all =
		s->n_items ? &s->items[0].packing.args.filter : NULL;

	for (size_t i = 0; all && i < all->chosen.count; i++) {
		char arch[KP_TARGET_TEXT_MAX];
		bool matched = false;

		for (size_t k = 0; k < s->n_items; k++)
			matched |= s->items[k].packing.args.filter.matched[i];
		kp_target_format(&all->chosen.gpus[i], arch);
		if (!matched && !s->args->quiet)
			report_error(s->input, "warning: nothing for %s", arch);
	}
}

/* The family's targets may be spelled differently: code keeps its stated features. */
static void report_empty_families(const struct split *s)
{
	const struct families *all =
		s->n_items ? &s->items[0].packing.args.families : NULL;

	for (size_t i = 0; all && i < all->count; i++)
		if (!split_tree_of(s, all->items[i].name) && !s->args->quiet)
			report_error(s->input, "warning: nothing for the family %s",
				     all->items[i].name);
}

static kpack_error_t begin_split(struct split *s, struct kpackx_error *why)
{
	KP_TRY(output_check_beside(s->input, s->args->output, why));
	KP_TRY(prefixes_open(s->input, s->args->manifest, &s->prefixes, why));
	s->joined = s->args->keys == KEYS_DETECTED ? s->prefixes.manifest
						   : s->args->keys == KEYS_ARTIFACT;
	KP_TRY(outside_open(s->input, &s->prefixes, &s->outside, why));
	KP_TRY(staging_open(&s->staging, s->args->output, why));
	KP_TRY(open_prefixes(s, why));
	return check_names(s, why);
}

static kpack_error_t split_trees(struct split *s, struct kpackx_error *why)
{
	KP_TRY(outside_copy(&s->outside, &split_tree_of(s, KP_ARCH_GENERIC)->writer,
			    why));
	for (size_t i = 0; i < s->n_items; i++) {
		KP_TRY(check_archives(&s->items[i], why));
		KP_TRY(split_old_drop(s, &s->items[i], why));
		KP_TRY(partition_open(&s->items[i].packing, &s->items[i].parts, why));
	}
	KP_TRY(list_trees(s, why));
	KP_TRY(check_names(s, why));
	for (size_t i = 0; i < s->n_items; i++)
		KP_TRY(split_move(s, &s->items[i], why));
	return split_finish(s, why);
}

static kpack_error_t publish_trees(struct split *s, bool again, struct kpackx_error *why)
{
	const char **names = xmalloc(s->n_trees * sizeof(*names));
	kpack_error_t err;

	for (size_t i = 0; i < s->n_trees; i++)
		names[i] = s->trees[i].name;
	err = staging_publish(&s->staging, names, s->n_trees, again, why);
	if (!err)
		other_trees_report(s->args->output, s->name, names, s->n_trees);
	free(names);
	return err;
}

static kpack_error_t finish_split(struct split *s, struct kpackx_error *why)
{
	bool again;

	KP_TRY(split_trees(s, why));
	KP_TRY(check_targets(s, why));
	KP_TRY(split_check(s, &again, why));
	KP_TRY(split_count_dropped(s, why));
	return publish_trees(s, again, why);
}

static int report_status(const struct split *s, kpack_error_t err,
			 const struct kpackx_error *why)
{
	if (!err)
		return EXIT_OK;
	report_why(s->input, why);
	return EXIT_FAULT;
}

/* Find what the prefixes have, and choose where their code goes. */
static int plan_split(struct split *s)
{
	struct kpackx_error why = {0};
	int status = report_status(s, begin_split(s, &why), &why);

	if (!status)
		status = scan_prefixes(s);
	return status ? status : report_status(s, split_choose_groups(s, &why), &why);
}

static int write_split(struct split *s)
{
	struct kpackx_error why = {0};
	int status = pack_prefixes(s);

	return status ? status : report_status(s, finish_split(s, &why), &why);
}

int split_run(struct split *s, const struct split_args *args, const char *input,
	      const char *name)
{
	int status;

	*s = (struct split){
		.args = args, .input = input, .name = xstrdup(name), .staging.fd = -1};
	status = plan_split(s);
	if (!status)
		status = write_split(s);
	if (!status) {
		warn_of_runtimes(s);
		report_unmatched(s);
		report_empty_families(s);
	}
	return status;
}

void split_close(struct split *s)
{
	for (size_t i = 0; i < s->n_items; i++) {
		packing_close(&s->items[i].packing);
		partition_close(&s->items[i].parts);
		free(s->items[i].input);
		free(s->items[i].output);
	}
	for (size_t i = 0; i < s->n_trees; i++) {
		tree_write_end(&s->trees[i].writer);
		free(s->trees[i].root);
		free(s->trees[i].name);
	}
	split_free_dropped(s);
	free(s->trees);
	free(s->items);
	free(s->name);
	outside_close(&s->outside);
	prefixes_close(&s->prefixes);
	staging_close(&s->staging);
	*s = (struct split){.staging.fd = -1};
}
