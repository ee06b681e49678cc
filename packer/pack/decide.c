/* SPDX-License-Identifier: MIT */
/*
 * Deciding what becomes of each file, before anything is written: packing_plan.
 *
 *	check_closure		with --check: are the databases of the tree complete?
 *	dispositions_open	what is expected of each path, by its kind
 *	converter_check		what cannot be converted keeps its code, and none of it is planned
 *	plan_objects		the objects of everything else
 *	decide_..._databases	files of kernel databases, of which the plan has to have something
 *	..._check		what would fail while files are written
 *	check_gpu		does a GPU of the list lose code that it loads today?
 *	none_selected, ...	is there anything to do, and does the runtime take it?
 *
 * Whatever would be lost or fail is reported here, for all files and not only the first one, since
 * a run over a large tree takes minutes.  PACKING_APART stops before the last line, because one of its
 * trees may well have nothing.
 */
#include <stdlib.h>
#include "core/archive/archive.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/path.h"
#include "core/target/target.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/library/closure.h"
#include "run.h"

static const char not_asked[] = "not for the targets asked for";

/* --- dispositions -------------------------------------------------------------------- */

const char *disposition_name(enum fate fate)
{
	static const char *const names[] = {
		[FATE_NOTHING] = "nothing",
		[FATE_COPIED] = "copied",
		[FATE_UNCHANGED] = "unchanged",
		[FATE_LINKED] = "linked",
		[FATE_SYMLINK] = "symlink",
		[FATE_SPECIAL] = "special",
		[FATE_CONVERTED] = "converted",
		[FATE_ALREADY_CONVERTED] = "already converted",
		[FATE_REFUSED] = "refused",
		[FATE_LEFT_ALONE] = "left alone",
		[FATE_LEFT_OUT] = "left out",
		[FATE_PACKED] = "packed",
		[FATE_KEPT] = "kept",
		[FATE_REMOVED] = "removed",
		[FATE_NOT_WANTED] = "left out",
	};

	return names[fate];
}

void disposition_set(struct disposition *o, enum fate fate, const char *reason)
{
	free(o->reason);
	o->reason = reason ? xstrdup(reason) : NULL;
	o->fate = fate;
}

void dispositions_open(const struct scan *scan, bool in_place, struct dispositions *out)
{
	*out = (struct dispositions){
		.items = xcalloc(scan->n_entries, sizeof(*out->items)),
		.count = scan->n_entries};
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		struct disposition *d = &out->items[i];

		if (e->leftover)
			disposition_set(d, FATE_LEFT_OUT,
					"a temporary file of a run that was killed");
		else if (S_ISDIR(e->mode) || (in_place && e->archive))
			d->fate = FATE_NOTHING;
		else if (e->first != i)
			d->fate = FATE_LINKED;
		else if (S_ISLNK(e->mode))
			d->fate = FATE_SYMLINK;
		else if (!S_ISREG(e->mode))
			d->fate = FATE_SPECIAL;
		else if (e->input && !e->database)
			d->fate =
				e->input->kind == INPUT_HOST ? FATE_CONVERTED : FATE_KEPT;
		else if (e->converted)
			d->fate = FATE_ALREADY_CONVERTED;
		else if (e->note)
			disposition_set(d, FATE_LEFT_ALONE, e->note);
		else
			d->fate = in_place ? FATE_UNCHANGED : FATE_COPIED;
	}
}

void dispositions_close(struct dispositions *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].reason);
	free(list->items);
	*list = (struct dispositions){0};
}

static enum fate fate_of_input(const struct packing *p, const struct input *in)
{
	return p->dispositions.items[in->entry].fate;
}

/* The file of IN, whose code is not packed, is an ordinary one. */
static void keep_as_it_is(struct packing *p, const struct input *in)
{
	p->dispositions.items[in->entry].fate =
		p->args.mode == PACK_IN_PLACE ? FATE_UNCHANGED : FATE_COPIED;
}

bool packing_converts(const struct packing *p)
{
	for (size_t i = 0; i < p->dispositions.count; i++)
		if (p->dispositions.items[i].fate == FATE_CONVERTED)
			return true;
	return false;
}

/* --- binaries ------------------------------------------------------------------------ */

/*
 * Check that GPU, which finds code in IN that it can load, still does if only what the filter
 * selects is packed; with any settings of its features.
 */
