/* SPDX-License-Identifier: MIT */
/* kpack mark restore: make a fat binary of a converted binary and its archives. */
#include <stdlib.h>
#include "packer/archives/content.h"
#include "packer/cli/xalloc.h"
#include "packer/archives/operands.h"
#include "packer/archives/binary.h"
#include "packer/archives/reachable_archives.h"
#include "mark.h"
#include "packer/cli/report.h"
#include "packer/files/spill_dir.h"
#include "core/base/hash.h"
#include "core/restore/recipe.h"

struct restore {
	const char *file, *out;
	bool allow_missing;
	char **archives; /* operands of --archive */
	int n_archives;

	struct binary b;
	struct installed set;
	struct reach reach;
	struct found_object *found; /* per image of the layout */
	bool *have;
	struct missing *missing; /* sorted by architecture */
	size_t n_missing;
	bool fits;   /* the recipe gives the original: the file was not changed */
	bool failed; /* the failure has been reported */

	struct kp_recipe_source source;
	struct kp_recipe_result result;
};

static int take_archive(const struct options *o, const struct option_help *row,
			void *slot)
{
	struct restore *r = slot;

	(void)row;
	r->archives = xrealloc(r->archives, ((size_t)r->n_archives + 1) * sizeof(char *));
	r->archives[r->n_archives++] = (char *)o->arg;
	return EXIT_OK;
}

static const struct option_help options[] = {
	{'o', "output", "OUT", "write OUT, and leave FILE as it is",
	 OPTION_PLACE(struct restore, out)},
	{0, "archive", "ARCHIVE|DIR",
	 "take objects from here, not from FILE's search paths; may be "
	 "repeated",
	 OPTION_TAKE_ALL(take_archive)},
	{0, "allow-missing", NULL, "leave out objects that are in no archive",
	 OPTION_PLACE(struct restore, allow_missing)},
	{0},
};

const struct command_help mark_restore_help = {
	"mark restore",
	"[-o OUT] [--archive ARCHIVE|DIR]... [--allow-missing] FILE",
	"make a converted binary fat again",
	options,
	"Without -o, FILE itself is replaced.",
};

/* An object that is in no archive, or differs in the archives. */
struct missing {
	const char *arch;
	bool differs;
};

/* --- finding ---------------------------------------------------------------------- */

static void add_archive(const char *path, void *arg)
{
	struct restore *r = arg;
	struct kpackx_error why = {0};

	if (!installed_add(&r->set, path, &r->reach, &why))
		return;
	report_why(path, &why);
	r->failed = true;
}

/* Find the archives, and report those that cannot be opened. */
static kpack_error_t find_archives(struct restore *r, struct kpackx_error *why)
{
	if (r->n_archives) {
		if (!archives_paths(r->n_archives, r->archives, add_archive, r))
			r->failed = true;
		return KPACK_SUCCESS;
	}
	KP_TRY(installed_reach(&r->set, &r->b.marker, r->file, &r->reach, why));
	for (size_t i = 0; i < r->set.count; i++)
		if (!r->set.archives[i]->archive)
			report_why(r->set.archives[i]->path, &r->set.archives[i]->why);
	return KPACK_SUCCESS;
}

static void find_object(struct restore *r, size_t i)
{
	const struct kp_recipe_image *img = &r->b.layout.images[i];
	struct wanted_object want = {
		.name = r->b.marker.kernel_name,
		.index = r->b.layout.containers[img->container].index,
		.arch = img->arch,
		.kind = wanted_kind(img),
		.xxh3 = img->has_xxh3 ? img->xxh3 : NULL,
		.size = &img->size,
	};

	installed_find(&r->reach, &want, &r->found[i]);
	r->have[i] = r->found[i].archive && !r->found[i].differs;
	if (!r->have[i])
		r->missing[r->n_missing++] =
			(struct missing){img->arch, r->found[i].differs};
}

static int by_arch(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;
	int order = strcmp(x->arch, y->arch);

	return order ? order : x->differs - y->differs;
}

static void find_objects(struct restore *r)
{
	const struct kp_recipe *layout = &r->b.layout;
	size_t n = layout->n_images;

	r->found = xcalloc(n, sizeof(*r->found));
	r->have = xcalloc(n, sizeof(*r->have));
	r->missing = xcalloc(n, sizeof(*r->missing));
	for (size_t i = 0; i < n; i++)
		if (layout->images[i].placed && !layout->images[i].host &&
		    layout->images[i].size)
			find_object(r, i);
	if (r->n_missing)
		qsort(r->missing, r->n_missing, sizeof(*r->missing), by_arch);
}

