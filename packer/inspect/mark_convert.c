/* SPDX-License-Identifier: MIT */
/*
 * kpack mark convert removes the device code from a fat binary and adds a marker.  kpack mark restore
 * makes a fat binary of a converted one and its archives again.  kpack mark strip-safe repairs converted
 * binaries whose program headers another tool moved, or only finds them.
 *
 * All three write a whole new file and publish it in the place of the old one (struct rewrite), so that a
 * running program keeps its file, and a failure leaves everything as it was.
 *
 * Restoring: the recipe in .rocm_kpack_layout lists the objects; each is looked for in the archives that the
 * marker's search paths reach, or in those of --archive, and must have the hash that the recipe
 * states.  Then the original is made in one of two ways:
 *
 *	what the recipe copies is still in the file   the whole original, from the recipe
 *	the file was changed since (strip, patchelf)  the changed file, with its device code put back
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/entry.h"
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/restore/recipe.h"
#include "mark.h"
#include "packer/archives/binary.h"
#include "packer/archives/operands.h"
#include "packer/archives/reachable_archives.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/spill_dir.h"
#include "packer/files/tree_list.h"
#include "packer/gpu/runtimes.h"

/* ==== convert ==== */

struct mark_convert {
	struct kp_marker marker;
	bool keep;
};

static const struct option_help convert_options[] = {
	{0, "kernel-name", "NAME", "key of its objects in the archives, without #n",
	 OPTION_TAKE(struct mark_convert, marker, mark_take_name)},
	{0, "search-path", "PATH",
	 "path of an archive, relative to OUT's directory; may be "
	 "repeated",
	 OPTION_TAKE(struct mark_convert, marker, mark_take_path)},
	{0, "keep-device-code", NULL, "leave the device code in the file",
	 OPTION_PLACE(struct mark_convert, keep)},
	{0},
};

const struct command_help mark_convert_help = {
	"mark convert",
	"--kernel-name NAME --search-path PATH... [--keep-device-code] IN OUT",
	"convert one fat binary: device code out, marker in",
	convert_options,
	"A PATH may have @GFXARCH@, which stands for the architecture.  OUT may be IN.",
};

static kpack_error_t write_converted(const struct mark_convert *c, const struct binary *b,
				     struct kp_outfile *out, struct kpackx_error *why)
{
	KP_AUTO(kp_recipe) recipe = {0};
	KP_AUTO_FREE uint8_t *marker = NULL;
	struct kp_recipe_maker maker = {.recipe = &recipe, .fd = b->fd, .size = b->size};
	struct kp_convert_options o = {.recipe = kp_recipe_complete,
				       .recipe_arg = &maker,
				       .keep_device_code = c->keep};
	unsigned how = KP_RECIPE_COMPUTE | (c->keep ? KP_RECIPE_IN_FILE : 0);
	size_t size = 0;
	kpack_error_t err;

	KP_TRY(kp_marker_write(&c->marker, &marker, &size, why));
	KP_TRY(kp_recipe_describe(&b->fat, NULL, NULL, how, &recipe, why));
	o.marker = (struct kp_span){marker, size};
	err = kp_convert(b->fd, b->size, &b->fat, &o, out, why);
	free((void *)maker.bytes.data);
	return err;
}