static void check_gpu(struct packing *p, const struct input *in,
		      const struct kp_target *gpu)
{
	const struct arch_filter *filter = &p->args.filter;
	const struct kp_containers *list = &in->fat.containers;
	struct kp_target settings[KP_TARGET_SETTINGS];
	size_t n = kp_target_settings(gpu, settings);
	const char *lost = NULL; /* the architecture of code that it loses */
	char text[KP_TARGET_TEXT_MAX];
	bool spirv = false; /* for some of the code it has only SPIR-V */

	for (size_t k = 0; k < list->count * n; k++) {
		const struct kp_container *c = &list->items[k / n];
		enum kp_fit had = KP_FIT_NONE, has = KP_FIT_NONE;
		const char *best = NULL;

		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
			const char *arch = in->images[i].arch;
			struct kp_target code;
			enum kp_fit fit;

			if (!in->packed[i] ||
			    kp_target_parse(kp_span_str(arch), &code, NULL))
				continue;
			fit = kp_target_fit(&settings[k % n], &code);
			if (fit > had) {
				had = fit;
				best = arch;
			}
			if (fit > has &&
			    kp_choice_has(&filter->chosen, kp_span_str(arch)))
				has = fit;
		}
		if (had && !has)
			lost = best;
		spirv |= has == KP_FIT_SPIRV;
	}
	kp_target_format(gpu, text);
	if (lost) {
		report_error(in->path,
			     "%s would lose its code: what it loads is for %s, which is "
			     "not selected; add that target, or omit --arch-exact",
			     text, lost);
		p->faults++;
	} else if (spirv && !p->args.quiet && !p->args.json) {
		report_error(in->path,
			     "note: for %s some code is only SPIR-V, which is compiled "
			     "when it is loaded",
			     text);
	}
}

/* --- kernel databases ---------------------------------------------------------------- */

static void report_missing(void *arg, const char *path, const char *text)
{
	(void)arg;
	report_error(path, "%s", text);
}

/*
 * With --check: report each file that the kernel databases of the tree need and it does not
 * have.  This also sees what INPUT's archives hold and what links lead to.  The scan has
 * already reported the faults of single files.  false: there is one.
 */
static bool check_closure(const struct packing *p)
{
	const struct pack_args *args = &p->args;
	char *paths[] = {(char *)args->input};
	const struct install_tree_of of = {.n_paths = 1,
					   .paths = paths,
					   .prefix = args->prefix,
					   .libraries = &args->libraries,
					   .packing = true};
	struct install_tree tree;
	struct kpackx_error why = {0};
	size_t faults = 0;
	kpack_error_t err;

	if (!args->check || !p->scan.found.objects)
		return true;
	err = install_tree_open(&of, &tree, &why);
	if (!err)
		err = closure_check(&tree.found, &(struct kp_choice){0}, report_missing,
				    NULL, &faults, &why);
	faults += tree.n_faults;
	install_tree_close(&tree);
	if (err)
		report_why(args->input, &why);
	if (faults)
		report_error(args->input,
			     "%zu fault%s of kernel databases: nothing is packed", faults,
			     plural(faults));
	return !err && !faults;
}

/* Files that stay in a tree: those for other GPUs are left out, if that is asked. */
static void decide_plain_databases(struct packing *p)
{
	const struct scan *scan = &p->scan;
	struct disposition *items = p->dispositions.items;
	KP_AUTO_FREE size_t *links = xmalloc(scan->n_entries * sizeof(*links));
	char target[KP_TARGET_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];
		bool wanted = !o || p->args.databases != DATABASES_IDENTIFIED;

		for (size_t k = 0; o && k < o->n_arches; k++) {
			/* files for generic targets stay for every GPU, whatever the filter is */
			library_object_target(o, k, target);
			wanted = wanted || kp_generic_members(kp_span_str(target)) ||
				 arch_filter_match(&p->args.filter, kp_span_str(target));
		}
		if (!wanted)
			disposition_set(&items[scan->file_entries[i]], FATE_NOT_WANTED,
					not_asked);
	}
	/* paths of one file are hard links in the copy, too */
	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan->entries[i].database && scan->entries[i].id.nlink > 1 &&
		    items[i].fate != FATE_NOT_WANTED)
			links[n++] = i;
	scan_chain_files(&p->scan, links, n);
	for (size_t i = 0; i < n; i++)
		if (scan->entries[links[i]].first != links[i])
			items[links[i]].fate = FATE_LINKED;
}

/*
 * Files that go into archives: those of which the plan stores something.  In place, of the
 * others those are removed that no GPU of the filter can load; the rest is left alone.
 */
