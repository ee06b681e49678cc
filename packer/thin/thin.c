/* SPDX-License-Identifier: MIT */
/*
 * A run of kpack thin: the scan says which code each file has; it is decided which images go, and
 * which files of databases; then each file is written anew without them, next to the old one, and
 * takes its place if it is smaller.  What cannot be rewritten, or is damaged, stays as it is.
 *
 *	scan_open       which code each file has, which files belong to databases
 *	choose_files    what goes, and what may become smaller by --strip-debug and --compress
 *	thin_run        what speaks against all of it: a list without any GPU of the tree, CUDA code,
 *	                runtimes that do not read compressed bundles
 *	measure_all     a dry run: rewrite_file for each file, without an output
 *	write_all       the checks that need rights; --keep; then the converter, whose threads call
 *	                rewrite_file, and give the new files their names in order
 *
 * Nothing is made before write_all, so that a run that is refused leaves no trace.  A thin_file
 * belongs to the thread that rewrites it, and is judged when all are done.
 */
#include "thin.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/format/ccob.h"
#include "core/format/strip.h"
#include "core/host/convert.h"
#include "core/target/target.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy.h"
#include "packer/gpu/runtimes.h"
#include "keep.h"

/* --- what goes ----------------------------------------------------------------------- */

static struct thin_file *add_thin_file(struct thin *t, size_t entry, enum fate fate)
{
	struct thin_file *f;

	xgrow(&t->files, t->n_files, &t->files_cap, sizeof(*t->files));
	f = &t->files[t->n_files++];
	*f = (struct thin_file){.entry = entry, .before = t->scan.entries[entry].id.size};
	t->dispositions.items[entry].fate = fate;
	return f;
}

/*
 * A file of a database goes if no wanted GPU uses any part of it.  One that stays may be a code
 * object, or a bundle of some, that becomes smaller; one with several names is left alone,
 * because the names of such files are not replaced together.  Of all other files, and of these,
 * images go; a file that keeps all of them, and cannot become smaller otherwise, is not added.
 */
static void choose_files(struct thin *t)
{
	/* Their files may be bundles instead of code objects: the runtime finds out. */
	static const char *const wrapped[] = {"rocblas", "hipblaslt", "hipsparselt"};
	bool shrinks = t->args.strip || t->args.compress;
	struct scan *scan = &t->scan;

	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];
		size_t entry = scan->file_entries[i];
		struct kpackx_error why = {0};
		char target[KP_TARGET_TEXT_MAX];
		bool goes = o && o->n_arches > 0;

		t->amd |= o != NULL;
		for (size_t k = 0; o && k < o->n_arches; k++) {
			library_object_target(o, k, target);
			goes &= arch_filter_drops(&t->args.filter, kp_span_str(target));
		}
		if (goes) {
			add_thin_file(t, entry, FATE_REMOVED);
		} else if (o && shrinks && scan->entries[entry].id.nlink <= 1 &&
			   scan_add_code(scan, i, &why)) {
			report_why(scan->entries[entry].path, &why);
			t->n_faults++;
		}
	}
	for (size_t i = 0; i < scan->n_inputs; i++)
		t->dispositions.items[scan->inputs[i]->entry].fate =
			t->args.output ? FATE_COPIED : FATE_UNCHANGED;
	for (size_t i = 0; i < scan->n_inputs; i++) {
		const struct input *in = scan->inputs[i];
		const struct kp_containers *list = &in->fat.containers;
		bool *gone = xcalloc(list->n_images, sizeof(*gone));
		bool any = false, stuck = false, cuda = false, amd = false;
		struct thin_file *f;

		for (size_t k = 0; k < list->n_images; k++) {
			const struct kp_image *image = &list->images[k];

			cuda |= in->packed[k] && kp_arch_is_cuda(image->arch);
			amd |= in->packed[k] && strncmp(image->arch, "gfx", 3) == 0;
			if (!in->packed[k] || !image->size ||
			    scan->entries[in->entry].database ||
			    !arch_filter_drops(&t->args.filter, kp_span_str(image->arch)))
				continue;
			/* code in another form is counted: nobody thinks that it was overlooked */
			gone[k] = kp_selection_possible(&in->fat, image->container) ||
				  static_library_has(&in->fat, k);
			any |= gone[k];
			stuck |= !gone[k];
		}
		t->n_stuck += stuck;
		t->n_cuda += cuda && !amd;
		t->amd |= amd;
		/* whether images that stay become smaller shows when they are read */
		if (!any && !(shrinks && (in->fat.kind == KP_FATBIN_HOST ||
					  in->fat.kind == KP_FATBIN_BARE ||
					  static_library_is(&in->fat)))) {
			free(gone);
			continue;
		}
		f = add_thin_file(t, in->entry, FATE_CONVERTED);
		f->gone = gone;
		f->loses = any;
		for (size_t k = 0; in->objects && k < KP_COUNT(wrapped); k++)
			f->wrap |= strcmp(wrapped[k], in->objects->library) == 0;
	}
	kp_sort(t->files, t->n_files, KP_BY_NUMBER(struct thin_file, entry));
	t->rewritten = xcalloc(t->n_files, sizeof(*t->rewritten));
	for (size_t i = 0; i < t->n_files; i++)
		if (t->files[i].gone)
			t->rewritten[t->n_rewritten++] =
				scan->entries[t->files[i].entry].input;
}

