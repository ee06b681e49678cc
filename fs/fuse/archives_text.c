/* SPDX-License-Identifier: MIT */
/*
 * What the mount shows, and what not: the texts of .kpackfs/archives, conflicts and
 * missing.  All that comes from archives is escaped for terminals.
 */
#include <stdarg.h>
#include <stdlib.h>
#include "texts.h"
#include "core/archive/naming.h"
#include "core/base/text.h"
#include "core/view/view.h"

static void put_escaped(FILE *f, struct kp_span s)
{
	char *text = kp_text_escape_new(s);

	fputs(text ? text : "?", f);
	free(text);
}

static void put_string(FILE *f, const char *s)
{
	put_escaped(f, kp_span_str(s));
}

/*
 * Columns: path, scheme, architectures, entries, bytes, inode number, time of the last
 * change; or the path and the refusal's reason.
 */
void archives_text_put(FILE *f, const struct edition *e)
{
	const struct holdings *h = &e->holdings;

	for (size_t i = 0; i < h->count; i++) {
		const struct kpack_archive *a = e->archives[i];
		const struct stat *st = kp_archive_stat(a);

		put_string(f, kp_archive_path(a));
		fprintf(f, "\t%s\t", kp_archive_scheme(a));
		for (size_t k = 0; k < kp_archive_arch_count(a); k++) {
			if (k)
				fputc(',', f);
			put_string(f, kp_archive_arch(a, k));
		}
		fprintf(f, "\t%zu\t%lld\t%llu\t%lld.%09ld\n", kp_archive_entry_count(a),
			(long long)st->st_size, (unsigned long long)st->st_ino,
			(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	}
	for (size_t i = 0; i < h->n_refused; i++) {
		put_string(f, h->refused[i].path);
		fputs("\trefused: ", f);
		put_string(f, h->refused[i].text);
		fputc('\n', f);
	}
}

void conflicts_text_put(FILE *f, const struct edition *e)
{
	const struct holdings *h = &e->holdings;
	size_t kept, counted;
	const char *const *lines = kp_view_conflicts(e->view, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		fprintf(f, "%s\n", lines[i]);
	if (counted > kept)
		fprintf(f, "and %zu more\n", counted - kept);
	for (size_t i = 0; i < h->count; i++) {
		const struct kp_fault *faults =
			kp_archive_faults(e->archives[i], &kept, &counted);

		for (size_t k = 0; k < kept; k++) {
			if (!faults[k].refused)
				continue;
			put_string(f, kp_archive_path(e->archives[i]));
			fputs(": ", f);
			put_string(f, faults[k].text);
			fputc('\n', f);
		}
		if (counted > kept)
			fprintf(f, "and %zu more\n", counted - kept);
	}
	for (size_t i = 0; i < h->n_refused; i++) {
		put_string(f, h->refused[i].path);
		fputs(": ", f);
		put_string(f, h->refused[i].text);
		fputc('\n', f);
	}
}

size_t conflicts_count(const struct edition *e)
{
	size_t kept, counted, n;

	kp_view_conflicts(e->view, &kept, &n);
	for (size_t i = 0; i < e->holdings.count; i++) {
		const struct kp_fault *faults =
			kp_archive_faults(e->archives[i], &kept, &counted);

		n += counted - kept;
		for (size_t k = 0; k < kept; k++)
			n += faults[k].refused;
	}
	return n;
}

/* --- missing -------------------------------------------------------------------------- */

struct missing {
	FILE *out;
	const struct edition *edition;
	struct kp_view_options select;
	const char *chosen; /* the architectures that are shown */
	const char *subdir; /* NULL: the whole tree */

	/* The last directory and architecture.  Entries are sorted by key, so the next
	 * one often has the same. */
	uint8_t dir_path[KP_NAME_MAX + 512];
	size_t dir_size;
	uint32_t dir;
	bool dir_found;
	const uint8_t *arch;
	bool selected;
};

/* Write a line.  The reason is escaped, too, because parts of it come from archives. */
static void __attribute__((format(printf, 3, 4)))
put_reason(const struct missing *m, struct kp_span path, const char *format, ...)
{
	char *reason = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&reason, format, args);
	va_end(args);
	put_escaped(m->out, path);
	fputc('\t', m->out);
	put_string(m->out, n < 0 ? "?" : reason);
	fputc('\n', m->out);
	if (n >= 0)
		free(reason);
}

/* Find the name at PATH in the view. */
static bool find_name(struct missing *m, struct kp_span path, struct kp_view_name *out)
{
	const struct kp_view *v = m->edition->view;
	size_t cut = path.size;
	uint32_t name;

	while (cut && path.data[cut - 1] != '/')
		cut--;
	if (cut > sizeof(m->dir_path))
		return false;
	if (cut != m->dir_size || memcmp(path.data, m->dir_path, cut) != 0) {
		memcpy(m->dir_path, path.data, cut);
		m->dir_size = cut;
		m->dir_found = kp_view_find_dir(v, kp_span_head(path, cut), &m->dir);
	}
	if (!m->dir_found || !kp_view_lookup(v, m->dir, kp_span_tail(path, cut), &name))
		return false;
	*out = kp_view_name(v, name);
	return true;
}

/*
 * The view keeps one entry for each content, so what it shows at a path may be another entry
 * with the same bytes: then nothing is missing.
 *
 * PATH leads to FILE: write a line unless that has the same bytes as ENTRY of A, as far as
 * the archives say.
 */
static void compare_file(const struct missing *m, struct kp_span path, uint32_t file,
			 struct kpack_archive *a, size_t entry)
{
	size_t shown;
	struct kpack_archive *first = kp_view_entry(m->edition->view, file, &shown);
	struct kp_entry_info info, mine;
	struct kp_meta meta, my_meta;

	if (kp_view_same_content(a, entry, first, shown))
		return;
	kp_archive_entry(a, entry, &mine);
	kp_archive_entry(first, shown, &info);
	kp_archive_meta(a, entry, &my_meta);
	kp_archive_meta(first, shown, &meta);
	if (info.size == mine.size && meta.has_xxh3 && my_meta.has_xxh3 &&
	    memcmp(meta.xxh3, my_meta.xxh3, sizeof(meta.xxh3)) == 0)
		return;
	put_reason(m, path, "%s: other content of %s comes first: %.*s %s",
		   kp_archive_path(a), kp_archive_path(first), (int)info.key.size,
		   (const char *)info.key.data, (const char *)info.arch.data);
}

/* Write a line if PATH is hidden because of subdir=; false: it is not. */
static bool put_hidden(const struct missing *m, struct kp_span path)
{
	const char *dir = m->subdir;
	size_t n = dir ? strlen(dir) : 0;
	struct kp_span below = path;

	if (!dir)
		return false;
	if (n) {
		if (!kp_span_starts(path, dir, n) || path.size <= n ||
		    path.data[n] != '/') {
			put_reason(m, path, "not below subdir=%s", dir);
			return true;
		}
		below = kp_span_tail(path, n + 1);
	} else if (kp_span_starts(below, "toc/", 4)) {
		put_reason(m, path, "subdir=. has no toc");
		return true;
	}
	if (kp_span_is(below, KP_CONTROL_NAME) ||
	    kp_span_starts(below, KP_CONTROL_NAME "/", sizeof(KP_CONTROL_NAME))) {
		put_reason(m, path, "subdir=%s has the mount's own .kpackfs", dir);
		return true;
	}
	return false;
}

static void put_entry(struct missing *m, struct kpack_archive *a, size_t entry)
{
	struct kp_entry_path paths[KP_ENTRY_PATHS];
	size_t count = kp_entry_paths(a, entry, &m->select, paths);
	struct kp_entry_info info;

	kp_archive_entry(a, entry, &info);
	if (m->arch != info.arch.data) {
		m->arch = info.arch.data;
		m->selected = kp_view_selects(&m->select, info.arch);
	}
	for (size_t i = 0; i < count; i++) {
		const struct kp_entry_path *path = &paths[i];
		struct kp_view_name name;

		if (!m->selected)
			put_reason(m, path->text, "architecture %s is not for arch=%s",
				   (const char *)info.arch.data, m->chosen);
		else if (path->fault[0])
			put_reason(m, path->text, "%s: %s", kp_archive_path(a),
				   path->fault);
		else if (put_hidden(m, path->text))
			continue;
		else if (!find_name(m, path->text, &name))
			put_reason(m, path->text,
				   "paths before it have too many directories");
		else if (name.kind == KP_VIEW_DIR)
			put_reason(m, path->text, "%s: a directory has this name",
				   kp_archive_path(a));
		else
			compare_file(m, path->text, name.index, a, entry);
	}
}

/*
 * Write a line for a refused entry, with the path that it would have.  Its type is not
 * known, and its key may be anything.
 */
static void put_fault(const struct missing *m, const struct kpack_archive *a,
		      const struct kp_fault *fault)
{
	struct kp_key key = kp_key_split(fault->key);
	const char *binary = (const char *)key.binary.data;
	const char *arch = (const char *)fault->arch.data;
	struct kp_span shown =
		fault->key.size ? fault->key : kp_span_str(kp_archive_path(a));
	char number[16] = "", *path = NULL;

	if (key.index)
		snprintf(number, sizeof(number), "#%u", key.index);
	if (fault->arch.size && !kp_path_fault(key.binary) &&
	    asprintf(&path, "toc/%.*s/%.*s%s.*", (int)key.binary.size, binary,
		     (int)fault->arch.size, arch, number) >= 0)
		shown = kp_span_str(path);
	else
		path = NULL;
	put_reason(m, shown, "%s: refused: %s", kp_archive_path(a), fault->text);
	free(path);
}

void missing_text_put(FILE *f, const struct edition *e, const struct kp_choice *arches,
		      const char *subdir)
{
	struct missing m = {
		.out = f,
		.edition = e,
		.select = {.select = arches, .bundles = e->bundles},
		.subdir = subdir,
		.dir_found = true, /* the root, whose path is empty */
	};
	char *chosen = arches_line_new(arches, ",");
	size_t kept, counted;

	m.chosen = chosen ? chosen : "auto, which found no GPU";
	for (size_t i = 0; i < e->holdings.count; i++) {
		struct kpack_archive *a = e->archives[i];
		const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

		for (size_t entry = 0; entry < kp_archive_entry_count(a); entry++)
			put_entry(&m, a, entry);
		for (size_t k = 0; k < kept; k++)
			if (faults[k].refused)
				put_fault(&m, a, &faults[k]);
		if (counted > kept)
			put_reason(&m, kp_span_str(kp_archive_path(a)),
				   "and %zu more faults", counted - kept);
	}
	for (size_t i = 0; i < e->holdings.n_refused; i++)
		put_reason(&m, kp_span_str(e->holdings.refused[i].path), "refused: %s",
			   e->holdings.refused[i].text);
	free(chosen);
}
