/* SPDX-License-Identifier: MIT */
#include "thin.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/elf/convert.h"
#include "core/format/ccob.h"
#include "core/restore/selection.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/tree_write.h"
#include "packer/gpu/runtimes.h"
#include "packer/pack/tree_databases.h"
#include "packer/pack/write_tree.h"
#include "keep.h"
#include "static_library.h"

/* --- what goes ----------------------------------------------------------------------- */

static bool thin_goes(struct arch_filter *filter, const char *arch)
{
	return arch_filter_drops(filter, kp_span_str(arch));
}

static struct thin_file *add_file(struct thin *t, size_t entry)
{
	struct thin_file *f;

	xgrow(&t->files, t->n_files, &t->files_cap, sizeof(*t->files));
	f = &t->files[t->n_files++];
	*f = (struct thin_file){.entry = entry, .before = t->scan.entries[entry].id.size};
	return f;
}

/*
 * Whether the files of LIBRARY may be bundles instead of code objects: Tensile's libraries are
 * built either way, and let the runtime find out.
 */
static bool is_wrapped(const char *library)
{
	static const char *const names[] = {"rocblas", "hipblaslt", "hipsparselt"};

	for (size_t i = 0; i < KP_COUNT(names); i++)
		if (strcmp(names[i], library) == 0)
			return true;
	return false;
}

/* Whether the images of IN that stay may become smaller; reading them finds out. */
static bool may_shrink(const struct thin *t, const struct input *in)
{
	return (t->args.strip || t->args.compress) &&
	       (in->fat.kind == KP_FATBIN_ELF || in->fat.kind == KP_FATBIN_BARE ||
		static_library_is(&in->fat));
}

/*
 * Collect the images of IN that go; a file that keeps all of them, and cannot become
 * smaller otherwise, is not added.
 */
static void choose_images(struct thin *t, struct input *in)
{
	const struct kp_containers *list = &in->fat.containers;
	bool *gone = xcalloc(list->n_images, sizeof(*gone));
	bool any = false, stuck = false;
	struct thin_file *f;

	for (size_t i = 0; i < list->n_images; i++) {
		const struct kp_image *image = &list->images[i];

		if (!in->packed[i] || !image->size ||
		    t->scan.entries[in->entry].database ||
		    !thin_goes(&t->args.filter, image->arch))
			continue;
		gone[i] = kp_selection_possible(&in->fat, image->container) ||
			  static_library_has(&in->fat, i);
		any |= gone[i];
		stuck |= !gone[i];
	}
	t->n_stuck += stuck;
	if (!any && !may_shrink(t, in)) {
		free(gone);
		return;
	}
	f = add_file(t, in->entry);
	f->gone = gone;
	f->loses = any;
	f->wrap = in->objects && is_wrapped(in->objects->library);
	t->dispositions.items[in->entry].fate = FATE_CONVERTED;
}

/* Whether no wanted GPU uses any part of the file of a database. */
static bool database_goes(struct thin *t, const struct library_object *o)
{
	char target[KP_TARGET_TEXT_MAX];
	bool goes = o->n_arches > 0;

	for (size_t i = 0; i < o->n_arches; i++) {
		library_object_target(o, i, target);
		goes &= thin_goes(&t->args.filter, target);
	}
	return goes;
}

/*
 * A database's file that stays may be a code object, or a bundle of some.  One with several
 * names is left alone, because the names of such files are not replaced together.
 */
static void choose_database_code(struct thin *t, size_t file)
{
	size_t entry = t->scan.file_entries[file];
	struct kpackx_error why = {0};

	if ((!t->args.strip && !t->args.compress) || t->scan.entries[entry].id.nlink > 1)
		return;
	if (scan_add_code(&t->scan, file, &why)) {
		report_why(t->scan.entries[entry].path, &why);
		t->n_faults++;
	}
}

static void choose_files(struct thin *t)
{
	for (size_t i = 0; i < t->scan.files.count; i++) {
		const struct library_object *o = t->scan.found.objects[i];
		size_t entry = t->scan.file_entries[i];

		if (!o)
			continue;
		if (!database_goes(t, o)) {
			choose_database_code(t, i);
			continue;
		}
		add_file(t, entry);
		t->dispositions.items[entry].fate = FATE_REMOVED;
	}
}

static int by_entry(const void *a, const void *b)
{
	const struct thin_file *x = a, *y = b;

	return KP_ORDER(x->entry, y->entry);
}

