/* SPDX-License-Identifier: MIT */
/*
 * The run: split_run, at the end, is the story.
 *
 *	open_prefixes   what the manifest says, and the staging directory
 *	packing_scan    of each prefix: its files, code objects and databases
 *	choose_groups   what its archives are called
 *	pack_prefix     all of it, converted, into the generic tree, with all archives
 *	divide          the partition of each prefix, and the moves that follow from it
 *	publish         the check, and the names
 *
 * Nothing is in the output before the trees get their names, and the generic tree gets its
 * name last: where it is, the others are.  Whatever fails before leaves nothing.
 */
#include "split.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* --- trees ------------------------------------------------------------------------- */

struct split_tree *split_tree_of(const struct split *s, const char *part)
{
	for (size_t i = 0; i < s->n_trees; i++)
		if (strcmp(s->trees[i].part, part) == 0)
			return &s->trees[i];
	return NULL;
}

struct split_tree *split_generic(const struct split *s)
{
	return split_tree_of(s, KP_ARCH_GENERIC);
}

char *split_path(const struct split *s, const struct split_tree *tree, const char *prefix,
		 const char *relative)
{
	return xasprintf("%s/%s%s%s%s%s", s->staging.path, tree->name, *prefix ? "/" : "",
			 prefix, *relative ? "/" : "", relative);
}

char *split_archive_path(const struct split_prefix *p, const char *name)
{
	return xasprintf("%s%s%s/%s", p->path, *p->path ? "/" : "",
			 p->packing.args.archive_dir, name);
}

/*
 * Begin the tree of PART, unless it is there.  Its root gets the attributes of the input's.
 * A file in the way is refused now; whether a tree in the way may be replaced is known
 * once this run's is complete (split_check).
 */
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
	if (!kp_component_ok(kp_span_str(tree->name)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: cannot be the name of a tree", tree->name);
	KP_TRY(staging_check(&s->staging, tree->name, true, why));
	tree->root = split_path(s, tree, "", "");
	tree_write_begin(&tree->writer, tree->root, true);
	return tree_write_directory(&tree->writer, "", s->input, why);
}

/* --- files outside all prefixes ---------------------------------------------------- */

/*
 * List what the manifest names no prefix for, and the directories of prefixes themselves,
 * which packing does not write.
 */
static kpack_error_t list_outside(struct split *s, struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(s->input);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;
	size_t cap = 0;

	while (!err && tree_list_next(list, &e)) {
		char *path;

		if (e.kind == TREE_FAULT) {
			errno = e.error;
			err = below_fail(why, "%s", e.path);
		}
		if (err || e.kind == TREE_DIR_END || e.level == 0)
			continue;
		if (e.kind == TREE_DIR && prefixes_has(&s->prefixes, e.rest))
			tree_list_skip(list); /* the directory itself is listed */
		path = xstrdup(e.path);
		xgrow(&s->outside, s->n_outside, &cap, sizeof(*s->outside));
		s->outside[s->n_outside++] = (struct split_outside){
			.path = path,
			.relative = path + (e.rest - e.path),
			.id = file_identity_of(&e.st),
		};
	}
	tree_list_close(list);
	kp_sort(s->outside, s->n_outside, KP_BY_TEXT(struct split_outside, relative));
	return err;
}

/* --- prefixes ---------------------------------------------------------------------- */

/*
 * Open the prefixes that exist, by path, and the generic tree, into which they are packed.
 * The output is made last, when the input is known to be usable.
 */
static kpack_error_t open_prefixes(struct split *s, struct kpackx_error *why)
{
	KP_TRY(output_check_beside(s->input, s->args->output, why));
	KP_TRY(prefixes_open(s->input, s->args->manifest, &s->prefixes, why));
	s->joined = s->args->keys == KEYS_DETECTED ? s->prefixes.manifest
						   : s->args->keys == KEYS_ARTIFACT;
	if (s->prefixes.manifest)
		KP_TRY(list_outside(s, why));
	KP_TRY(staging_open(&s->staging, s->args->output, why));
	KP_TRY(add_tree(s, KP_ARCH_GENERIC, false, why));
	s->items = xcalloc(s->prefixes.count, sizeof(*s->items));
	for (size_t i = 0; i < s->prefixes.count; i++) {
		const struct prefix *prefix = &s->prefixes.items[i];
		struct split_prefix *p = &s->items[s->n_items];

		if (prefix->absent) {
			if (!s->args->quiet)
				report_error(s->input,
					     "note: the prefix %s does not exist",
					     prefix->path);
			continue;
		}
		s->n_items++;
		p->path = prefix->path;
		p->input = xasprintf("%s%s%s", s->input, *p->path ? "/" : "", p->path);
		p->output = split_path(s, split_generic(s), p->path, "");
		KP_TRY(split_args_pack(s->args, p->input, p->output, &p->packing.args,
				       why));
		if (s->joined && *p->path)
			p->packing.args.how.source_prefix = p->path;
	}
	return KPACK_SUCCESS;
}

/*
 * Let the keys of P's code begin with the prefix, as in an artifact of TheRock's splitter.
 * Files of databases keep theirs: their loaders open them below the root into which all
 * prefixes are installed.  A path that cannot be a key is a fault of the scan.
 */
static void prefix_keys(struct split_prefix *p)
{
	struct scan *scan = &p->packing.scan;

	for (size_t k = 0; k < scan->n_inputs && *p->path; k++) {
		struct input *in = scan->inputs[k];
		char *key;

		if (in->kind == INPUT_DATABASE)
			continue;
		key = xasprintf("%s/%s", p->path, in->key);
		if (!kp_path_ok(kp_span_str(key))) {
			report_error(in->path, "its path cannot be a key");
			scan->n_faults++;
		}
		free(in->key);
		in->key = key;
	}
	scan_sort(scan);
}

/*
 * Name the archives of each prefix: see split.h.  A prefix for which packing writes none does
 * not use up the name of the trees.
 */
static kpack_error_t choose_groups(struct split *s, struct kpackx_error *why)
{
	bool first = true;

	for (size_t i = 0; i < s->n_items; i++) {
		const struct scan *scan = &s->items[i].packing.scan;
		bool stores = false, taken;
		char *group;

		for (size_t k = 0; k < scan->n_inputs; k++)
			stores |= scan->inputs[k]->kind == INPUT_HOST ||
				  scan->inputs[k]->kind == INPUT_DATABASE;
		taken = !s->joined && !first && stores;
		group = taken ? xasprintf("%s.%s", s->name, s->items[i].path)
			      : xstrdup(s->name);
		for (char *c = group + strlen(s->name); *c; c++)
			if (*c == '/')
				*c = '.';
		while (taken) {
			/* "blas.2" would be mistaken for the second volume of "blas" */
			const char *dot = strrchr(group, '.');
			char *longer;

			taken = dot[1] && !dot[1 + strspn(dot + 1, "0123456789")];
			for (size_t k = 0; k < i; k++)
				taken |= strcmp(s->items[k].packing.args.group, group) ==
					 0;
			if (!taken)
				break;
			longer = xasprintf("%sx", group);
			free(group);
			group = longer;
		}
		s->items[i].packing.args.group = group;
		if (!kp_component_ok(kp_span_str(group)) ||
		    !kp_text_ok(kp_span_str(group)))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "the group '%s' cannot be part of a file name: "
				       "give --name",
				       group);
		first &= !stores;
	}
	return KPACK_SUCCESS;
}

