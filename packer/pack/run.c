/* SPDX-License-Identifier: MIT */
#include "run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "database_clash.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/files/below.h"
#include "tree_databases.h"
#include "write_tree.h"
#include "check.h"
#include "report.h"
#include "runtimes.h"
#include "packer/cli/report.h"
#include "interrupted.h"
#include "lost_code.h"
#include "core/archive/naming.h"

/* --- archives ------------------------------------------------------------------------ */

static bool plan_stores_entry(const void *arg, struct kp_span key, struct kp_span arch,
			      unsigned volume, const char **place)
{
	const struct plan *plan = arg;
	uint32_t binary;

	if (!plan_stores(plan, key, arch, &binary, place))
		return false;
	if (plan->binaries[binary].volume < volume)
		plan->binaries[binary].volume = volume;
	return true;
}

/*
 * In place, a binary that is converted or a database's file that leaves the tree is newer
 * than the entries that archives have for it, as after an upgrade.
 */
static bool replaces_entry(const void *arg, struct kp_span key, struct kp_span path)
{
	const struct packing *p = arg;
	size_t entry;
	enum fate fate;

	if (path.size) {
		if (!file_tree_find(&p->scan.files, path, &entry))
			return false;
		fate = p->dispositions.items[p->scan.file_entries[entry]].fate;
		return fate == FATE_PACKED || fate == FATE_REMOVED;
	}
	return plan_find_owner(&p->plan, key, &entry) &&
	       p->dispositions.items[entry].fate == FATE_CONVERTED;
}

/* The level of a part's shared archives. */
enum { PART_LEVEL = 1 };

/* Tell the set what other parts of the run store. */
static void expect_others(const struct packing *p)
{
	const struct plan *plan = &p->plan;

	for (size_t i = 0; i < plan->n_objects; i++) {
		const struct plan_object *o = &plan->objects[i];
		const struct plan_container *c = &plan->containers[o->container];
		const char *place = o->input->images[o->image].arch;

		for (size_t k = 0; k < c->n_indices; k++) {
			char *key = xasprintf("%s#%u", o->input->key, c->indices[k]);

			archive_set_expect(p->set, place, kp_span_str(key), place);
			free(key);
		}
		for (size_t k = o->first_key; k < o->first_key + o->n_keys; k++)
			archive_set_expect(p->set, place, kp_span_str(plan->keys[k].key),
					   plan->keys[k].arch);
	}
}

kpack_error_t packing_open_set(struct packing *p, const char *inherit, bool unnamed,
			       struct kpackx_error *why)
{
	struct archive_set_options where = {
		.dir = p->archives,
		.group = p->args.group,
		.scheme = p->args.how.scheme,
		/* joining the parts of a shared archive compresses everything again */
		.level = p->args.shard.count > 1 ? PART_LEVEL : p->args.how.level,
		.effort = p->args.how.effort,
		.jobs = p->args.how.jobs,
		.volume_size = p->args.volume_size,
		.force = p->args.force,
		.unnamed = unnamed,
		.families = &p->args.families,
		.inherit = inherit,
		.stores = plan_stores_entry,
		.stores_arg = &p->plan,
		.obsolete = p->args.mode == PACK_IN_PLACE ? replaces_entry : NULL,
		.obsolete_arg = p,
	};

	KP_TRY(archive_set_open(&where, &p->set, why));
	for (size_t i = 0; i < p->plan.n_binaries; i++) {
		struct plan_binary *b = &p->plan.binaries[i];

		if (b->n_needs)
			b->volume = archive_set_place(p->set, b->volume, b->needs,
						      b->n_needs);
	}
	if (p->mine)
		expect_others(p);
	return KPACK_SUCCESS;
}

/* Flush the directory: without it archives that are on the disk would still be lost. */
static kpack_error_t flush_directory(const char *path, struct kpackx_error *why)
{
	int fd = below_open_following(path, O_RDONLY | O_DIRECTORY);
	kpack_error_t err = KPACK_SUCCESS;

	if (fd < 0)
		return kp_fail_prefix(why, below_fail(why, "cannot open the directory"),
				      "%s", path);
	if (kp_flush_dir(fd))
		err = kp_fail_errno(why, errno, "%s: cannot flush", path);
	close(fd);
	return err;
}