static void choose_all(struct thin *t)
{
	struct scan *scan = &t->scan;

	if (scan->found.objects)
		choose_files(t);
	for (size_t i = 0; i < scan->n_inputs; i++)
		t->dispositions.items[scan->inputs[i]->entry].fate =
			t->args.output ? FATE_COPIED : FATE_UNCHANGED;
	for (size_t i = 0; i < scan->n_inputs; i++)
		choose_images(t, scan->inputs[i]);
	if (t->n_files)
		qsort(t->files, t->n_files, sizeof(*t->files), by_entry);
	t->rewritten = xcalloc(t->n_files, sizeof(*t->rewritten));
	for (size_t i = 0; i < t->n_files; i++)
		if (t->files[i].gone)
			t->rewritten[t->n_rewritten++] =
				scan->entries[t->files[i].entry].input;
}

/*
 * If no code of the tree is for a wanted GPU, the list is probably wrong, and everything
 * would go.
 */
static bool check_matched(const struct thin *t)
{
	const struct arch_filter *filter = &t->args.filter;
	size_t n = 0;

	for (size_t i = 0; i < filter->chosen.count; i++)
		n += filter->matched[i];
	if (n || t->n_files == 0 || t->args.skip.known || !arch_filter_given(filter))
		return true;
	report_error(
		t->args.tree,
		"no code is for the wanted GPUs: nothing is removed; see kpack detect");
	return false;
}

/* --- one binary ---------------------------------------------------------------------- */

static struct thin_file *file_of(struct thin *t, const struct input *in)
{
	struct thin_file key = {.entry = in->entry};

	return bsearch(&key, t->files, t->n_files, sizeof(key), by_entry);
}

/*
 * Runtimes that read compressed bundles at all read version 2; version 1 does not state
 * the size, and the first such runtimes do not read version 3.
 */
static const struct kp_ccob_form compressed_form = {.version = 2, .method = KP_CCOB_ZSTD};

static struct kp_selection selection_of(struct thin *t, const struct thin_file *f,
					struct debug_objects *objects)
{
	*objects = (struct debug_objects){.files = &t->debug};
	return (struct kp_selection){
		.gone = f->gone,
		.strip = t->args.strip,
		.compress = t->args.compress ? &compressed_form : NULL,
		.wrap = f->wrap,
		.strips = t->args.debug_to ? debug_files_add : NULL,
		.arg = objects,
	};
}

/* The bytes of new containers that take room twice. */
static const uint64_t SLICE = 256 << 10;

struct refill {
	const struct kp_outfile *scratch;
	uint64_t size;
};

/* What was copied is given back at once, so that there need not be room for it twice. */
static kpack_error_t copy_scratch(void *arg, struct kp_outfile *out, uint64_t offset,
				  struct kpackx_error *why)
{
	const struct refill *r = arg;