static struct thin_file *file_of(const struct thin *t, const struct input *in)
{
	const struct thin_file probe = {.entry = in->entry};

	return kp_find(t->files, t->n_files, &probe,
		       KP_BY_NUMBER(struct thin_file, entry));
}

/* --- debugging information ----------------------------------------------------------- */

/* The code objects of one file, which may lose their debugging information. */
struct debug_objects {
	struct thin *thin;
	size_t n_nameless; /* those without a build ID, which keep what they have */
};

/*
 * For kp_selection: write the debugging information of OBJECT, which loses it, into the file
 * where debuggers look for it by the build ID.  An object without one keeps it.
 */
static kpack_error_t save_debug_info(void *arg, const struct kp_source *object,
				     bool written, bool *keep, struct kpackx_error *why)
{
	struct debug_objects *objects = arg;
	struct thin *t = objects->thin;
	KP_AUTO_FREE char *dir = NULL, *name = NULL, *path = NULL;
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	struct kp_stripped debug = {0};
	struct kpackx_error fault = {0};
	char id[KP_BUILD_ID_TEXT];
	kpack_error_t err = kp_strip_build_id(object, id, &fault);
	struct stat st;

	if (err == KPACK_ERROR_INVALID_FORMAT)
		*id = '\0'; /* what is damaged stays as it is */
	else if (err)
		return kp_fail(why, err, "%s", fault.text);
	*keep = !*id;
	objects->n_nameless += *keep;
	if (*keep || !written)
		return KPACK_SUCCESS;
	dir = xasprintf("%s/.build-id/%.2s", t->args.debug_to, id);
	name = xasprintf("%s.debug", id + 2);
	path = xasprintf("%s/%s", dir, name);
	err = KPACK_SUCCESS;
	if (below_lstat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
		err = kp_strip_plan(object, KP_STRIP_KEEP_DEBUG, &debug, why);
		if (!err)
			err = below_mkdirs(dir, 0777, why);
		if (!err)
			err = below_outfile_open_in(&out, dir, name, 0666, why);
		if (!err)
			err = kp_stripped_write(&debug, object, &out, 0, why);
		if (!err)
			err = kp_outfile_publish(&out, why);
		kp_outfile_close(&out);
		kp_stripped_fini(&debug);
	}
	if (err)
		return kp_fail_prefix(why, err, "debugging information %s", id);
	pthread_mutex_lock(&t->debug_lock);
	t->n_debug_files++;
	pthread_mutex_unlock(&t->debug_lock);
	return KPACK_SUCCESS;
}

/* --- one file ------------------------------------------------------------------------ */

/*
 * The containers of a binary, written to a file of their own, that go into its section: how large they
 * are must be known before the first byte of the binary can be placed.
 */
struct refill {
	const struct kp_outfile *scratch;
	uint64_t size;
};

/* What was copied is given back at once, so that there need not be room for it twice. */
static kpack_error_t copy_scratch(void *arg, struct kp_outfile *out, uint64_t offset,
				  struct kpackx_error *why)
{
	static const uint64_t slice = 256 << 10;
	const struct refill *r = arg;

	for (uint64_t at = 0, n; at < r->size; at += n) {
		n = r->size - at < slice ? r->size - at : slice;
		KP_TRY(kp_outfile_copy(out, offset + at, r->scratch->fd, at, n, why));
		/* what the file system cannot do frees nothing */
		(void)fallocate(r->scratch->fd,
				FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
				(off_t)n);
	}
	return KPACK_SUCCESS;
}

kpack_error_t thin_open_scratch(const struct thin *t, const struct input *in,
				struct kp_outfile *out, struct kpackx_error *why)
{
	kpack_error_t err;

