/* SPDX-License-Identifier: MIT */
/*
 * The run: split_run, at the end, is the story.
 *
 *	open_prefixes   what the manifest says, and the staging directory
 *	packing_scan    of each prefix: its files, code objects and databases
 *	choose_names    what its keys and archives are called
 *	packing_write   all of it, converted, into the generic tree, with all archives
 *	partition_open  which tree each file belongs to, and split_move, which brings it there
 *	publish         the check, and the names
 *
 * Nothing is in the output before the trees get their names, and the generic tree gets its
 * name last: where it is, the others are.  Whatever fails before leaves nothing.
 */
#include "split.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "core/target/target.h"
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
	/*
	 * What the manifest names no prefix for, and the directories of prefixes themselves,
	 * packing does not write.
	 */
	if (s->prefixes.manifest) {
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
		kp_sort(s->outside, s->n_outside,
			KP_BY_TEXT(struct split_outside, relative));
		KP_TRY(err);
	}
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
 * Name keys and archives of each prefix: see split.h.  A prefix for which packing writes no archive
 * does not use up the name of the trees.
 */
static kpack_error_t choose_names(struct split *s, struct kpackx_error *why)
{
	bool first = true;

	for (size_t i = 0; i < s->n_items; i++) {
		struct scan *scan = &s->items[i].packing.scan;
		const char *prefix = s->items[i].path;
		bool stores = false, taken;
		char *group;

		/*
		 * Keys of code begin with the prefix, as in an artifact of TheRock's splitter.  Files
		 * of databases keep theirs: their loaders open them below the root into which all
		 * prefixes are installed.  A path that cannot be a key is a fault of the scan.
		 */
		for (size_t k = 0; s->joined && *prefix && k < scan->n_inputs; k++) {
			struct input *in = scan->inputs[k];
			char *key;

			if (in->kind == INPUT_DATABASE)
				continue;
			key = xasprintf("%s/%s", prefix, in->key);
			if (!kp_path_ok(kp_span_str(key))) {
				report_error(in->path, "its path cannot be a key");
				scan->n_faults++;
			}
			free(in->key);
			in->key = key;
		}
		if (s->joined)
			scan_sort(scan);

		for (size_t k = 0; k < scan->n_inputs; k++)
			stores |= scan->inputs[k]->kind == INPUT_HOST ||
				  scan->inputs[k]->kind == INPUT_DATABASE;
		taken = !s->joined && !first && stores;
		group = taken ? xasprintf("%s.%s", s->name, prefix) : xstrdup(s->name);
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

/* --- what --gpu-targets leaves out -------------------------------------------------- */

/*
 * Packing itself takes only code for these GPUs; archives that the input has already are taken or
 * dropped as a whole.  What was dropped is counted per architecture, because another run is
 * expected to make its trees.
 */

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

/*
 * Settle what becomes of the archives that the prefix has already; packing has copied them.  One
 * with the name of one that was written would be lost.  Those that --gpu-targets does not ask for
 * are removed, and counted.  An unreadable archive is reported and stays in the generic tree.
 */
static kpack_error_t settle_archives(struct split *s, struct split_prefix *p,
				     struct kpackx_error *why)
{
	struct arch_filter *filter = &p->packing.args.filter;
	size_t n_names, skip = strlen(p->packing.args.archive_dir) + 1;
	const char *const *names = archive_set_names(p->packing.set, &n_names);
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t k = 0; k < p->packing.scan.n_entries && !err; k++) {
		const struct scan_entry *e = &p->packing.scan.entries[k];
		struct kpackx_error fault = {0};
		struct old_archive a;
		bool wanted, other = false;

		for (size_t i = 0; i < n_names && e->archive; i++)
			if (strlen(e->relative) >= skip &&
			    strcmp(e->relative + skip, names[i]) == 0)
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "%s: the input has an archive of that "
					       "name: give another --name",
					       e->path);
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
			other |= !kp_choice_has(&filter->chosen, arch);
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

/*
 * After packing: count the rest that was left out, code objects of host binaries and files of
 * kernel databases.  ARCH_NOT_FOUND: nothing is left.
 */
static kpack_error_t check_targets(struct split *s, struct kpackx_error *why)
{
	bool had = false, has = false; /* code, before the selection and after it */
	char target[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < s->n_items && s->args->targets; i++) {
		const struct split_prefix *p = &s->items[i];
		const struct scan *scan = &p->packing.scan;

		for (size_t k = 0; k < scan->n_inputs; k++) {
			const struct input *in = scan->inputs[k];

			had |= in->kind == INPUT_HOST;
			for (size_t n = 0; in->kind == INPUT_HOST && n < in->n_images;
			     n++)
				if (in->packed[n] &&
				    !kp_choice_has(&p->packing.args.filter.chosen,
						   kp_span_str(in->images[n].arch)))
					add_dropped(s, in->images[n].arch, 1, 0,
						    in->images[n].size);
		}
		for (size_t k = 0; scan->found.objects && k < scan->files.count; k++) {
			const struct library_object *o = scan->found.objects[k];
			size_t entry = scan->file_entries[k];

			if (!o ||
			    p->packing.dispositions.items[entry].fate != FATE_NOT_WANTED)
				continue;
			library_object_target(o, 0, target);
			add_dropped(s, *o->family ? o->family : target, 0, 1,
				    scan->entries[entry].id.size);
		}
		had |= p->n_old > 0;
		has |= p->packing.plan.n_names > 0 || p->n_old > p->n_old_dropped;
	}
	kp_sort(s->dropped, s->n_dropped, KP_BY_TEXT(struct split_dropped, arch));
	if (!had || has)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_ARCH_NOT_FOUND,
		       "no device code objects matched --gpu-targets %s",
		       s->args->targets);
}

/* --- the run ----------------------------------------------------------------------- */

/* Say what is beside the trees, and what the user should know of those that there are. */
static void report_around(const struct split *s)
{
	/* all prefixes have the same arguments, but each has its own matches of the filter */
	const struct pack_args *args = &s->items[0].packing.args;
	struct hip_runtimes list = {0};
	struct dirent **names = NULL;
	int count = below_scandir(s->args->output, &names, NULL);
	size_t n = strlen(s->name);
	bool converts = false;

	/* directories "NAME_TARGET" that are not of this run */
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
	if (s->args->quiet)
		return;
	/* the input's HIP runtime, or else this system's, may refuse converted binaries */
	for (size_t i = 0; i < s->n_items; i++) {
		converts |= packing_converts(&s->items[i].packing);
		packing_runtimes(&s->items[i].packing.scan, &list);
	}
	if (converts)
		runtimes_judge(&list, s->input, false);
	runtimes_fini(&list);
	/*
	 * GPUs and families for which there was nothing may be misspelt, or be spelled without the
	 * features that the code states.
	 */
	for (size_t i = 0; s->n_items && i < args->filter.chosen.count; i++) {
		char arch[KP_TARGET_TEXT_MAX];
		bool matched = false;

		for (size_t k = 0; k < s->n_items; k++)
			matched |= s->items[k].packing.args.filter.matched[i];
		kp_target_format(&args->filter.chosen.gpus[i], arch);
		if (!matched)
			report_error(s->input, "warning: nothing for %s", arch);
	}
	for (size_t i = 0; s->n_items && i < args->families.count; i++)
		if (!split_tree_of(s, args->families.items[i].name))
			report_error(s->input, "warning: nothing for the family %s",
				     args->families.items[i].name);
}

int split_run(struct split *s, const struct split_args *args, const char *input,
	      const char *name)
{
	KP_AUTO_FREE const char **tree_names = NULL;
	struct kpackx_error why = {0};
	struct split_tree generic;
	bool again;
	int status;

	*s = (struct split){
		.args = args, .input = input, .name = xstrdup(name), .staging.fd = -1};
	if (open_prefixes(s, &why))
		goto fault;
	for (size_t i = 0; i < s->n_items; i++) {
		status = packing_scan(&s->items[i].packing);
		if (status)
			return status;
	}
	if (choose_names(s, &why))
		goto fault;
	/*
	 * As kpack pack of each prefix, but a binary that cannot be converted keeps its code
	 * and stays generic, what the others become does not depend on the GPUs that were
	 * asked for, and directories get their attributes when nothing moves any more.
	 */
	for (size_t i = 0; i < s->n_items; i++) {
		struct packing *p = &s->items[i].packing;

		p->kind = PACKING_APART;
		status = packing_plan(p);
		if (status)
			return status;
		if (packing_write(p, &why)) {
			report_why(NULL, &why);
			return EXIT_FAULT;
		}
	}
	for (size_t i = 0; i < s->n_outside; i++) {
		struct split_outside *e = &s->outside[i];

		if (tree_write_entry(&split_generic(s)->writer, e->relative, e->path,
				     &e->id, &e->left, &why))
			goto fault;
	}

	/*
	 * Now the generic tree has everything: divide it among the trees.  All partitions are made
	 * before the first move, because archives of several prefixes may have to be joined; and
	 * archives that nobody wants are dropped before, so that no tree is made for them.
	 */
	for (size_t i = 0; i < s->n_items; i++) {
		struct split_prefix *p = &s->items[i];

		if (settle_archives(s, p, &why) ||
		    partition_open(&p->packing, &p->parts, &why))
			goto fault;
		for (size_t k = 0; k < p->parts.count; k++)
			if (add_tree(s, p->parts.items[k].name, p->parts.items[k].family,
				     &why))
				goto fault;
	}
	/* the generic tree was added first, and becomes the last: names are given in this order */
	generic = s->trees[0];
	memmove(s->trees, s->trees + 1, (s->n_trees - 1) * sizeof(*s->trees));
	kp_sort(s->trees, s->n_trees - 1, KP_BY_TEXT(struct split_tree, part));
	s->trees[s->n_trees - 1] = generic;
	for (size_t i = 0; i < s->n_items; i++)
		if (split_move(s, &s->items[i], &why))
			goto fault;
	if (split_finish(s, &why) || check_targets(s, &why) ||
	    split_check(s, &again, &why))
		goto fault;

	/* all of them or none */
	tree_names = xmalloc(s->n_trees * sizeof(*tree_names));
	for (size_t i = 0; i < s->n_trees; i++)
		tree_names[i] = s->trees[i].name;
	if (staging_publish(&s->staging, tree_names, s->n_trees, again, &why))
		goto fault;
	report_around(s);
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

/* --- the report -------------------------------------------------------------------- */

/*
 * Printed after the trees have got their names: sizes of archives are those of the files,
 * everything else is known from the scan.
 */

struct sums {
	size_t files, archives;
	uint64_t bytes;
};

/* Whether archive K of PART is in the prefix, and not joined with another's. */
static bool has_archive(const struct split *s, const struct split_prefix *p,
			const struct output_tree *part, size_t k)
{
	return split_archive_home(s, p, part->name, part->archives[k]) == p;
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

json_t *split_report_json(const struct split *s)
{
	json_t *trees = json_array(), *absent = json_array();
	json_t *dropped = json_array(), *left = json_array();

	for (size_t t = 0; t < s->n_trees; t++) {
		const struct split_tree *tree = &s->trees[t];
		json_t *arches = json_array(), *archives = json_array(),
		       *prefixes = json_array();
		struct sums sums = sum_up(s, tree);
		/* several prefixes may have code for one architecture, which is listed once */
		json_t *seen = json_object();

		for (size_t i = 0; i < s->n_items; i++) {
			const struct split_prefix *p = &s->items[i];
			const struct output_tree *part =
				partition_find(&p->parts, tree->part);

			if (!split_contributes(p, tree->part))
				continue;
			for (size_t k = 0; k < part->n_arches; k++) {
				if (!json_object_get(seen, part->arches[k]))
					add_text(arches, part->arches[k]);
				json_object_set_new(seen, part->arches[k], json_true());
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
		json_array_append_new(trees,
				      json_pack("{so so sb so so so sI sI}", "name",
						report_json_text(tree->name), "part",
						report_json_text(tree->part), "family",
						tree->family, "arches", arches,
						"prefixes", prefixes, "archives",
						archives, "files", (json_int_t)sums.files,
						"bytes", (json_int_t)sums.bytes));
	}
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