int mark_convert(int argc, char **argv)
{
	struct options o = {.help = &mark_convert_help, .argc = argc, .argv = argv};
	struct mark_convert c = {0};
	struct hip_runtimes list = {0};
	struct kpackx_error why = {0};
	struct rewrite r = {0};
	char before[24], after[24];
	bool converted;
	const char *in, *to;
	struct binary b;
	struct stat st;
	kpack_error_t err;

	options_read(&o, &c);
	if (!c.marker.kernel_name || c.marker.n_search_paths == 0)
		options_usage(o.help, "--kernel-name and --search-path are needed");
	if (argc - optind != 2)
		options_usage(o.help, "IN and OUT are needed");
	in = argv[optind];
	to = argv[optind + 1];
	err = binary_open(in, &b, &why);
	if (err)
		goto out;
	converted = b.fat.kind == KP_FATBIN_CONVERTED;
	if (converted)
		report_error(in, "is converted already; its marker stays");
	else
		err = kp_convert_check(b.fd, b.size, &b.fat, c.keep, &why);
	if (err || (converted && rewrite_is_same(&b, to)))
		goto out;
	err = rewrite_open(&r, &b, to, &why);
	if (!err)
		err = converted ? kp_outfile_copy(&r.out, 0, b.fd, 0, b.size, &why)
				: write_converted(&c, &b, &r.out, &why);
	if (!err && fstat(r.out.fd, &st) < 0)
		err = kp_fail_errno(&why, errno, "cannot stat");
	if (!err)
		err = rewrite_publish(&r, &why);
	if (err || converted)
		goto out;
	report_text(to);
	printf(": converted, %s became %s\n", report_size(b.size, before),
	       report_size((uint64_t)st.st_size, after));
	/* warn if this system's HIP runtimes refuse what was converted */
	runtimes_judge(&list, in, false);
	runtimes_fini(&list);
out:
	if (err)
		report_why(in, &why);
	rewrite_close(&r);
	binary_close(&b);
	kp_marker_fini(&c.marker);
	return report_finish(err ? EXIT_FAULT : EXIT_OK);
}

/* ==== restore ==== */

/* An object that is in no archive, or differs in the archives. */
struct missing_object {
	const char *arch;
	bool differs;
};

struct mark_restore {
	const char *file, *out;
	bool allow_missing;
	struct option_texts archives; /* operands of --archive */

	struct binary b;
	struct installed set;
	struct reach reach;
	struct found_object *found; /* per image of the layout */
	bool *have;
	struct missing_object *missing; /* sorted by architecture */
	size_t n_missing;
	bool fits;   /* the recipe gives the original: the file was not changed */
	bool failed; /* the failure has been reported */

	struct kp_recipe_source source;
	struct kp_recipe_result result;
};

static const struct option_help restore_options[] = {
	{'o', "output", "OUT", "write OUT, and leave FILE as it is",
	 OPTION_PLACE(struct mark_restore, out)},
	{0, "archive", "ARCHIVE|DIR",
	 "take objects from here, not from FILE's search paths; may be "
	 "repeated",
	 OPTION_PLACE(struct mark_restore, archives)},
	{0, "allow-missing", NULL, "leave out objects that are in no archive",
	 OPTION_PLACE(struct mark_restore, allow_missing)},
	{0},
};

const struct command_help mark_restore_help = {
	"mark restore",
	"[-o OUT] [--archive ARCHIVE|DIR]... [--allow-missing] FILE",
	"make a converted binary fat again",
	restore_options,
	"Without -o, FILE itself is replaced.",
};

/* ---- finding the objects ---- */

static void add_archive(const char *path, void *arg)
{
	struct mark_restore *r = arg;
	struct kpackx_error why = {0};

	if (!installed_add(&r->set, path, &r->reach, &why))
		return;
	report_why(path, &why);
	r->failed = true;
}

/* Find the archives, report those that cannot be opened, and find the objects in them. */
static kpack_error_t find_objects(struct mark_restore *r, struct kpackx_error *why)
{
	const struct kp_recipe *layout = &r->b.layout;
	size_t n = layout->n_images;

	if (r->archives.count) {
		r->failed |= !archives_paths((int)r->archives.count,
					     (char **)r->archives.items, add_archive, r);
	} else {
		KP_TRY(installed_reach(&r->set, &r->b.marker, r->file, &r->reach, why));
		for (size_t i = 0; i < r->set.count; i++)
			if (!r->set.archives[i]->archive)
				report_why(r->set.archives[i]->path,
					   &r->set.archives[i]->why);
	}
	r->found = xcalloc(n, sizeof(*r->found));
	r->have = xcalloc(n, sizeof(*r->have));
	r->missing = xcalloc(n, sizeof(*r->missing));
	for (size_t i = 0; i < n; i++) {
		const struct kp_recipe_image *img = &layout->images[i];
		struct wanted_object want = {
			.name = r->b.marker.kernel_name,
			.arch = img->arch,
			.kind = wanted_kind(img),
			.xxh3 = img->has_xxh3 ? img->xxh3 : NULL,
			.size = &img->size,
		};

		if (!img->placed || img->host || !img->size)
			continue;
		want.index = layout->containers[img->container].index;
		installed_find(&r->reach, &want, &r->found[i]);
		r->have[i] = r->found[i].archive && !r->found[i].differs;
		if (!r->have[i])
			r->missing[r->n_missing++] =
				(struct missing_object){img->arch, r->found[i].differs};
	}
	kp_sort(r->missing, r->n_missing, KP_BY_TEXT(struct missing_object, arch),
		KP_BY_NUMBER(struct missing_object, differs));
	return KPACK_SUCCESS;
}