/*
 * Write a prefix into the generic tree, but for the attributes of directories, which split_finish
 * sets when nothing moves any more.  As kpack pack of that directory, except that a binary
 * that cannot be converted keeps its code and stays generic, and that what the others
 * become does not depend on the GPUs that were asked for.
 */
static int pack_prefix(struct split_prefix *prefix)
{
	struct packing *p = &prefix->packing;
	struct kpackx_error why = {0};
	int status;

	p->kind = PACKING_APART;
	status = packing_plan(p);
	if (!status && packing_write(p, &why)) {
		report_why(NULL, &why);
		status = EXIT_FAULT;
	}
	return status;
}

/* An archive of the input with the name of one that was written would be overwritten. */
static kpack_error_t check_archives(const struct split_prefix *p,
				    struct kpackx_error *why)
{
	size_t n = 0, skip = strlen(p->packing.args.archive_dir) + 1;
	const char *const *names =
		p->packing.set ? archive_set_names(p->packing.set, &n) : NULL;

	for (size_t k = 0; k < p->packing.scan.n_entries; k++) {
		const struct scan_entry *e = &p->packing.scan.entries[k];

		for (size_t m = 0; m < n && e->archive; m++)
			if (strlen(e->relative) >= skip &&
			    strcmp(e->relative + skip, names[m]) == 0)
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "%s: the input has an archive of that "
					       "name: give another --name",
					       e->path);
	}
	return KPACK_SUCCESS;
}

/* --- the run ----------------------------------------------------------------------- */

/*
 * Divide the generic tree, which has everything, among the trees.  All partitions are made
 * before the first move, because archives of several prefixes may have to be joined; and
 * archives that nobody wants are dropped before, so that no tree is made for them.
 */