	if (t->args.output)
		err = below_outfile_open_in(out, t->args.output, "scratch", 0600, why);
	else
		err = below_outfile_open(out, t->scan.entries[in->entry].path, 0600, why);
	if (!err)
		kp_outfile_unname(out);
	return err;
}

/*
 * Write the binary IN, which is open at FD, with the rest of its containers, so that it has *SIZE
 * bytes; OUT NULL: only count.
 */
static kpack_error_t write_binary(const struct thin *t, struct input *in, int fd,
				  const struct kp_selection *selection, uint64_t *offsets,
				  struct kp_outfile *out, uint64_t *size,
				  struct kpackx_error *why)
{
	KP_AUTO(kp_outfile) scratch = {.fd = -1, .dir_fd = -1};
	struct refill r = {.scratch = &scratch};
	size_t n = in->fat.host.n_wrappers;
	KP_AUTO_FREE uint64_t *starts = xcalloc(n, sizeof(*starts));
	struct kp_restore_options options = {.offsets = starts,
					     .drop_signature = t->args.drop_signature,
					     .write = copy_scratch,
					     .arg = &r};

	if (out)
		KP_TRY(thin_open_scratch(t, in, &scratch, why));
	KP_TRY(kp_selection_write(&in->fat, selection, out ? &scratch : NULL, offsets,
				  &r.size, why));
	for (size_t i = 0; i < n; i++)
		if (in->fat.wrapper_container[i] >= 0)
			starts[i] = offsets[in->fat.wrapper_container[i]];
	options.size = r.size;
	return kp_refill(fd, (uint64_t)in->st.st_size, &in->fat, &options, out, size,
			 why);
}

/*
 * The converter's: write IN to OUT as it will be.  OUT NULL: only find out how large that is, or why
 * IN stays as it is, so that a dry run promises what a run does.
 */
static kpack_error_t rewrite_file(void *arg, struct input *in, int fd,
				  struct kp_outfile *out, struct kpackx_error *why)
{
	/*
	 * Runtimes that read compressed bundles at all read version 2; version 1 does not state
	 * the size, and the first such runtimes do not read version 3.
	 */
	static const struct kp_ccob_form form = {.version = 2, .method = KP_CCOB_ZSTD};
	static const char larger[] = "it would not become smaller";
	struct thin *t = arg;
	struct thin_file *f = file_of(t, in);
	struct debug_objects objects = {.thin = t};
	const struct kp_selection selection = {
		.gone = f->gone,
		.strip = t->args.strip,
		.compress = t->args.compress ? &form : NULL,
		.wrap = f->wrap,
		.strips = t->args.debug_to ? save_debug_info : NULL,
		.arg = &objects,
	};
	struct kp_source file = kp_source_fd(fd, 0, (uint64_t)in->st.st_size), changed;
	bool library = static_library_is(&in->fat), changes = true;
	KP_AUTO_FREE uint64_t *offsets =
		xcalloc(in->fat.containers.count, sizeof(*offsets));
	KP_AUTO_FREE size_t *links = NULL;
	struct stat st;
	size_t n;
	kpack_error_t err = KPACK_SUCCESS;
	struct kpackx_error fault = {0};

	/* if no image goes, something else may change; if not, nothing is written */
	if (!f->loses)
		err = library ? static_library_changes(&in->fat, &selection, &changes,
						       &fault)
			      : kp_selection_changes(&in->fat, &selection, &changes,
						     &fault);
	f->same = !err && !changes;
	f->n_nameless = objects.n_nameless;
	if (f->same)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, larger);
	objects.n_nameless = 0; /* they are counted once more */
	if (!err && in->fat.kind == KP_FATBIN_HOST)
		err = write_binary(t, in, fd, &selection, offsets, out, &f->after,
				   &fault);
	else if (!err && library)
		err = static_library_write(t, in, &selection, out, &f->after, &fault);
	else if (!err)
		err = kp_selection_write(&in->fat, &selection, out, offsets, &f->after,
					 &fault);
	f->n_nameless = objects.n_nameless;
	/* what is damaged stays as it is, like what cannot be rewritten */
	f->damaged = err == KPACK_ERROR_INVALID_FORMAT ||
		     err == KPACK_ERROR_DECOMPRESSION_FAILED;
	if (f->damaged)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "%s", fault.text);
	if (err) {
		*why = fault;
		return err;
	}
	f->larger = f->after >= f->before;
	f->same = f->larger && !f->loses;
	if (f->larger)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, larger);
	if (!out || !t->args.keep)
		return KPACK_SUCCESS;
	/*
	 * Keep what OUT has not of IN, for each of the paths, which are replaced one after another,
	 * so that a killed run may have replaced only some.
	 */
	if (fstat(out->fd, &st) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	changed = kp_source_fd(out->fd, 0, (uint64_t)st.st_size);
	links = scan_links(&t->scan, in->entry, &n);
	for (size_t i = 0; i < n && !err; i++)
		err = keep_changed(t->args.keep, t->scan.entries[links[i]].relative,
				   &file, &changed, why);
	/* what cannot be kept is left as it is */
	return err == KPACK_ERROR_INVALID_ARGUMENT
		       ? kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				 "it cannot be kept in an archive")
		       : err;
}