	for (uint64_t at = 0, n; at < r->size; at += n) {
		n = r->size - at < SLICE ? r->size - at : SLICE;
		KP_TRY(kp_outfile_copy(out, offset + at, r->scratch->fd, at, n, why));
		/* what the file system cannot do frees nothing */
		(void)fallocate(r->scratch->fd,
				FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
				(off_t)n);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t refill_binary(const struct kp_selection *selection, struct input *in,
				   int fd, struct kp_outfile *scratch, uint64_t *offsets,
				   struct kp_outfile *out, struct kpackx_error *why)
{
	size_t n = in->fat.elf.n_wrappers;
	struct refill r = {.scratch = scratch};
	uint64_t *starts = xcalloc(n, sizeof(*starts));
	struct kp_restore_options options = {
		.offsets = starts, .write = copy_scratch, .arg = &r};
	kpack_error_t err;

	err = kp_selection_write(&in->fat, selection, scratch, offsets, &r.size, why);
	for (size_t i = 0; i < n; i++)
		if (in->fat.wrapper_container[i] >= 0)
			starts[i] = offsets[in->fat.wrapper_container[i]];
	options.size = r.size;
	if (!err)
		err = kp_refill(fd, (uint64_t)in->st.st_size, &in->fat, &options, out,
				why);
	free(starts);
	return err;
}

/* Open a nameless file next to the tree's. */
static kpack_error_t open_scratch(const struct thin *t, struct kp_outfile *out,
				  const struct input *in, struct kpackx_error *why)
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

static kpack_error_t fail_larger(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "it would not become smaller");
}

static kpack_error_t check_smaller(struct thin_file *f, const struct input *in,
				   const struct kp_outfile *out, struct kpackx_error *why)
{
	struct stat st;

	if (fstat(out->fd, &st) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	if (st.st_size < in->st.st_size)
		return KPACK_SUCCESS;
	f->same = !f->loses;
	f->larger = true;
	return fail_larger(why);
}

/* What static libraries need to open scratch files. */
struct library_file {
	const struct thin *thin;
	const struct input *in;
};

static kpack_error_t open_library_scratch(void *arg, struct kp_outfile *out,
					  struct kpackx_error *why)
{
	const struct library_file *f = arg;

	return open_scratch(f->thin, out, f->in, why);
}

static struct static_library library_of(struct library_file *file,
					const struct kp_selection *selection)
{
	return (struct static_library){.fat = &file->in->fat,
				       .selection = selection,
				       .scratch = open_library_scratch,
				       .arg = file};
}

static kpack_error_t find_changes(const struct thin *t, const struct input *in,
				  const struct kp_selection *selection, bool *changes,
				  struct kpackx_error *why)
{
	struct library_file file = {t, in};
	const struct static_library library = library_of(&file, selection);

	return static_library_is(&in->fat)
		       ? static_library_changes(&library, changes, why)
		       : kp_selection_changes(&in->fat, selection, changes, why);
}

/* Write a file that is no host binary; OUT NULL: only count. */
static kpack_error_t write_containers(const struct thin *t, const struct input *in,
				      const struct kp_selection *selection,
				      struct kp_outfile *out, uint64_t *size,
				      struct kpackx_error *why)
{
	uint64_t *offsets = xcalloc(in->fat.containers.count, sizeof(*offsets));
	struct library_file file = {t, in};
	const struct static_library library = library_of(&file, selection);
	kpack_error_t err;

	err = static_library_is(&in->fat)
		      ? static_library_write(&library, out, size, why)
		      : kp_selection_write(&in->fat, selection, out, offsets, size, why);
	free(offsets);
	return err;
}

/* If no image of the file goes, find out whether something else changes. */
static kpack_error_t check_change(struct thin *t, struct thin_file *f,
				  const struct input *in, struct kpackx_error *why)
{
	struct debug_objects objects;
	const struct kp_selection selection = selection_of(t, f, &objects);
	bool changes = true;

	if (!f->loses)
		KP_TRY(find_changes(t, in, &selection, &changes, why));
	f->n_nameless = objects.n_nameless;
	f->same = !changes;
	return changes ? KPACK_SUCCESS : fail_larger(why);
}

/*
 * Keep what OUT has not of IN, which it is going to replace: for each of the paths, which
 * are replaced one after another, so that a killed run may have replaced only some.
 */
static kpack_error_t keep_original(const struct thin *t, const struct input *in, int fd,
				   const struct kp_outfile *out, struct kpackx_error *why)
{
	struct kp_source file = kp_source_fd(fd, 0, (uint64_t)in->st.st_size), changed;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n, *links;
	struct stat st;

	if (fstat(out->fd, &st) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	changed = kp_source_fd(out->fd, 0, (uint64_t)st.st_size);
	links = scan_links(&t->scan, in->entry, &n);
	for (size_t i = 0; i < n && !err; i++)
		err = keep_changed(t->args.keep, t->scan.entries[links[i]].relative,
				   &file, &changed, why);
	free(links);
	/* what cannot be kept is left as it is */
	return err == KPACK_ERROR_INVALID_ARGUMENT
		       ? kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				 "it cannot be kept in an archive")
		       : err;
}

/* A file whose content is damaged stays as it is, like one that cannot be rewritten. */
static kpack_error_t tolerate_damage(struct thin_file *f, kpack_error_t err,
				     struct kpackx_error *why)
{
	struct kpackx_error fault = *why;

	f->damaged = err == KPACK_ERROR_INVALID_FORMAT ||
		     err == KPACK_ERROR_DECOMPRESSION_FAILED;
	return f->damaged ? kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "%s", fault.text)
			  : err;
}

/* Report that the file of ENTRY stays as it is, because of TEXT. */
static void report_left(struct thin *t, const struct thin_file *f, const char *text)
{
	t->damaged |= f->damaged;
	report_error(t->scan.entries[f->entry].path,
		     f->damaged  ? "damaged, left as it is: %s"
		     : f->larger ? "note: left as it is: %s"
				 : "warning: left as it is: %s",
		     text);
}

static kpack_error_t rewrite_file(void *arg, struct input *in, int fd,
				  struct kp_outfile *out, struct kpackx_error *why)
{
	struct thin *t = arg;
	struct thin_file *f = file_of(t, in);
	struct debug_objects objects;
	const struct kp_selection selection = selection_of(t, f, &objects);
	uint64_t *offsets = xcalloc(in->fat.containers.count, sizeof(*offsets)), size;
	struct kp_outfile scratch = {.fd = -1, .dir_fd = -1};
	kpack_error_t err = check_change(t, f, in, why);