/* Report missing objects, with a line for each architecture. */
static void report_missing(const struct restore *r, const char *what)
{
	for (size_t i = 0, end; i < r->n_missing; i = end) {
		const struct missing *first = &r->missing[i];

		for (end = i + 1; end < r->n_missing; end++)
			if (by_arch(first, &r->missing[end]) != 0)
				break;
		report_error(r->file, "%s: %zu objects are %s%s", first->arch, end - i,
			     first->differs ? "in archives from another build only"
					    : "in no archive",
			     what);
	}
}

/* --- code that the layout does not list -------------------------------------------- */

static bool in_layout(const struct kp_recipe *layout, const char *arch)
{
	for (size_t i = 0; i < layout->n_images; i++)
		if (!layout->images[i].host && strcmp(layout->images[i].arch, arch) == 0)
			return true;
	return false;
}

static bool has_any(const struct restore *r, const struct kpack_archive *a,
		    const char *arch)
{
	bool found = false;
	size_t entry;

	for (size_t i = 0; i < r->b.layout.n_wrappers && !found; i++) {
		char *key = xasprintf("%s#%zu", r->b.marker.kernel_name, i);

		found = kp_archive_find_kernel(a, kp_span_str(key), kp_span_str(arch),
					       &entry);
		free(key);
	}
	return found;
}

/*
 * Warn about further architectures in the archives: they may be from several joined
 * builds.
 */
static void report_unknown(const struct restore *r)
{
	for (size_t i = 0; i < r->reach.count; i++) {
		const struct kpack_archive *a = r->reach.items[i].archive->archive;

		for (size_t k = 0; a && k < kp_archive_arch_count(a); k++) {
			const char *arch = kp_archive_arch(a, k);

			if (!in_layout(&r->b.layout, arch) && has_any(r, a, arch))
				report_error(r->file,
					     "warning: %s: %s has code for it, which the "
					     "layout does not know; it is not restored",
					     arch, kp_archive_path(a));
		}
	}
}

/* --- writing ---------------------------------------------------------------------- */

struct buffer {
	uint8_t *data;
	size_t size, used;
};

static kpack_error_t append_bytes(const void *data, size_t size, void *arg,
				  struct kpackx_error *why)
{
	struct buffer *b = arg;

	if (size > b->size - b->used)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "more than %zu bytes", b->size);
	memcpy(b->data + b->used, data, size);
	b->used += size;
	return KPACK_SUCCESS;
}

static kpack_error_t read_object(void *arg, size_t image, void *buf,
				 struct kpackx_error *why)
{
	const struct restore *r = arg;
	const struct kp_recipe_image *img = &r->b.layout.images[image];
	const struct found_object *found = &r->found[image];
	struct buffer b = {buf, (size_t)img->size, 0};
	struct kp_hash hash;
	kpack_error_t err;

	err = archive_decode(found->archive->archive, found->entry, append_bytes, &b,
			     why);
	if (err)
		return kp_fail_prefix(why, err, "%s: container %u", img->arch,
				      img->container);
	hash = kp_hash_of(buf, b.used);
	if (b.used != b.size ||
	    (img->has_xxh3 && memcmp(hash.bytes, img->xxh3, sizeof(img->xxh3)) != 0))
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "%s: container %u: the object is not the packed one",
			       img->arch, img->container);
	return KPACK_SUCCESS;
}

static kpack_error_t write_section(void *arg, struct kp_outfile *out, uint64_t offset,
				   struct kpackx_error *why)
{
	struct restore *r = arg;

	return kp_recipe_restore_section(&r->b.layout, &r->source, out, offset,
					 &r->result, why);
}

/* Put the device code into a binary that was changed: OFFSETS are those of the wrappers. */
static kpack_error_t write_changed(struct restore *r, const uint64_t *offsets,
				   struct kp_outfile *out, struct kpackx_error *why)
{
	struct kp_restore_options o = {
		.size = r->b.layout.section_size,
		.offsets = offsets,
		.write = write_section,
		.arg = r,
	};

	return kp_restore(r->b.fd, r->b.size, &r->b.fat, &o, out, why);
}