/* Make the output's directories, and writable. */
static kpack_error_t make_dirs(struct packing *p, struct kpackx_error *why)
{
	struct stat st;

	/* those of an earlier output may be read-only */
	KP_TRY(p->args.mode == PACK_TREE ? tree_write_root(&p->tree, why)
					 : below_make_root(p->args.output, 0777, why));
	/* it may be a link, which archive_set_open follows by the rules for operands */
	if (below_stat(p->archives, &st) == 0 && S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	return below_mkdirs(p->archives, 0777, why);
}

kpack_error_t packing_store(struct packing *p, struct kpackx_error *why)
{
	uint64_t bytes = 0;
	struct progress progress;
	kpack_error_t err;

	p->args.how.mine = p->mine;
	for (size_t i = 0; i < p->plan.n_objects; i++) {
		const struct plan_object *o = &p->plan.objects[i];

		if (!p->mine || p->mine[o->input->entry])
			bytes += o->input->images[o->image].size;
	}
	spill_dir_begin(&p->spill, p->archives);
	progress_begin(&progress, "packing", bytes, !p->args.quiet && !p->args.json);
	err = pack_run(&p->plan, &p->args.how, p->set, &progress, why);
	progress_end(&progress);
	return err;
}

/* Whether another run may be at work: temporary files may be its own, so wait for it. */
static bool has_leftovers(const struct packing *p)
{
	for (size_t i = 0; i < p->scan.n_entries; i++)
		if (p->scan.entries[i].leftover)
			return true;
	return false;
}

/* Whether files change, so that entries of an earlier run may be obsolete. */
static bool takes_away(const struct packing *p)
{
	bool any = false;

	for (size_t i = 0; i < p->dispositions.count; i++)
		any |= p->dispositions.items[i].fate == FATE_CONVERTED ||
		       p->dispositions.items[i].fate == FATE_REMOVED;
	return any;
}

static kpack_error_t check_clashes(struct packing *p, clash_side *side,
				   const char *archives, struct kpackx_error *why)
{
	const struct clash_run run = {
		.args = &p->args,
		.scan = &p->scan,
		.plan = &p->plan,
		.dispositions = p->args.mode == PACK_ARCHIVES ? NULL : &p->dispositions,
		.archives = archives,
	};

	return clash_check(&run, side, why);
}

/* --- the rest ------------------------------------------------------------------------ */

static const char *archive_dir(const struct packing *p)
{
	return p->args.archive_dir ? p->args.archive_dir : KP_ARCHIVES_DIR;
}

static void find_archives(struct packing *p)
{
	const struct pack_args *args = &p->args;
	struct stat st;

	if (!p->archives)
		p->archives = xasprintf("%s/%s", args->output, archive_dir(p));
	if (args->mode != PACK_TREE)
		return;
	p->inherit = xasprintf("%s/%s", args->input, archive_dir(p));
	if (below_stat(p->inherit, &st) < 0) {
		free(p->inherit);
		p->inherit = NULL;
	}
}

/* The fate of a file that stays as it is. */
static enum fate fate_of_rest(const struct packing *p)
{
	return p->args.mode == PACK_IN_PLACE ? FATE_UNCHANGED : FATE_COPIED;
}

/* A kept file none of whose targets were requested is an ordinary file. */
static void find_unasked(struct packing *p)
{
	for (size_t i = 0; i < p->plan.n_binaries; i++) {
		const struct plan_binary *b = &p->plan.binaries[i];
		struct disposition *o = &p->dispositions.items[b->input->entry];

		if (o->fate == FATE_KEPT && b->n_needs == 0)
			o->fate = fate_of_rest(p);
	}
}

static struct converter converter_for(struct packing *p)
{
	const struct pack_args *args = &p->args;

	return (struct converter){
		.scan = &p->scan,
		.inputs = p->scan.inputs,
		.n_inputs = p->scan.n_inputs,
		.plan = &p->plan,
		.dispositions = &p->dispositions,
		.output = args->mode == PACK_TREE ? args->output : NULL,
		.group = args->group,
		.families = &args->families,
		.keep_device_code = args->keep_device_code,
		.keep_containers = args->keep_containers,
		.jobs = args->how.jobs,
	};
}

/* Store no code of binaries that are refused and, with KEPT, of files that are kept. */
static void leave_unconverted(struct packing *p, bool kept)
{
	for (size_t i = 0; i < p->scan.n_inputs; i++) {
		struct input *in = p->scan.inputs[i];
		struct disposition *o = &p->dispositions.items[in->entry];

		if (in->kind == INPUT_DATABASE ||
		    (o->fate != FATE_REFUSED && !(kept && o->fate == FATE_KEPT)))
			continue;
		memset(in->packed, 0, in->n_images * sizeof(*in->packed));
		if (o->fate == FATE_KEPT)
			o->fate = fate_of_rest(p);
	}
}

void packing_check_binaries(struct packing *p, bool leave_kept)
{
	const struct converter c = converter_for(p);

	converter_check(&c, &p->faults);
	leave_unconverted(p, leave_kept);
}

kpack_error_t packing_plan(struct packing *p, struct kpackx_error *why)
{
	struct pack_args *args = &p->args;
	struct plan_chunks chunks = {.all = args->how.chunk};

	/* the other schemes let a reader begin at any byte */
	if (args->how.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		chunks.at_random = PLAN_CHUNK;
	if (args->split_rocfft || args->rows)
		KP_TRY(rocfft_caches_split(&p->scan, args->split_rocfft, args->rows,
					   &p->parts, why));
	KP_TRY(plan_open(&p->scan, &args->filter, &chunks, &p->plan, why));
	find_archives(p);
	p->faults += p->scan.n_faults + p->plan.n_faults;
	return KPACK_SUCCESS;
}

void packing_settle(struct packing *p)
{
	struct pack_args *args = &p->args;

	find_unasked(p);
	if (args->databases == DATABASES_IDENTIFIED)
		databases_leave_out(&p->scan, &args->filter, &p->dispositions);
	databases_decide(&p->scan, &p->plan, args->databases != DATABASES_PACKED,
			 &p->dispositions);
	if (args->mode == PACK_IN_PLACE && args->databases == DATABASES_PACKED)
		databases_remove_others(&p->scan, &args->filter, &p->dispositions);
	if (args->mode == PACK_IN_PLACE)
		databases_check(&p->scan, &p->dispositions, &p->faults);
	else
		output_check_mounts(&p->scan, args->output, &p->faults);
	p->converter = converter_for(p);
}

bool packing_faulty(const struct packing *p)
{
	if (p->faults)
		report_error(NULL, "nothing was packed because of the faults above");
	return p->faults;
}

/* Whether there are binaries with code, and each of them keeps it. */
static bool all_refused(const struct packing *p)
{
	bool any = false;

	for (size_t i = 0; i < p->scan.n_inputs && p->dispositions.count; i++) {
		const struct input *in = p->scan.inputs[i];

		if (p->dispositions.items[in->entry].fate != FATE_REFUSED)
			return false;
		any = true;
	}
	return any;
}

/* Match the archives of earlier runs; false: there are none. */
static bool match_archives(struct packing *p)
{
	char **paths = NULL;
	size_t n = 0;

	if (below_archives_find(p->archives, &paths, &n, NULL))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct kpack_archive *a = NULL;

		if (!below_archive_open(paths[i], &a, NULL))
			for (size_t k = 0; k < kp_archive_arch_count(a); k++)
				arch_filter_match(&p->args.filter,
						  kp_span_str(kp_archive_arch(a, k)));
		kp_archive_close(a);
		free(paths[i]);
	}
	free(paths);
	return n;
}

static bool any_matched(const struct arch_filter *filter)
{
	bool any = false;

	for (size_t i = 0; i < filter->chosen.count; i++)
		any |= filter->matched[i];
	return any;
}

/*
 * Whether no code is for a selected target, as if the list were wrong.  In place, code for
 * other targets would be lost then, unless archives have code for the selected ones.
 */
static bool none_selected(struct packing *p)
{
	const struct arch_filter *filter = &p->args.filter;

	if (p->scan.n_inputs == 0 || all_refused(p))
		return false;
	if (p->args.mode != PACK_IN_PLACE)
		return p->plan.n_objects == 0;
	/* what an upgrade brings may have no code beside the archives of earlier runs */
	if (!arch_filter_given(filter))
		return p->plan.n_objects == 0 && !match_archives(p);
	if (!any_matched(filter))
		match_archives(p);
	return !any_matched(filter);
}

/* Whether there is nothing to do, which is reported. */
static bool nothing_to_do(struct packing *p)
{
	const struct pack_args *args = &p->args;

	if (packing_faulty(p))
		return true;
	if (none_selected(p) && !p->scan.skip.known)
		report_error(args->input, "no code object of the targets asked for");
	else if (p->scan.n_inputs == 0 && args->mode == PACK_ARCHIVES)
		report_error(args->input, "no device code found in %zu files",
			     p->scan.n_files);
	else
		return false;
	return true;
}

static void note_none(const struct packing *p)
{
	if (p->scan.n_inputs == 0)
		report_error(p->args.input,
			     "note: no device code to pack found in %zu files",
			     p->scan.n_files);
}

static void warn_unmatched(const struct packing *p)
{
	const struct arch_filter *filter = &p->args.filter;

	for (size_t i = 0; i < filter->chosen.count; i++) {
		char arch[KP_TARGET_TEXT_MAX];

		kp_target_format(&filter->chosen.gpus[i], arch);
		if (!filter->matched[i])
			report_error(p->args.input, "warning: no code object for %s",
				     arch);
	}
}

static void note_not_asked(const struct packing *p)
{
	bool in_place = p->args.mode == PACK_IN_PLACE;
	size_t n = databases_are_stored(p->args.databases)
			   ? databases_not_asked(&p->scan, &p->plan)
			   : 0;

	if (n)
		report_error(p->args.input,
			     "note: %zu files of kernel databases are for other targets "
			     "and %s",
			     n,
			     in_place && p->args.databases == DATABASES_PACKED
				     ? "removed, if these are known"
				     : "not packed");
}

int packing_scan(struct packing *p)
{
	static const enum scan_databases treatments[] = {
		[DATABASES_PACKED] = SCAN_PACK,
		[DATABASES_BOTH] = SCAN_PACK,
		[DATABASES_PLAIN] = SCAN_FIND,
		[DATABASES_IDENTIFIED] = SCAN_IDENTIFY,
	};
	const struct pack_args *args = &p->args;
	/* files of databases that stay as they are are only looked at with --check */
	bool looks = args->databases != DATABASES_PLAIN || args->check;
	struct kpackx_error why = {0};

	p->scan.archives_dir = args->archive_dir;
	if (scan_open(args->input, args->prefix,
		      args->mode == PACK_ARCHIVES ? SCAN_ALL_CODE : SCAN_CONVERTIBLE,
		      looks ? &args->libraries : NULL, treatments[args->databases],
		      &p->scan, &why)) {
		report_why(args->input, &why);
		return EXIT_FAULT;
	}
	return EXIT_OK;
}

bool packing_converts(const struct packing *p)
{
	for (size_t i = 0; i < p->dispositions.count; i++)
		if (p->dispositions.items[i].fate == FATE_CONVERTED)
			return true;
	return false;
}

/*
 * Whether the run may go on.  A tree that is used as it stands would lose its GPU code if
 * its runtime refuses converted binaries.
 */
static bool check_runtimes(const struct packing *p)
{
	bool in_place = p->args.mode == PACK_IN_PLACE;
	struct hip_runtimes list = {0};
	bool fine;

	if (p->args.any_runtime || !packing_converts(p) || (p->args.quiet && !in_place))
		return true;
	pack_runtimes_add(&list, &p->scan);
	fine = runtimes_judge(&list, p->args.input, in_place);
	runtimes_fini(&list);
	return fine || !in_place;
}

int packing_status(kpack_error_t err, const struct kpackx_error *why)
{
	if (!err)
		return EXIT_OK;
	report_why(NULL, why);
	return EXIT_FAULT;
}

int packing_prepare(struct packing *p)
{
	bool tree = p->args.mode != PACK_ARCHIVES;
	struct kpackx_error why = {0};
	int status;

	pack_report_notes(&p->args, &p->scan);
	status = pack_check(&p->args, &p->scan);
	if (status)
		return status;
	if (tree) {
		dispositions_open(&p->scan, p->args.mode == PACK_IN_PLACE,
				  &p->dispositions);
		packing_check_binaries(p, false);
	}
	if (packing_plan(p, &why))
		return packing_status(why.code, &why);
	if (tree) {
		packing_settle(p);
		lost_code_check(&p->converter, &p->args.filter,
				p->args.quiet || p->args.json, &p->faults);
	}
	tree_write_begin(&p->tree, p->args.output, false);
	if (nothing_to_do(p) || !check_runtimes(p))
		return EXIT_FAULT;
	if (!p->args.quiet) {
		note_none(p);
		warn_unmatched(p);
		note_not_asked(p);
	}
	return EXIT_OK;
}

/* --- the drivers --------------------------------------------------------------------- */

/* The set stays open, and locked against other runs, while binaries are converted. */
static kpack_error_t open_archives(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(make_dirs(p, why));
	KP_TRY(packing_open_set(p, p->inherit, false, why));
	return check_clashes(p, clash_archives, p->archives, why);
}

static kpack_error_t write_archives(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(open_archives(p, why));
	KP_TRY(packing_store(p, why));
	KP_TRY(resume_join(&p->converter, why));
	return archive_set_publish(p->set, why);
}

/* Leave the files of other shards to them. */
static void leave_others(struct packing *p)
{
	for (size_t i = 0; i < p->dispositions.count && p->mine; i++)
		if (!S_ISDIR(p->scan.entries[i].mode) &&
		    !p->mine[p->scan.entries[i].first])
			p->dispositions.items[i].fate = FATE_NOTHING;
}

kpack_error_t packing_write_tree(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(check_clashes(p, clash_tree, p->archives, why));
	if (p->plan.n_objects || p->inherit)
		KP_TRY(write_archives(p, why));
	else
		KP_TRY(check_clashes(p, clash_archives, p->archives, why));
	leave_others(p);
	return output_write(&p->converter, p->args.input, &p->tree, why);
}

static kpack_error_t pack_tree(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(packing_write_tree(p, why));
	return tree_write_finish(&p->tree, why);
}

static kpack_error_t pack_in_place(struct packing *p, struct kpackx_error *why)
{
	if (p->plan.n_objects || has_leftovers(p) || takes_away(p)) {
		KP_TRY(write_archives(p, why));
		KP_TRY(flush_directory(p->args.output, why));
	} else {
		KP_TRY(check_clashes(p, clash_archives, p->archives, why));
	}
	return output_write(&p->converter, p->args.input, NULL, why);
}

static kpack_error_t pack_archives(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(open_archives(p, why));
	KP_TRY(packing_store(p, why));
	return archive_set_publish(p->set, why);
}

kpack_error_t packing_write(struct packing *p, struct kpackx_error *why)
{
	switch (p->args.mode) {
	case PACK_TREE:
		return pack_tree(p, why);
	case PACK_IN_PLACE:
		return pack_in_place(p, why);
	default:
		return pack_archives(p, why);
	}
}

int packing_run(struct packing *p)
{
	struct kpackx_error why = {0};
	int status = packing_scan(p);

	if (!status)
		status = packing_prepare(p);
	return status ? status : packing_status(packing_write(p, &why), &why);
}

void packing_close(struct packing *p)
{
	tree_write_end(&p->tree);
	spill_dir_end(&p->spill);
	archive_set_close(p->set);
	dispositions_close(&p->dispositions);
	plan_close(&p->plan);
	scan_close(&p->scan);
	cache_files_fini(&p->parts);
	free(p->archives);
	free(p->inherit);
	free(p->mine);
	pack_args_fini(&p->args);
}