/*
 * The converter's: a bundle that becomes compressed is in memory, and its result.  What is only cut out
 * or stripped goes through small buffers, and costs nothing.
 */
static uint64_t cost_of_file(void *arg, const struct input *in)
{
	const struct thin *t = arg;
	const struct thin_file *f = file_of(t, in);
	const struct kp_containers *list = &in->fat.containers;
	uint64_t most = 0;

	for (size_t i = 0; t->args.compress && i < list->count; i++) {
		const struct kp_container *c = &list->items[i];
		uint64_t rest = 0;

		if (c->format == &kp_format_archive || kp_format_is_host(c->format))
			continue;
		for (size_t k = c->first_image; k < c->first_image + c->n_images; k++)
			rest += f->gone[k] ? 0 : list->images[k].size;
		if (most < 2 * rest)
			most = 2 * rest;
	}
	return most;
}

/* --- a run --------------------------------------------------------------------------- */

static void measure_all(struct thin *t)
{
	spill_dir_begin(t->args.tree);
	for (size_t i = 0; i < t->n_rewritten; i++) {
		struct input *in = t->rewritten[i];
		struct kpackx_error why = {0};
		kpack_error_t err;
		int fd;

		err = input_hold(in, &fd, &why);
		if (!err) {
			err = rewrite_file(t, in, fd, NULL, &why);
			input_release(in);
		}
		if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
			disposition_set(&t->dispositions.items[in->entry], FATE_REFUSED,
					why.text);
		} else if (err) {
			report_why(t->scan.entries[in->entry].path, &why);
			t->n_faults++;
		}
	}
}

/*
 * Keep what goes, then write what is rewritten.  Directories are made as late as this, so that a
 * refused run leaves none.
 */