/* Report missing objects, with a line for each architecture. */
static void report_missing(const struct mark_restore *r, const char *what)
{
	for (size_t i = 0, end; i < r->n_missing; i = end) {
		const struct missing_object *first = &r->missing[i];

		for (end = i + 1; end < r->n_missing; end++)
			if (strcmp(r->missing[end].arch, first->arch) != 0 ||
			    r->missing[end].differs != first->differs)
				break;
		report_error(r->file, "%s: %zu object%s %s%s", first->arch, end - i,
			     end - i == 1 ? " is" : "s are",
			     first->differs ? "in archives from another build only"
					    : "in no archive",
			     what);
	}
}

/* Whether an archive has code of the binary for ARCH that its layout does not list. */
static bool is_unlisted(const struct mark_restore *r, const struct kpack_archive *a,
			const char *arch)
{
	const struct kp_recipe *layout = &r->b.layout;
	bool found = false;
	size_t entry;

	for (size_t i = 0; i < layout->n_images; i++)
		if (!layout->images[i].host && strcmp(layout->images[i].arch, arch) == 0)
			return false;
	for (size_t i = 0; i < layout->n_wrappers && !found; i++) {
		char *key = xasprintf("%s#%zu", r->b.marker.kernel_name, i);

		found = kp_archive_find_kernel(a, kp_span_str(key), kp_span_str(arch),
					       &entry);
		free(key);
	}
	return found;
}

/* ---- writing ---- */

/* An object whose size is another one is not among those that were found. */
static kpack_error_t read_object(void *arg, size_t image, void *buf,
				 struct kpackx_error *why)
{
	const struct mark_restore *r = arg;
	const struct kp_recipe_image *img = &r->b.layout.images[image];
	const struct found_object *found = &r->found[image];
	kpack_error_t err =
		kp_entry_read(found->archive->archive, found->entry, buf, why);

	return err ? kp_fail_prefix(why, err, "%s: container %u", img->arch,
				    img->container)
		   : err;
}

static kpack_error_t write_section(void *arg, struct kp_outfile *out, uint64_t offset,
				   struct kpackx_error *why)
{
	struct mark_restore *r = arg;

	return kp_recipe_restore_section(&r->b.layout, &r->source, out, offset,
					 &r->result, why);
}

static kpack_error_t write_restored(struct mark_restore *r, struct kpackx_error *why)
{
	const struct kp_recipe *layout = &r->b.layout;
	const struct kp_containers *list = &r->b.fat.containers;
	KP_AUTO_FREE uint64_t *offsets = xcalloc(layout->n_wrappers, sizeof(*offsets));
	struct kp_restore_options o = {.size = layout->section_size,
				       .offsets = offsets,
				       .write = write_section,
				       .arg = r};
	struct rewrite rewrite;
	kpack_error_t err;

	for (size_t i = 0; i < layout->n_wrappers; i++) {
		uint32_t c = layout->wrapper_container[i];

		/* device code that was left in the file is where it is found */
		if (!r->b.fat.elf.has_fatbin)
			offsets[i] =
				layout->containers[c].offset - layout->section_offset;
		else if (c < list->count)
			offsets[i] = list->items[c].offset;
		else
			return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
				       "layout: wrapper %zu: container %u of %zu", i, c,
				       list->count);
	}
	KP_TRY(rewrite_open(&rewrite, &r->b, r->out, why));
	/* a binary that was changed since only gets its device code */
	err = r->fits ? kp_recipe_restore(layout, &r->source, &rewrite.out, &r->result,
					  why)
		      : kp_restore(r->b.fd, r->b.size, &r->b.fat, &o, &rewrite.out, why);
	if (!err)
		err = rewrite_publish(&rewrite, why);
	rewrite_close(&rewrite);
	return err;
}