	if (!err && in->fat.kind == KP_FATBIN_ELF) {
		err = open_scratch(t, &scratch, in, why);
		if (!err)
			err = refill_binary(&selection, in, fd, &scratch, offsets, out,
					    why);
	} else if (!err) {
		err = write_containers(t, in, &selection, out, &size, why);
	}
	if (!f->same)
		f->n_nameless = objects.n_nameless;
	kp_outfile_close(&scratch);
	free(offsets);
	KP_TRY(tolerate_damage(f, err, why));
	KP_TRY(check_smaller(f, in, out, why));
	return t->args.keep ? keep_original(t, in, fd, out, why) : KPACK_SUCCESS;
}

/* The bytes of the images of C that stay. */
static uint64_t rest_size(const struct thin *t, const struct input *in,
			  const struct kp_container *c)
{
	const struct thin_file *f = file_of((struct thin *)t, in);
	uint64_t size = 0;

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
		if (!f->gone[i])
			size += in->fat.containers.images[i].size;
	return size;
}

/* A bundle that becomes compressed is in memory, and its result. */
static uint64_t cost_of_file(void *arg, const struct input *in)
{
	const struct thin *t = arg;
	const struct kp_containers *list = &in->fat.containers;
	uint64_t most = 0;

	for (size_t i = 0; t->args.compress && i < list->count; i++) {
		const struct kp_container *c = &list->items[i];

		if (c->format != &kp_format_archive && !kp_format_is_host(c->format) &&
		    most < 2 * rest_size(t, in, c))
			most = 2 * rest_size(t, in, c);
	}
	return most;
}

/* --- a run --------------------------------------------------------------------------- */

/* Find the size of a file without writing it. */
static kpack_error_t measure_file(struct thin *t, struct thin_file *f,
				  struct kpackx_error *why)
{
	struct input *in = t->scan.entries[f->entry].input;
	struct debug_objects objects;
	const struct kp_selection selection = selection_of(t, f, &objects);
	kpack_error_t err;
	uint64_t size;
	int fd;

	err = input_hold(in, &fd, why);
	if (!err) {
		if (in->fat.kind == KP_FATBIN_ELF)
			err = kp_refill_check(fd, (uint64_t)in->st.st_size, &in->fat,
					      why);
		if (!err)
			err = write_containers(t, in, &selection, NULL, &size, why);
		input_release(in);
	}
	if (!err)
		f->after = in->fat.source.size > size
				   ? f->before - (in->fat.source.size - size)
				   : f->before;
	f->same = !f->loses && f->after == f->before;
	f->n_nameless = objects.n_nameless;
	return err;
}

static int measure_all(struct thin *t)
{
	spill_dir_begin(&t->spill, t->args.tree);
	for (size_t i = 0; i < t->n_files; i++) {
		const char *path = t->scan.entries[t->files[i].entry].path;
		struct kpackx_error why = {0};
		kpack_error_t err = KPACK_SUCCESS;

		if (t->files[i].gone)
			err = tolerate_damage(&t->files[i],
					      measure_file(t, &t->files[i], &why), &why);
		if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
			t->files[i].after = t->files[i].before;
			disposition_set(&t->dispositions.items[t->files[i].entry],
					FATE_REFUSED, why.text);
			report_left(t, &t->files[i], why.text);
		} else if (err) {
			report_why(path, &why);
			t->n_faults++;
		}
	}
	return t->n_faults ? EXIT_FAULT : EXIT_OK;
}

static struct converter converter_of(struct thin *t)
{
	return (struct converter){
		.scan = &t->scan,
		.inputs = t->rewritten,
		.n_inputs = t->n_rewritten,
		.dispositions = &t->dispositions,
		.output = t->args.output,
		.jobs = t->args.jobs,
		.rewrite = rewrite_file,
		.rewrite_cost = cost_of_file,
		.rewrite_arg = t,
	};
}

/* Take over the sizes; a file that was refused is not one of which code went. */
static void take_results(struct thin *t)
{
	for (size_t i = 0; i < t->n_files; i++) {
		struct thin_file *f = &t->files[i];
		const struct disposition *o = &t->dispositions.items[f->entry];

		if (!f->gone)
			continue;
		f->after = o->fate == FATE_CONVERTED ? o->after : f->before;
		if (o->fate == FATE_REFUSED && !f->same)
			report_left(t, f, o->reason);
	}
}