static void decide_packed_databases(struct packing *p)
{
	const struct scan *scan = &p->scan;
	struct disposition *items = p->dispositions.items;
	char target[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan->entries[i].database)
			disposition_set(&items[i], FATE_NOT_WANTED, not_asked);
	for (size_t i = 0; i < p->plan.n_objects; i++) {
		size_t entry = p->plan.objects[i].input->entry;

		if (scan->entries[entry].database)
			disposition_set(&items[entry], FATE_PACKED, NULL);
	}
	if (p->args.mode != PACK_IN_PLACE || !scan->found.objects)
		return;
	for (size_t i = 0; i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];
		struct disposition *d = &items[scan->file_entries[i]];
		bool dropped = o && o->n_arches;

		if (!o || d->fate != FATE_NOT_WANTED)
			continue;
		for (size_t k = 0; k < o->n_arches; k++) {
			library_object_target(o, k, target);
			dropped = dropped &&
				  arch_filter_drops(&p->args.filter, kp_span_str(target));
		}
		disposition_set(d, dropped ? FATE_REMOVED : FATE_LEFT_ALONE,
				dropped ? NULL : not_asked);
	}
}

/* --- whether there is something to do ------------------------------------------------ */

/* Match the archives of earlier runs; false: there are none. */
static bool match_archives(struct packing *p)
{
	struct shown_files list = {0};
	bool any = !shown_files_open(p->archives, &list, NULL) &&
		   (list.n_archives || list.unreadable);

	for (size_t i = 0; i < list.n_archives; i++)
		for (size_t k = 0; k < kp_archive_arch_count(list.archives[i]); k++)
			arch_filter_match(&p->args.filter, kp_span_str(kp_archive_arch(
								   list.archives[i], k)));
	shown_files_close(&list);
	return any;
}

/*
 * Whether no code is for a selected target, as if the list were wrong.  In place, code for
 * other targets would be lost then, unless archives have code for the selected ones.
 */
static bool none_selected(struct packing *p)
{
	const struct arch_filter *filter = &p->args.filter;
	bool all_refused = p->dispositions.count; /* each binary with code keeps it */
	bool any = false;

	for (size_t i = 0; i < p->scan.n_inputs && all_refused; i++)
		all_refused = fate_of_input(p, p->scan.inputs[i]) == FATE_REFUSED;
	if (p->scan.n_inputs == 0 || all_refused)
		return false;
	if (p->args.mode != PACK_IN_PLACE)
		return p->plan.n_objects == 0;
	/* what an upgrade brings may have no code beside the archives of earlier runs */
	if (kp_choice_is_all(&filter->chosen))
		return p->plan.n_objects == 0 && !match_archives(p);
	/* first in the tree; if none of the targets has code there, in archives of earlier runs */
	for (int archives = 0; archives < 2 && !any; archives++) {
		if (archives)
			match_archives(p);
		for (size_t i = 0; i < filter->chosen.count; i++)
			any |= filter->matched[i];
	}
	return !any;
}

void packing_runtimes(const struct scan *scan, struct hip_runtimes *list)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (S_ISREG(e->mode) && e->first == i &&
		    runtime_is_name(kp_path_name(e->relative)))
			runtimes_add(list, e->path);
	}
}

/* Say what will be missing in what is written. */
static void note_missing(const struct packing *p)
{
	const struct pack_args *args = &p->args;
	const struct scan *scan = &p->scan;
	KP_AUTO_FREE bool *stored = xcalloc(scan->n_entries, 1);
	bool removed = args->mode == PACK_IN_PLACE && args->databases == DATABASES_PACKED;
	size_t n = 0;

	if (scan->n_inputs == 0)
		report_error(args->input,
			     "note: no device code to pack found in %zu file%s",
			     scan->n_files, plural(scan->n_files));
	for (size_t i = 0; i < args->filter.chosen.count; i++) {
		char arch[KP_TARGET_TEXT_MAX];

		kp_target_format(&args->filter.chosen.gpus[i], arch);
		if (!args->filter.matched[i])
			report_error(args->input, "warning: no code object for %s", arch);
	}
	if (!pack_args_take_databases(args))
		return;
	for (size_t i = 0; i < p->plan.n_objects; i++)
		stored[p->plan.objects[i].input->entry] = true;
	for (size_t i = 0; i < scan->n_entries; i++)
		n += scan->entries[i].database && !stored[i];
	if (n)
		report_error(
			args->input,
			"note: %zu file%s of kernel databases %s for other targets and "
			"%s",
			n, plural(n), n == 1 ? "is" : "are",
			removed ? "removed, if these are known" : "not packed");
}

/* --- all together -------------------------------------------------------------------- */

