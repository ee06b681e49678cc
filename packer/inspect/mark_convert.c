/* SPDX-License-Identifier: MIT */
/*
 * kpack mark convert removes the device code from a fat binary and adds a marker.  kpack mark restore
 * makes a fat binary of a converted one and its archives again.  kpack mark strip-safe repairs converted
 * binaries whose program headers another tool moved, or only finds them.
 *
 * All three write a whole new file and publish it in the place of the old one (struct rewrite), so that a
 * running program keeps its file, and a failure leaves everything as it was.
 *
 * How an original is made of a recipe and archives, or of those of --archive: packer/archives/restore.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/path.h"
#include "core/restore/recipe.h"
#include "mark.h"
#include "packer/archives/binary.h"
#include "packer/archives/operands.h"
#include "packer/archives/reachable_archives.h"
#include "packer/archives/restore.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/spill_dir.h"
#include "packer/files/tree_list.h"
#include "packer/gpu/runtimes.h"

/* ==== convert ==== */

struct mark_convert {
	struct kp_marker marker;
	bool keep, drop_signature;
	const char *in, *out;
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
	OPTION_DROP_SIGNATURE(struct mark_convert, drop_signature),
	{0},
};

const struct command_help mark_convert_help = {
	"mark convert",
	"--kernel-name NAME --search-path PATH... [--keep-device-code] "
	"[--drop-signature] IN OUT",
	"convert one fat binary: device code out, marker in",
	convert_options,
	"A PATH may have @GFXARCH@, which stands for the architecture.  OUT may be IN.",
};

/* The recipe by which it can be restored goes into the file, too. */
static kpack_error_t write_converted(const struct mark_convert *c, const struct binary *b,
				     struct kp_convert_options o, struct kp_outfile *out,
				     struct kpackx_error *why)
{
	KP_AUTO(kp_recipe) recipe = {0};
	KP_AUTO_FREE uint8_t *marker = NULL;
	struct kp_recipe_maker maker = {.recipe = &recipe, .fd = b->fd, .size = b->size};
	unsigned how = KP_RECIPE_COMPUTE | (c->keep ? KP_RECIPE_IN_FILE : 0);
	size_t size = 0;
	kpack_error_t err;

	KP_TRY(kp_marker_write(&c->marker, &marker, &size, why));
	KP_TRY(kp_recipe_describe(&b->fat, NULL, NULL, how, &recipe, why));
	o.marker = (struct kp_span){marker, size};
	o.recipe = kp_recipe_complete;
	o.recipe_arg = &maker;
	err = kp_convert(b->fd, b->size, &b->fat, &o, out, why);
	free((void *)maker.bytes.data);
	return err;
}

