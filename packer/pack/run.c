/* SPDX-License-Identifier: MIT */
#include "run.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>
#include "database_clash.h"
#include "packer/base/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/files/below.h"
#include "packer/pack/tree/databases.h"
#include "packer/pack/tree/write.h"
#include "check.h"
#include "report.h"
#include "packer/cli/report.h"
#include "packer/pack/tree/interrupted.h"
#include "core/archive/naming.h"
#include "core/base/spill.h"

/* Larger blocks of memory are the system's. */
enum { MALLOC_KEEPS = 2 << 20 };

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

static kpack_error_t open_set(struct packing *p, struct kpackx_error *why)
{
	struct archive_set_options where = {
		.dir = p->archives,
		.group = p->args.group,
		.scheme = p->args.how.scheme,
		.level = p->args.how.level,
		.volume_size = p->args.volume_size,
		.force = p->args.force,
		.unnamed = p->args.unnamed,
		.families = &p->args.families,
		.inherit = p->hooks ? NULL : p->inherit,
		.stores = plan_stores_entry,
		.stores_arg = &p->plan,
	};

	return archive_set_open(&where, &p->set, why);
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

/*
 * Make the directory of the archives.  It may be a link, which archive_set_open follows
 * by the rules for operands.
 */
static kpack_error_t make_archives_dir(const char *path, struct kpackx_error *why)
{
	struct stat st;

	if (below_stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	return below_mkdirs(path, 0777, why);
}

/*
 * Make the output's directories, and writable: those of an earlier output may be
 * read-only.
 */
static kpack_error_t make_dirs(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(p->args.mode == PACK_TREE ? tree_write_root(&p->tree, why)
					 : below_make_root(p->args.output, 0777, why));
	KP_TRY(make_archives_dir(p->archives, why));
	return p->args.mode == PACK_IN_PLACE ? flush_directory(p->args.output, why)
					     : KPACK_SUCCESS;
}

/*
 * Large containers are decoded to where there is room for what is in them.  What is freed
 * goes back to the system at once: by default malloc keeps blocks of up to 32 MB, and a
 * run frees many.
 */
static void begin_spilling(struct packing *p)
{
	int dir = below_open_following(p->archives, O_RDONLY | O_DIRECTORY), fd;

	mallopt(M_MMAP_THRESHOLD, MALLOC_KEEPS);
	if (dir < 0)
		return;
	kp_spill_into(dir);
	fd = kp_spill_open();
	if (fd < 0) { /* not on this file system */
		kp_spill_into(-1);
		close(dir);
		return;
	}
	close(fd);
	p->spill_dir = dir;
	p->spilling = true;
}

static void end_spilling(struct packing *p)
{
	if (!p->spilling)
		return;
	kp_spill_into(-1);
	close(p->spill_dir);
	p->spilling = false;
}

static kpack_error_t store_objects(struct packing *p, struct kpackx_error *why)
{
	struct progress progress;
	kpack_error_t err;

	begin_spilling(p);
	p->args.how.observer = p->hooks ? &p->hooks->observer : NULL;
	progress_begin(&progress, "packing", p->plan.bytes,
		       !p->args.quiet && !p->args.json);
	err = pack_run(&p->plan, &p->args.how, p->set, &progress, why);
	progress_end(&progress);
	if (!err && p->args.mode != PACK_ARCHIVES)
		err = p->hooks ? p->hooks->join(p, why) : resume_join(&p->converter, why);
	return err ? err : archive_set_publish(p->set, why);
}

/*
 * Whether another run may be at work in a tree that is converted in place: temporary
 * files may be its own, so wait for it.
 */
static bool has_leftovers(const struct packing *p)
{
	for (size_t i = 0; i < p->scan.n_entries; i++)
		if (p->scan.entries[i].leftover)
			return p->args.mode == PACK_IN_PLACE;
	return false;
}

static kpack_error_t check_clashes(struct packing *p, clash_side *side,
				   struct kpackx_error *why)
{
	const struct clash_run run = {
		.args = &p->args,
		.scan = &p->scan,
		.plan = &p->plan,
		.dispositions = p->args.mode == PACK_ARCHIVES ? NULL : &p->dispositions,
		.archives = p->archives,
	};

	return clash_check(&run, side, why);
}

/*
 * Write one shard's part.  Only INPUT's archives can clash: the output of the whole run
 * is new.
 */
static kpack_error_t write_part(struct packing *p, struct kpackx_error *why)
{
	const struct clash_run run = {
		.args = &p->args,
		.scan = &p->scan,
		.plan = &p->plan,
		.dispositions = p->args.mode == PACK_ARCHIVES ? NULL : &p->dispositions,
		.archives = p->inherit,
	};

	if (p->inherit)
		KP_TRY(clash_check(&run, clash_archives, why));
	KP_TRY(make_dirs(p, why));
	KP_TRY(p->hooks->begin(p, why));
	if (p->finished_before)
		return KPACK_SUCCESS;
	KP_TRY(open_set(p, why));
	return store_objects(p, why);
}

static kpack_error_t write_unnamed(struct packing *p, struct kpackx_error *why)
{
	if (p->plan.n_objects == 0)
		return KPACK_SUCCESS;
	KP_TRY(open_set(p, why));
	return store_objects(p, why);
}

/* The set stays open, and locked against other runs, while binaries are converted. */
static kpack_error_t write_archives(struct packing *p, struct kpackx_error *why)
{
	if (p->hooks)
		return write_part(p, why);
	if (p->args.unnamed)
		return write_unnamed(p, why);
	if (p->args.mode == PACK_TREE)
		KP_TRY(check_clashes(p, clash_tree, why));
	if (p->plan.n_objects == 0 && !p->inherit && !has_leftovers(p))
		return check_clashes(p, clash_archives, why);
	KP_TRY(make_dirs(p, why));
	KP_TRY(open_set(p, why));
	KP_TRY(check_clashes(p, clash_archives, why));
	return store_objects(p, why);
}

/* --- the rest ------------------------------------------------------------------------ */

static void find_archives(struct packing *p)
{
	const struct pack_args *args = &p->args;
	const char *dir = p->hooks ? p->hooks->dir : KP_ARCHIVES_DIR;
	struct stat st;

	p->archives = args->unnamed ? xstrdup(args->output)
				    : xasprintf("%s/%s", args->output, dir);
	if (args->mode != PACK_TREE)
		return;
	p->inherit = xasprintf("%s/" KP_ARCHIVES_DIR, args->input);
	if (below_stat(p->inherit, &st) < 0) {
		free(p->inherit);
		p->inherit = NULL;
	}
}

/* A kept file none of whose targets were requested is an ordinary file. */
static void find_unasked(struct packing *p)
{
	for (size_t i = 0; i < p->plan.n_binaries; i++) {
		const struct plan_binary *b = &p->plan.binaries[i];
		struct disposition *o = &p->dispositions.items[b->input->entry];

		if (o->fate == FATE_KEPT && b->n_needs == 0)
			o->fate = p->args.mode == PACK_IN_PLACE ? FATE_UNCHANGED
								: FATE_COPIED;
	}
}

static struct converter converter_for(struct packing *p, const struct plan *plan)
{
	const struct pack_args *args = &p->args;

	return (struct converter){
		.scan = &p->scan,
		.plan = plan,
		.dispositions = &p->dispositions,
		.output = args->mode == PACK_TREE ? args->output : NULL,
		.group = args->group,
		.families = &args->families,
		.keep_device_code = args->keep_device_code,
		.apart = args->apart,
		.jobs = args->how.jobs,
	};
}

/* Store no code of files that are not converted. */
static void leave_unconverted(struct packing *p)
{
	for (size_t i = 0; i < p->scan.n_inputs; i++) {
		struct input *in = p->scan.inputs[i];
		struct disposition *o = &p->dispositions.items[in->entry];

		if (in->kind == INPUT_DATABASE ||
		    (o->fate != FATE_REFUSED && o->fate != FATE_KEPT))
			continue;
		memset(in->packed, 0, in->n_images * sizeof(*in->packed));
		if (o->fate == FATE_KEPT)
			o->fate = p->args.mode == PACK_IN_PLACE ? FATE_UNCHANGED
								: FATE_COPIED;
	}
}

/* Find the binaries that cannot be converted, before anything is planned. */
static void leave_kept(struct packing *p, size_t *faults)
{
	size_t n = p->scan.n_inputs;
	struct plan all = {.binaries = xcalloc(n, sizeof(*all.binaries)),
			   .n_binaries = n};
	struct converter c = converter_for(p, &all);

	for (size_t i = 0; i < n; i++)
		all.binaries[i].input = p->scan.inputs[i];
	converter_check(&c, faults);
	free(all.binaries);
	leave_unconverted(p);
}

static kpack_error_t prepare_plan(struct packing *p, size_t *faults,
				  struct kpackx_error *why)
{
	struct pack_args *args = &p->args;
	struct plan_chunks chunks = {.all = args->how.chunk};

	if (args->how.scheme != KPACK_COMPRESSION_NOOP)
		chunks.at_random = PLAN_CHUNK;
	if (args->split_rocfft || args->rows)
		KP_TRY(rocfft_caches_split(&p->scan, args->split_rocfft, args->rows,
					   &p->parts, why));
	if (args->mode != PACK_ARCHIVES)
		dispositions_open(&p->scan, args->mode == PACK_IN_PLACE,
				  &p->dispositions);
	if (args->apart)
		leave_kept(p, faults);
	KP_TRY(plan_open(&p->scan, &args->filter, &chunks, &p->plan, why));
	find_archives(p);
	tree_write_begin(&p->tree, args->output, args->apart);
	*faults += p->scan.n_faults + p->plan.n_faults;
	if (args->mode == PACK_ARCHIVES)
		return KPACK_SUCCESS;
	find_unasked(p);
	if (args->identify)
		databases_leave_out(&p->scan, &args->filter, &p->dispositions);
	databases_decide(&p->scan, &p->plan, args->databases != DATABASES_PACKED,
			 &p->dispositions);
	if (args->mode == PACK_IN_PLACE)
		databases_check(&p->scan, &p->dispositions, faults);
	else
		output_check_mounts(&p->scan, args->output, faults);
	p->converter = converter_for(p, &p->plan);
	if (!args->apart)
		converter_check(&p->converter, faults);
	return KPACK_SUCCESS;
}

/* Whether there is nothing to do, which is reported. */
static bool nothing_to_do(const struct packing *p, size_t faults)
{
	const struct pack_args *args = &p->args;

	if (faults)
		report_error(NULL, "nothing was packed because of the faults above");
	else if (p->scan.n_inputs && p->plan.n_objects == 0 && !args->apart)
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

	for (size_t i = 0; i < filter->count; i++) {
		char arch[KP_TARGET_TEXT_MAX];

		kp_target_format(&filter->targets[i], arch);
		if (!filter->matched[i])
			report_error(p->args.input, "warning: no code object for %s",
				     arch);
	}
}

static void note_not_asked(const struct packing *p)
{
	size_t n = p->args.databases != DATABASES_PLAIN
			   ? databases_not_asked(&p->scan, &p->plan)
			   : 0;

	if (n)
		report_error(p->args.input,
			     "note: %zu files of kernel databases are for other targets "
			     "and not packed",
			     n);
}

/* When splitting, the caller prints the report. */
static void report_before(const struct packing *p)
{
	if (p->args.apart)
		return;
	note_none(p);
	warn_unmatched(p);
	note_not_asked(p);
}

static kpack_error_t write_all(struct packing *p, struct kpackx_error *why)
{
	KP_TRY(write_archives(p, why));
	if (p->finished_before)
		return KPACK_SUCCESS;
	if (p->args.mode != PACK_ARCHIVES)
		KP_TRY(output_write(&p->converter, p->args.input, &p->tree, why));
	if (!p->args.apart)
		KP_TRY(tree_write_finish(&p->tree, why));
	return p->hooks ? p->hooks->end(p, why) : KPACK_SUCCESS;
}

static int report_failure(const struct kpackx_error *why)
{
	report_why(NULL, why);
	return EXIT_FAULT;
}

int packing_write(struct packing *p)
{
	struct kpackx_error why = {0};
	size_t faults = 0;
	int status;

	if (!p->args.quiet)
		pack_report_notes(&p->args, &p->scan);
	status = pack_check(&p->args, &p->scan);
	if (status)
		return status;
	if (prepare_plan(p, &faults, &why))
		return report_failure(&why);
	if (nothing_to_do(p, faults))
		return EXIT_FAULT;
	if (!p->args.quiet)
		report_before(p);
	status = write_all(p, &why) ? report_failure(&why) : EXIT_OK;
	end_spilling(p);
	return status;
}

/* Databases that stay as they are are only looked at to be checked or identified. */
static const struct library_set *libraries_of(const struct pack_args *args)
{
	return args->databases == DATABASES_PLAIN && !args->check && !args->identify
		       ? NULL
		       : &args->libraries;
}

int packing_scan(struct packing *p)
{
	const struct pack_args *args = &p->args;
	struct kpackx_error why = {0};
	enum scan_databases databases = args->databases != DATABASES_PLAIN ? SCAN_PACK
					: args->identify                   ? SCAN_IDENTIFY
									   : SCAN_FIND;

	if (scan_open(args->input, args->prefix, args->mode != PACK_ARCHIVES,
		      libraries_of(args), databases, &p->scan, &why)) {
		report_why(args->input, &why);
		return EXIT_FAULT;
	}
	return EXIT_OK;
}

int packing_run(struct packing *p)
{
	int status = packing_scan(p);

	return status ? status : packing_write(p);
}

void packing_close(struct packing *p)
{
	tree_write_end(&p->tree);
	end_spilling(p);
	archive_set_close(p->set);
	dispositions_close(&p->dispositions);
	plan_close(&p->plan);
	scan_close(&p->scan);
	cache_files_fini(&p->parts);
	free(p->archives);
	free(p->inherit);
	pack_args_fini(&p->args);
}