static kpack_error_t write_binary(struct restore *r, struct kpackx_error *why)
{
	const struct kp_recipe *layout = &r->b.layout;
	uint64_t *offsets = xcalloc(layout->n_wrappers, sizeof(*offsets));
	struct rewrite rewrite = {0};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < layout->n_wrappers && !err; i++) {
		uint32_t c = layout->wrapper_container[i];

		/* device code that was left in the file is where it is found */
		if (!r->b.fat.elf.has_fatbin)
			offsets[i] =
				layout->containers[c].offset - layout->section_offset;
		else if (c < r->b.fat.containers.count)
			offsets[i] = r->b.fat.containers.items[c].offset;
		else
			err = kp_fail(why, KPACK_ERROR_INVALID_METADATA,
				      "layout: wrapper %zu: container %u of %zu", i, c,
				      r->b.fat.containers.count);
	}
	if (!err)
		err = rewrite_open(&rewrite, &r->b, r->out, why);
	if (!err)
		err = r->fits ? kp_recipe_restore(layout, &r->source, &rewrite.out,
						  &r->result, why)
			      : write_changed(r, offsets, &rewrite.out, why);
	if (!err)
		err = rewrite_publish(&rewrite, why);
	rewrite_close(&rewrite);
	free(offsets);
	return err;
}

static void print_done(const struct restore *r)
{
	const struct kp_recipe_result *result = &r->result;
	bool exact = !result->n_missing && !result->n_unknown && !result->n_recompressed;

	if (r->allow_missing)
		report_missing(r, "; left out");
	report_unknown(r);
	if (result->n_recompressed)
		report_error(
			r->file,
			"%zu compressed bundles have the same objects as before, but "
			"other bytes, because they were compressed by another "
			"compressor",
			result->n_recompressed);
	if (!r->fits)
		report_error(r->file,
			     "was changed since it was converted, so that only its "
			     "device code is restored");
	report_text(r->out);
	printf(": restored%s\n", !r->fits && r->b.fat.elf.has_fatbin
					 ? ", with the device code that was left in it"
				 : !exact  ? ""
				 : r->fits ? ", bit-identical to the original"
					   : ", its device code is bit-identical");
}

/* --- the command ------------------------------------------------------------------ */

static kpack_error_t restore_file(struct restore *r, struct kpackx_error *why)
{
	struct kp_source file;

	KP_TRY(binary_open(r->file, &r->b, why));
	KP_TRY(binary_read_marker(&r->b, why));
	KP_TRY(binary_read_layout(&r->b, why));
	if (!r->b.has_layout)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "has no " KP_LAYOUT_SECTION
			       ", without which it cannot be restored");
	file = kp_source_fd(r->b.fd, 0, r->b.size);
	KP_TRY(kp_recipe_fits(&r->b.layout, &file, &r->fits, why));
	if (!r->b.fat.elf.has_fatbin) {
		KP_TRY(find_archives(r, why));
		find_objects(r);
	}
	if (r->n_missing && !r->allow_missing) {
		report_missing(r, "");
		r->failed = true;
	}
	if (r->failed)
		return KPACK_SUCCESS;
	r->source = (struct kp_recipe_source){&file, r->have, read_object, r};
	KP_TRY(write_binary(r, why));
	print_done(r);
	return KPACK_SUCCESS;
}

/* Put large bundles, before they are compressed, where the binary will be. */
static void begin_spilling(const struct restore *r, struct spill_dir *spill)
{
	const char *slash = strrchr(r->out, '/');
	char *dir = slash ? xstrndup(r->out, (size_t)(slash - r->out) + 1) : xstrdup(".");

	spill_dir_begin(spill, dir);
	free(dir);
}

static int run_restore(struct restore *r)
{
	struct spill_dir spill = {0};
	struct kpackx_error why = {0};

	begin_spilling(r, &spill);
	installed_init(&r->set);
	if (restore_file(r, &why)) {
		report_why(r->file, &why);
		r->failed = true;
	}
	spill_dir_end(&spill);
	reach_fini(&r->reach);
	installed_fini(&r->set);
	binary_close(&r->b);
	free(r->found);
	free(r->have);
	free(r->missing);
	return r->failed ? EXIT_FAULT : EXIT_OK;
}

/* Returns the exit status to leave with, or -1. */
static int read_options(struct restore *r, struct options *o)
{
	int status = options_read(o, r);

	if (status >= 0)
		return status;
	if (o->argc - optind != 1)
		return options_usage(o->help, "one FILE is needed");
	r->file = o->argv[optind];
	if (!r->out)
		r->out = r->file;
	return -1;
}

int mark_restore(int argc, char **argv)
{
	struct options o = {.help = &mark_restore_help, .argc = argc, .argv = argv};
	struct restore r = {.b = {.fd = -1}};
	int status = read_options(&r, &o);

	if (status < 0)
		status = report_finish(run_restore(&r));
	free(r.archives);
	return status;
}