static kpack_error_t divide(struct split *s, struct kpackx_error *why)
{
	struct split_tree generic;

	for (size_t i = 0; i < s->n_outside; i++) {
		struct split_outside *e = &s->outside[i];

		KP_TRY(tree_write_entry(&split_generic(s)->writer, e->relative, e->path,
					&e->id, &e->left, why));
	}
	for (size_t i = 0; i < s->n_items; i++) {
		struct split_prefix *p = &s->items[i];

		KP_TRY(check_archives(p, why));
		KP_TRY(split_drop_archives(s, p, why));
		KP_TRY(partition_open(&p->packing, &p->parts, why));
		for (size_t k = 0; k < p->parts.count; k++)
			KP_TRY(add_tree(s, p->parts.items[k].name,
					p->parts.items[k].family, why));
	}
	/* the generic tree was added first, and becomes the last: names are given in this order */
	generic = s->trees[0];
	memmove(s->trees, s->trees + 1, (s->n_trees - 1) * sizeof(*s->trees));
	kp_sort(s->trees, s->n_trees - 1, KP_BY_TEXT(struct split_tree, part));
	s->trees[s->n_trees - 1] = generic;
	for (size_t i = 0; i < s->n_items; i++)
		KP_TRY(split_move(s, &s->items[i], why));
	KP_TRY(split_finish(s, why));
	return split_check_targets(s, why);
}

/* Check the trees, and give them their names, all or none. */
static kpack_error_t publish(struct split *s, struct kpackx_error *why)
{
	const char **names = xmalloc(s->n_trees * sizeof(*names));
	bool again;
	kpack_error_t err = split_check(s, &again, why);

	for (size_t i = 0; i < s->n_trees; i++)
		names[i] = s->trees[i].name;
	if (!err)
		err = staging_publish(&s->staging, names, s->n_trees, again, why);
	free(names);
	return err;
}

/* Report the directories "NAME_TARGET" in the output that are not of this run. */
static void report_other_trees(const struct split *s)
{
	size_t n = strlen(s->name);
	struct dirent **names = NULL;
	int count = below_scandir(s->args->output, &names, NULL);

	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		KP_AUTO_FREE char *path = xasprintf("%s/%s", s->args->output, name);
		struct stat st;
		/* one name may begin with another: "blas_test_generic" is not of "blas" */
		bool other = strncmp(name, s->name, n) == 0 && name[n] == '_' &&
			     name[n + 1] &&
			     (!strchr(name + n + 1, '_') ||
			      artifact_component_size(name) == n);

		for (size_t k = 0; k < s->n_trees; k++)
			other &= strcmp(s->trees[k].name, name) != 0;
		if (other && below_lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			report_error(path, "note: is not from this run; it stays");
		free(names[i]);
	}
	free(names);
}

/*
 * Warn if the input's HIP runtime, or else this system's, refuses converted binaries, and of
 * GPUs and families for which there was nothing: they may be misspelt, or be spelled
 * without the features that the code states.
 */
static void warn(const struct split *s)
{
	const struct families *families =
		s->n_items ? &s->items[0].packing.args.families : NULL;
	struct hip_runtimes list = {0};
	bool converts = false;

	for (size_t i = 0; i < s->n_items; i++) {
		converts |= packing_converts(&s->items[i].packing);
		packing_runtimes(&s->items[i].packing.scan, &list);
	}
	if (converts)
		runtimes_judge(&list, s->input, false);
	runtimes_fini(&list);
	split_warn_unmatched(s);
	for (size_t i = 0; families && i < families->count; i++)
		if (!split_tree_of(s, families->items[i].name))
			report_error(s->input, "warning: nothing for the family %s",
				     families->items[i].name);
}

int split_run(struct split *s, const struct split_args *args, const char *input,
	      const char *name)
{
	struct kpackx_error why = {0};
	int status;

	*s = (struct split){
		.args = args, .input = input, .name = xstrdup(name), .staging.fd = -1};
	if (open_prefixes(s, &why))
		goto fault;
	for (size_t i = 0; i < s->n_items; i++) {
		status = packing_scan(&s->items[i].packing);
		if (status)
			return status;
		if (s->joined)
			prefix_keys(&s->items[i]);
	}
	if (choose_groups(s, &why))
		goto fault;
	for (size_t i = 0; i < s->n_items; i++) {
		status = pack_prefix(&s->items[i]);
		if (status)
			return status;
	}
	if (divide(s, &why) || publish(s, &why))
		goto fault;
	report_other_trees(s);
	if (!args->quiet)
		warn(s);
	return EXIT_OK;
fault:
	report_why(s->input, &why);
	return EXIT_FAULT;
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
	for (size_t i = 0; i < s->n_outside; i++) {
		free(s->outside[i].path);
		free(s->outside[i].left);
	}
	for (size_t i = 0; i < s->n_dropped; i++)
		free(s->dropped[i].arch);
	free(s->outside);
	free(s->dropped);
	free(s->trees);
	free(s->items);
	free(s->name);
	prefixes_close(&s->prefixes);
	staging_close(&s->staging);
	*s = (struct split){.staging.fd = -1};
}