int mark_convert(int argc, char **argv)
{
	struct options o = {.help = &mark_convert_help, .argc = argc, .argv = argv};
	struct mark_convert c = {0};
	struct kp_convert_options how = {0};
	struct hip_runtimes list = {0};
	struct kpackx_error why = {0};
	struct rewrite r = {0};
	char before[24], after[24];
	bool converted, same;
	const char *unlisted = NULL;
	struct binary b;
	struct stat st;
	kpack_error_t err;

	options_read(&o, &c);
	if (!c.marker.kernel_name || c.marker.n_search_paths == 0)
		options_usage(o.help, "--kernel-name and --search-path are needed");
	if (argc - optind != 2)
		options_usage(o.help, "IN and OUT are needed");
	c.in = argv[optind];
	c.out = argv[optind + 1];
	how.keep_device_code = c.keep;
	how.drop_signature = c.drop_signature;
	err = binary_open(c.in, &b, &why);
	if (err)
		goto out;
	converted = b.fat.kind == KP_FATBIN_CONVERTED;
	if (converted)
		report_error(c.in, "is converted already; its marker stays");
	else
		err = binary_unlisted(&b, &unlisted, &why);
	if (!err && unlisted)
		err = kp_fail(&why, KPACK_ERROR_NOT_IMPLEMENTED, "%s", unlisted);
	if (!err && !converted)
		err = kp_convert_check(b.fd, b.size, &b.fat, &how, &why);
	same = below_stat(c.out, &st) == 0 && st.st_dev == b.st.st_dev &&
	       st.st_ino == b.st.st_ino;
	if (err || (converted && same))
		goto out;
	err = rewrite_open(&r, &b, c.out, &why);
	if (!err)
		err = converted ? kp_outfile_copy(&r.out, 0, b.fd, 0, b.size, &why)
				: write_converted(&c, &b, how, &r.out, &why);
	if (!err && fstat(r.out.fd, &st) < 0)
		err = kp_fail_errno(&why, errno, "cannot stat");
	if (!err)
		err = rewrite_publish(&r, &why);
	if (err || converted)
		goto out;
	report_text(c.out);
	printf(": converted, %s became %s\n", report_size(b.size, before),
	       report_size((uint64_t)st.st_size, after));
	/* warn if this system's HIP runtimes refuse what was converted */
	runtimes_judge(&list, c.in, false);
	runtimes_fini(&list);
out:
	if (err)
		report_why(c.in, &why);
	rewrite_close(&r);
	binary_close(&b);
	kp_marker_fini(&c.marker);
	return report_finish(err ? EXIT_FAULT : EXIT_OK);
}

/* ==== restore ==== */

struct mark_restore {
	const char *out;
	bool allow_missing, drop_signature;
	struct option_texts archives; /* operands of --archive */

	struct installed set;
	struct reach given; /* the archives of --archive */
	size_t n_seen, n_faults;
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
	OPTION_DROP_SIGNATURE(struct mark_restore, drop_signature),
	{0},
};

const struct command_help mark_restore_help = {
	"mark restore",
	"[-o OUT] [--archive ARCHIVE|DIR]... [--allow-missing] [--drop-signature] "
	"FILE|TREE...",
	"make converted binaries fat again",
	restore_options,
	"Without -o, each file itself is replaced.  With several files or a TREE, OUT is "
	"a\n"
	"directory.  'kpack pack --undo TREE' also brings back what else was packed.",
};

static void add_archive(const char *path, void *arg)
{
	struct mark_restore *m = arg;
	struct kpackx_error why = {0};

	if (!installed_add(&m->set, path, &m->given, &why))
		return;
	report_why(path, &why);
	m->n_faults++;
}

/* Restore FILE to OUT, which may be FILE. */
static void restore_file(struct mark_restore *m, const char *file, const char *out)
{
	const char *slash = strrchr(out, '/');
	KP_AUTO_FREE char *dir =
		slash ? xstrndup(out, (size_t)(slash - out) + 1) : xstrdup(".");
	struct kpackx_error why = {0};
	struct rewrite rewrite = {0};
	struct restore r;
	kpack_error_t err = restore_open(&r, file, &m->set,
					 m->archives.count ? &m->given : NULL, &why);

	m->n_seen++;
	r.b.drop_signature = m->drop_signature;
	/* large bundles, before they are compressed, are where the binary will be */
	spill_dir_begin(dir);
	if (!err && r.n_missing && !m->allow_missing) {
		restore_report_missing(
			&r, "; --archive says where, --allow-missing leaves it out");
		m->n_faults++;
		goto out;
	}
	if (!err)
		err = rewrite_open(&rewrite, &r.b, out, &why);
	progress_begin("restoring", r.bytes, !err);
	if (!err)
		err = restore_write(&r, &rewrite.out, &why);
	progress_end();
	if (!err)
		err = rewrite_publish(&rewrite, &why);
	if (!err) {
		const char *how;

		restore_report_missing(&r, "; left out");
		restore_report_unlisted(&r);
		how = restore_report(file, &r.how);
		report_text(out);
		printf(": restored%s\n", how);
	}
out:
	if (err) {
		report_why(file, &why);
		m->n_faults++;
	}
	rewrite_close(&rewrite);
	spill_dir_end();
	restore_close(&r);
}