static void print_restored(const struct mark_restore *r)
{
	const struct kp_recipe_result *result = &r->result;
	bool exact = !result->n_missing && !result->n_unknown && !result->n_recompressed;

	if (r->allow_missing)
		report_missing(r, "; left out");
	/* the archives may be from several joined builds */
	for (size_t i = 0; i < r->reach.count; i++) {
		const struct kpack_archive *a = r->reach.items[i].archive->archive;

		for (size_t k = 0; a && k < kp_archive_arch_count(a); k++)
			if (is_unlisted(r, a, kp_archive_arch(a, k)))
				report_error(r->file,
					     "warning: %s: %s has code for it, which the "
					     "layout does not know; it is not restored",
					     kp_archive_arch(a, k), kp_archive_path(a));
	}
	if (result->n_recompressed)
		report_error(
			r->file,
			"compressed bundles with the same objects as before, but with "
			"other bytes, because another compressor compressed them: %zu",
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

int mark_restore(int argc, char **argv)
{
	struct options o = {.help = &mark_restore_help, .argc = argc, .argv = argv};
	struct mark_restore r = {.b = {.fd = -1}};
	KP_AUTO_FREE char *dir = NULL;
	const char *slash;
	struct kpackx_error why = {0};
	struct kp_source file;
	kpack_error_t err;

	options_read(&o, &r);
	if (argc - optind != 1)
		options_usage(o.help, "one FILE is needed");
	r.file = argv[optind];
	r.out = r.out ? r.out : r.file;
	/* large bundles, before they are compressed, are where the binary will be */
	slash = strrchr(r.out, '/');
	dir = slash ? xstrndup(r.out, (size_t)(slash - r.out) + 1) : xstrdup(".");
	spill_dir_begin(dir);
	err = binary_open(r.file, &r.b, &why);
	if (!err)
		err = binary_read_marker(&r.b, &why);
	if (!err)
		err = binary_read_layout(&r.b, &why);
	if (!err && !r.b.has_layout)
		err = kp_fail(&why, KPACK_ERROR_NOT_IMPLEMENTED,
			      "has no " KP_LAYOUT_SECTION
			      ", without which it cannot be restored");
	file = kp_source_fd(r.b.fd, 0, r.b.size);
	if (!err)
		err = kp_recipe_fits(&r.b.layout, &file, &r.fits, &why);
	/* device code that was left in the file needs no archive */
	if (!err && !r.b.fat.elf.has_fatbin)
		err = find_objects(&r, &why);
	if (!err && r.n_missing && !r.allow_missing) {
		report_missing(&r, "");
		r.failed = true;
	}
	if (!err && !r.failed) {
		r.source = (struct kp_recipe_source){&file, r.have, read_object, &r};
		err = write_restored(&r, &why);
		if (!err)
			print_restored(&r);
	}
	if (err)
		report_why(r.file, &why);
	spill_dir_end();
	reach_fini(&r.reach);
	installed_fini(&r.set);
	binary_close(&r.b);
	free(r.found);
	free(r.have);
	free(r.missing);
	free(r.archives.items);
	return report_finish(err || r.failed ? EXIT_FAULT : EXIT_OK);
}

/* ==== strip-safe ==== */

struct strip_safe {
	bool check;
	size_t n_seen; /* host binaries of any kind */
	size_t n_programs, n_faults;
};

static const struct option_help strip_safe_options[] = {
	{0, "check", NULL, "only find the binaries that need it, in trees, too",
	 OPTION_PLACE(struct strip_safe, check)},
	{0},
};

const struct command_help mark_strip_safe_help = {
	"mark strip-safe",
	"FILE...|--check ROOT...",
	"repair converted binaries after strip and its like",
	strip_safe_options,
	"Linux before 5.18 does not start a program whose program headers were moved,"
	" and\nprofiling runtimes do not find them.",
};

/* Move the program headers of PATH back to where the ELF header in memory says. */
static bool repair_file(const char *path)
{
	struct kpackx_error why = {0};
	struct rewrite r = {0};
	struct binary b;
	bool changed = false;
	kpack_error_t err = binary_open(path, &b, &why);

	if (!err)
		err = rewrite_open(&r, &b, path, &why);
	if (!err)
		err = kp_convert_normalise(b.fd, b.size, &b.fat, &r.out, &changed, &why);
	if (!err && changed)
		err = rewrite_publish(&r, &why);
	rewrite_close(&r);
	binary_close(&b);
	if (err) {
		report_why(path, &why);
		return false;
	}
	report_text(path);
	printf(": %s\n", changed ? "repaired" : "ok");
	return true;
}

/*
 * Check where the program headers of a host binary are.  Files that are not converted are looked at,
 * too, but may be of any kind; a library among them matters to nobody here.
 */
static void check_headers(struct strip_safe *s, const char *path)
{
	struct kpackx_error why = {0};
	bool converted, program, right;
	struct binary b;
	char magic[4]; /* most files of a tree are no ELF files at all */

	if (binary_open(path, &b, &why)) {
		report_why(path, &why);
		s->n_faults++;
		return;
	}
	converted = b.fat.kind == KP_FATBIN_CONVERTED;
	if (b.size < sizeof(magic) ||
	    kp_file_pread(b.fd, 0, magic, sizeof(magic), NULL) ||
	    memcmp(magic, "\177ELF", sizeof(magic)) != 0)
		goto out;
	s->n_seen++;
	if (kp_convert_headers(b.fd, b.size, &program, &right, &why)) {
		if (converted)
			report_why(path, &why);
		s->n_faults += converted;
		goto out;
	}
	s->n_programs += program;
	if (!right && (program || converted)) {
		s->n_faults++;
		report_error(path, "its program headers are %s%s",
			     program ? "where Linux before 5.18 does not look"
				     : "not where the ELF header in memory says",
			     converted ? ": repair it by kpack mark strip-safe"
				       : ", and it is not converted");
	}
out:
	binary_close(&b);
}

int mark_strip_safe(int argc, char **argv)
{
	struct options o = {.help = &mark_strip_safe_help, .argc = argc, .argv = argv};
	struct strip_safe s = {0};

	options_read(&o, &s);
	if (optind == argc)
		return options_usage(o.help, "a file is missing");
	for (int i = optind; i < argc; i++) {
		struct tree_list *list;
		struct tree_item item;
		struct stat st;

		if (!s.check) {
			s.n_faults += !repair_file(argv[i]);
			continue;
		}
		if (!below_hold(argv[i])) {
			s.n_faults++;
			continue;
		}
		list = tree_list_open(argv[i]);
		while (tree_list_next(list, &item)) {
			bool file = item.kind == TREE_OTHER && S_ISREG(item.st.st_mode);

			/* an operand may be a link */
			if (item.kind == TREE_OTHER && item.level == 0)
				file = below_stat(item.path, &st) == 0 &&
				       S_ISREG(st.st_mode);
			if (file) {
				check_headers(&s, item.path);
			} else if (item.kind == TREE_FAULT) {
				report_error(item.path, "%s", strerror(item.error));
				s.n_faults++;
			}
		}
		tree_list_close(list);
	}
	if (s.check && s.n_seen == 0 && s.n_faults == 0) {
		report_error(argv[optind],
			     argc - optind == 1
				     ? "there is no binary to check"
				     : "there is no binary to check, nor in the "
				       "others");
		s.n_faults++;
	}
	if (s.check)
		printf("%zu program%s, %zu fault%s\n", s.n_programs, plural(s.n_programs),
		       s.n_faults, plural(s.n_faults));
	return report_finish(s.n_faults ? EXIT_FAULT : EXIT_OK);
}