static kpack_error_t write_tree(struct thin *t, const struct converter *c,
				struct kpackx_error *why)
{
	struct tree_write tree;
	kpack_error_t err;

	if (!t->args.output) {
		spill_dir_begin(&t->spill, t->args.tree);
		return output_write(c, t->args.tree, NULL, why);
	}
	KP_TRY(below_make_root(t->args.output, 0777, why));
	spill_dir_begin(&t->spill, t->args.output);
	tree_write_begin(&tree, t->args.output, false);
	err = output_write(c, t->args.tree, &tree, why);
	if (!err)
		err = tree_write_finish(&tree, why);
	tree_write_end(&tree);
	return err;
}

static kpack_error_t keep_databases(const struct thin *t, struct kpackx_error *why)
{
	struct keep_file *files = xcalloc(t->n_files, sizeof(*files));
	size_t n = 0;
	kpack_error_t err;

	for (size_t i = 0; i < t->n_files && t->args.keep; i++) {
		const struct scan_entry *e = &t->scan.entries[t->files[i].entry];

		if (!t->files[i].gone)
			files[n++] = (struct keep_file){e->relative, e->path, &e->id};
	}
	err = keep_removed(t->args.keep, files, n, why);
	free(files);
	return err;
}

static int write_all(struct thin *t)
{
	struct converter c = converter_of(t);
	struct kpackx_error why = {0};

	converter_check(&c, &t->n_faults);
	if (t->args.output)
		output_check_mounts(&t->scan, t->args.output, &t->n_faults);
	else
		databases_check(&t->scan, &t->dispositions, &t->n_faults);
	if (t->n_faults) {
		report_error(t->args.tree,
			     "nothing was removed because of the faults above");
		return EXIT_FAULT;
	}
	if (keep_databases(t, &why) || write_tree(t, &c, &why)) {
		report_why(NULL, &why);
		return EXIT_FAULT;
	}
	take_results(t);
	return EXIT_OK;
}

/* Whether the HIP runtimes of the tree, or else this system's, read compressed bundles. */
static bool check_runtimes(const struct thin *t)
{
	struct hip_runtimes list = {0};
	bool whole = !t->scan.file_entries || runtimes_add_tree(&list, t->args.tree);
	bool fine = runtimes_judge_compressed(&list);

	runtimes_fini(&list);
	return whole && fine;
}

/* Files that may have device code, but are not what they seem. */
static void report_unreadable(const struct thin *t)
{
	for (size_t i = 0; i < t->scan.n_entries; i++)
		if (t->scan.entries[i].fault &&
		    t->scan.entries[i].left == SCAN_LEFT_AS_MEANT)
			report_error(t->scan.entries[i].path, "note: left as it is: %s",
				     t->scan.entries[i].fault);
}

int thin_run(struct thin *t)
{
	struct kpackx_error why = {0};

	t->scan.skip = t->args.skip;
	if (scan_open(t->args.tree, "", SCAN_CONVERTIBLE, &t->args.libraries,
		      SCAN_IDENTIFY, &t->scan, &why)) {
		report_why(t->args.tree, &why);
		return EXIT_FAULT;
	}
	if (t->args.debug_to && !t->args.dry &&
	    debug_files_open(&t->debug, t->args.debug_to, &why)) {
		report_why(t->args.debug_to, &why);
		return EXIT_FAULT;
	}
	if (t->args.keep && !t->args.dry &&
	    (below_make_root(t->args.keep, 0700, &why) ||
	     keep_claim(t->args.keep, t->args.tree, &why))) {
		report_why(t->args.keep, &why);
		return EXIT_FAULT;
	}
	t->n_faults = t->scan.n_faults;
	dispositions_open(&t->scan, !t->args.output, &t->dispositions);
	choose_all(t);
	scan_report_left(&t->scan, true);
	report_unreadable(t);
	t->damaged = scan_damaged(&t->scan);
	if (!check_matched(t) ||
	    (t->args.compress && !t->args.any_runtime && !check_runtimes(t)))
		return EXIT_FAULT;
	return t->args.dry ? measure_all(t) : write_all(t);
}

void thin_close(struct thin *t)
{
	for (size_t i = 0; i < t->n_files; i++)
		free(t->files[i].gone);
	free(t->files);
	free(t->rewritten);
	spill_dir_end(&t->spill);
	dispositions_close(&t->dispositions);
	scan_close(&t->scan);
	arch_filter_fini(&t->args.filter);
	library_set_close(&t->args.libraries);
	*t = (struct thin){0};
}