/* Plan the objects, and find the directories of archives. */
static kpack_error_t plan_objects(struct packing *p, struct kpackx_error *why)
{
	struct pack_args *args = &p->args;
	const char *dir = args->archive_dir ? args->archive_dir : KP_ARCHIVES_DIR;
	struct plan_chunks chunks = {.all = args->how.chunk};
	struct stat st;

	/* the other schemes let a reader begin at any byte */
	if (args->how.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		chunks.at_random = PLAN_CHUNK;
	if (args->split_rocfft || args->rows)
		KP_TRY(rocfft_caches_split(&p->scan, args->split_rocfft, args->rows,
					   &p->parts, why));
	KP_TRY(plan_open(&p->scan, &args->filter, &chunks, &p->plan, why));
	p->faults += p->scan.n_faults + p->plan.n_faults;
	if (!p->archives)
		p->archives = xasprintf("%s/%s", args->output, dir);
	if (args->mode == PACK_TREE) {
		p->inherit = xasprintf("%s/%s", args->input, dir);
		if (below_stat(p->inherit, &st) < 0) {
			free(p->inherit);
			p->inherit = NULL;
		}
	}
	return KPACK_SUCCESS;
}

int packing_plan(struct packing *p)
{
	const struct pack_args *args = &p->args;
	const struct scan *scan = &p->scan;
	bool tree = args->mode != PACK_ARCHIVES, in_place = args->mode == PACK_IN_PLACE;
	struct kpackx_error why = {0};

	/* what the scan has to say: of files with, or seemingly with, device code that stays */
	for (size_t i = 0; i < scan->n_inputs && !args->quiet; i++) {
		const struct input *in = scan->inputs[i];

		for (size_t k = 0; k < in->n_images && in->kind == INPUT_DATABASE; k++)
			if (in->objects[k].warning)
				report_error(scan->entries[in->entry].path, "warning: %s",
					     in->objects[k].warning);
	}
	scan_report_left(scan, args->quiet);
	if (pack_args_take_databases(args) && args->libraries.count && !args->quiet)
		scan_report_unrecognised(scan);
	if (!check_closure(p))
		return EXIT_FAULT;
	if (tree) {
		const struct converter c = packing_converter(p);

		dispositions_open(&p->scan, in_place, &p->dispositions);
		converter_check(&c, &p->faults);
	}
	/* binaries that cannot be converted keep their code; apart, all that are no binaries do */
	for (size_t i = 0; i < p->scan.n_inputs && tree; i++) {
		struct input *in = p->scan.inputs[i];
		enum fate fate = fate_of_input(p, in);
		bool kept = fate == FATE_KEPT && p->kind == PACKING_APART;

		if (in->kind == INPUT_DATABASE || (fate != FATE_REFUSED && !kept))
			continue;
		memset(in->packed, 0, in->n_images * sizeof(*in->packed));
		if (kept)
			keep_as_it_is(p, in);
	}
	if (plan_objects(p, &why)) {
		report_why(NULL, &why);
		return EXIT_FAULT;
	}

	/* a kept file none of whose targets were requested is an ordinary file */
	for (size_t i = 0; i < p->plan.n_binaries && tree; i++) {
		const struct plan_binary *b = &p->plan.binaries[i];

		if (fate_of_input(p, b->input) == FATE_KEPT && b->n_needs == 0)
			keep_as_it_is(p, b->input);
	}
	if (tree && args->databases == DATABASES_PACKED)
		decide_packed_databases(p);
	else if (tree)
		decide_plain_databases(p);

	/* what would fail while files are written */
	if (in_place)
		databases_check(&p->scan, &p->dispositions, &p->faults);
	else if (tree)
		output_check_mounts(&p->scan, args->output, &p->faults);
	for (size_t i = 0;
	     i < p->scan.n_inputs && !kp_choice_is_all(&args->filter.chosen); i++)
		for (size_t k = 0; k < args->filter.chosen.count && tree; k++)
			if (fate_of_input(p, p->scan.inputs[i]) == FATE_CONVERTED)
				check_gpu(p, p->scan.inputs[i],
					  &args->filter.chosen.gpus[k]);
	tree_write_begin(&p->tree, args->output, p->kind == PACKING_APART);
	if (p->faults) {
		report_error(NULL, "nothing was packed because of the faults above");
		return EXIT_FAULT;
	}
	if (p->kind == PACKING_APART)
		return EXIT_OK;

	if (none_selected(p) && !p->scan.skip.known) {
		KP_AUTO(code_table) table = {0};

		scan_count_code(&p->scan, &table);
		return code_table_refuse(
			&table, args->input,
			"no code is for the wanted GPUs: nothing is packed");
	}
	if (p->scan.n_inputs == 0 && args->mode == PACK_ARCHIVES) {
		report_error(args->input, "no device code found in %zu file%s",
			     p->scan.n_files, plural(p->scan.n_files));
		return EXIT_FAULT;
	}
	if (!args->any_runtime && packing_converts(p) && (!args->quiet || in_place)) {
		struct hip_runtimes list = {0};
		bool fine;

		packing_runtimes(&p->scan, &list);
		fine = runtimes_judge(&list, args->input, in_place);
		runtimes_fini(&list);
		/* a tree that is used as it stands would lose its GPU code */
		if (!fine && in_place)
			return EXIT_FAULT;
	}
	if (!args->quiet)
		note_missing(p);
	return EXIT_OK;
}