/* Restore the converted binaries among the files of TREE, each to its path below OUT, or in place. */
static void restore_tree(struct mark_restore *m, const char *tree, const char *out)
{
	struct tree_list *list = tree_list_open(tree);
	struct tree_item item;
	size_t seen = m->n_seen, faults = m->n_faults;

	while (tree_list_next(list, &item)) {
		struct kpackx_error why = {0};
		struct binary b = {.fd = -1};
		kpack_error_t err;
		bool converted;

		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			m->n_faults++;
		}
		if (item.kind != TREE_OTHER || !S_ISREG(item.st.st_mode))
			continue;
		/* other files may be of any kind; one that is damaged may have been converted */
		err = binary_open(item.path, &b, &why);
		converted = !err && b.fat.kind == KP_FATBIN_CONVERTED;
		binary_close(&b);
		if (err == KPACK_ERROR_IO_ERROR || err == KPACK_ERROR_OUT_OF_MEMORY) {
			report_why(item.path, &why);
			m->n_faults++;
		} else if (err) {
			report_error(item.path, "note: left as it is: %s", why.text);
		}
		if (converted) {
			KP_AUTO_FREE char *to = xasprintf("%s/%s", out, item.rest);
			KP_AUTO_FREE char *dir = xstrndup(to, kp_path_directory(to).size);

			if (!below_mkdirs(dir, 0777, &why)) {
				restore_file(m, item.path, to);
			} else {
				report_why(dir, &why);
				m->n_faults++;
			}
		}
	}
	tree_list_close(list);
	if (m->n_seen == seen && m->n_faults == faults) {
		report_error(tree, "there is no converted binary in it");
		m->n_faults++;
	}
}

int mark_restore(int argc, char **argv)
{
	struct mark_restore m = {0};
	int n = options_parse(&mark_restore_help, argc, &argv, &m);
	struct kpackx_error why = {0};
	KP_AUTO_FREE bool *trees = xcalloc((size_t)n + 1, 1);
	bool into = n > 1; /* -o is a directory */
	bool fine = true;
	struct stat st;

	if (!n)
		options_usage(&mark_restore_help, "a FILE or a TREE is needed");
	for (int i = 1; i < n && m.out; i++)
		for (int k = 0; k < i; k++)
			if (strcmp(kp_path_name(argv[i]), kp_path_name(argv[k])) == 0)
				options_usage(&mark_restore_help,
					      "%s and %s would be the same in %s",
					      argv[k], argv[i], m.out);
	for (int i = 0; i < n; i++) {
		fine &= below_hold(argv[i]);
		/* what is not there is reported in its turn */
		if (below_stat(argv[i], &st) == 0) {
			trees[i] = S_ISDIR(st.st_mode);
		} else if (errno != ENOENT) {
			report_error(argv[i], "cannot look at it: %s", strerror(errno));
			fine = false;
		}
		into |= trees[i];
	}
	into |= m.out && below_stat(m.out, &st) == 0 && S_ISDIR(st.st_mode);
	if (m.out && into && below_make_root(m.out, 0777, &why)) {
		report_why(m.out, &why);
		fine = false;
	}
	if (fine && m.archives.count)
		fine = archives_paths((int)m.archives.count, (char **)m.archives.items,
				      add_archive, &m) &&
		       !m.n_faults;
	for (int i = 0; i < n && fine; i++) {
		KP_AUTO_FREE char *to =
			!m.out ? xstrdup(argv[i])
			: into && !(trees[i] && n == 1)
				? xasprintf("%s/%s", m.out, kp_path_name(argv[i]))
				: xstrdup(m.out);

		if (trees[i])
			restore_tree(&m, argv[i], to);
		else
			restore_file(&m, argv[i], to);
	}
	reach_fini(&m.given);
	installed_fini(&m.set);
	free(m.archives.items);
	return report_finish(fine && !m.n_faults ? EXIT_OK : EXIT_FAULT);
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