static kpack_error_t write_all(struct thin *t, struct kpackx_error *why)
{
	const struct thin_args *args = &t->args;
	const struct converter c = {
		.scan = &t->scan,
		.inputs = t->rewritten,
		.n_inputs = t->n_rewritten,
		.dispositions = &t->dispositions,
		.output = args->output,
		.jobs = args->jobs,
		.rewrite = rewrite_file,
		.cost = cost_of_file,
		.arg = t,
	};
	KP_AUTO_FREE struct keep_file *files = xcalloc(t->n_files, sizeof(*files));
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_write tree;
	size_t n = 0;

	converter_check(&c, &t->n_faults);
	if (args->output)
		output_check_mounts(&t->scan, args->output, &t->n_faults);
	else
		databases_check(&t->scan, &t->dispositions, &t->n_faults);
	if (t->n_faults) {
		report_error(args->tree,
			     "nothing was removed because of the faults above");
		return KPACK_SUCCESS;
	}
	if (args->debug_to)
		err = below_make_root(args->debug_to, 0777, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", args->debug_to);
	if (args->keep) {
		err = below_make_root(args->keep, 0700, why);
		if (!err)
			err = keep_claim(args->keep, args->tree, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", args->keep);
	}
	for (size_t i = 0; i < t->n_files && args->keep; i++) {
		const struct scan_entry *e = &t->scan.entries[t->files[i].entry];

		if (!t->files[i].gone)
			files[n++] = (struct keep_file){e->relative, e->path, &e->id};
	}
	KP_TRY(keep_removed(args->keep, files, n, why));
	if (!args->output) {
		spill_dir_begin(args->tree);
		return output_write(&c, args->tree, NULL, why);
	}
	KP_TRY(below_make_root(args->output, 0777, why));
	spill_dir_begin(args->output);
	tree_write_begin(&tree, args->output, false);
	err = output_write(&c, args->tree, &tree, why);
	if (!err)
		err = tree_write_finish(&tree, why);
	tree_write_end(&tree);
	return err;
}

int thin_run(struct thin *t)
{
	struct thin_args *args = &t->args;
	const struct arch_filter *filter = &args->filter;
	struct hip_runtimes runtimes = {0};
	KP_AUTO(code_table) table = {0};
	struct kpackx_error why = {0};
	uint64_t bytes = 0;
	bool fine;

	t->scan.skip = args->skip;
	t->scan.progress = args->progress;
	if (scan_open(args->tree, "", SCAN_CONVERTIBLE, &args->libraries, SCAN_IDENTIFY,
		      &t->scan, &why)) {
		report_why(args->tree, &why);
		return EXIT_FAULT;
	}
	t->n_faults = t->scan.n_faults;
	dispositions_open(&t->scan, !args->output, &t->dispositions);
	choose_files(t);
	/* of CUDA code it is enough to say once that it stays; files that were skipped may be AMD's */
	for (size_t i = 0; i < t->scan.n_entries; i++) {
		struct scan_entry *e = &t->scan.entries[i];

		if (e->note == kp_fatbin_cuda) {
			e->note = NULL;
			t->n_cuda += !e->input;
		} else if (e->note && e->left != SCAN_LEFT_AS_MEANT) {
			t->amd = true; /* as far as it can be read */
		}
	}
	if (t->n_cuda && !t->amd && !args->skip.known)
		return report_error(args->tree,
				    "this is CUDA code; thin is for AMD GPUs");
	if (t->n_cuda && !args->skip.known)
		report_error(args->tree, "note: CUDA code stays in %zu file%s", t->n_cuda,
			     plural(t->n_cuda));
	scan_report_left(&t->scan, true);
	/* files that may have device code, but are not what they seem */
	for (size_t i = 0; i < t->scan.n_entries; i++)
		if (t->scan.entries[i].fault &&
		    t->scan.entries[i].left == SCAN_LEFT_AS_MEANT)
			report_error(t->scan.entries[i].path, "note: left as it is: %s",
				     t->scan.entries[i].fault);
	t->damaged = scan_damaged(&t->scan);
	/* if no code is for a wanted GPU, the list is probably wrong, and everything would go */
	fine = t->n_files == 0 || args->skip.known || kp_choice_is_all(&filter->chosen);
	for (size_t i = 0; i < filter->chosen.count; i++)
		fine |= filter->matched[i];
	if (!fine) {
		scan_count_code(&t->scan, &table);
		code_table_refuse(&table, args->tree,
				  "no code is for the wanted GPUs: nothing is removed");
	}
	/* the HIP runtimes of the tree, or else this system's, read compressed bundles */
	if (fine && args->compress && !args->any_runtime) {
		fine = !t->scan.file_entries || runtimes_add_tree(&runtimes, args->tree);
		fine &= runtimes_judge_compressed(&runtimes);
		runtimes_fini(&runtimes);
	}
	if (!fine)
		return EXIT_FAULT;
	pthread_mutex_init(&t->debug_lock, NULL);
	/* the code of a file is read, and if the original is kept the whole file once more */
	for (size_t i = 0; i < t->n_files; i++) {
		const struct input *in = t->scan.entries[t->files[i].entry].input;

		bytes += args->keep ? t->files[i].before : 0;
		for (size_t k = 0; t->files[i].gone && k < in->n_images; k++)
			bytes += in->packed[k] ? in->images[k].size : 0;
	}
	progress_begin("thinning", bytes, args->progress);
	if (args->dry) {
		measure_all(t);
	} else if (write_all(t, &why)) {
		report_why(NULL, &why);
		t->n_faults++;
	}
	progress_end();
	if (t->n_faults)
		return EXIT_FAULT;
	for (size_t i = 0; i < t->n_files; i++) {
		struct thin_file *f = &t->files[i];
		const struct disposition *o = &t->dispositions.items[f->entry];

		if (!f->gone || o->fate == FATE_CONVERTED)
			continue;
		/* a file that was refused is not one of which code went */
		f->after = f->before;
		if (o->fate != FATE_REFUSED || f->same)
			continue;
		t->damaged |= f->damaged;
		report_error(t->scan.entries[f->entry].path,
			     f->damaged  ? "damaged, left as it is: %s"
			     : f->larger ? "note: left as it is: %s"
					 : "warning: left as it is: %s",
			     o->reason);
	}
	return EXIT_OK;
}

void thin_close(struct thin *t)
{
	for (size_t i = 0; i < t->n_files; i++)
		free(t->files[i].gone);
	free(t->files);
	free(t->rewritten);
	spill_dir_end();
	dispositions_close(&t->dispositions);
	scan_close(&t->scan);
	arch_filter_fini(&t->args.filter);
	library_set_close(&t->args.libraries);
	*t = (struct thin){0};
}
