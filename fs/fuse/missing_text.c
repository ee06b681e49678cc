/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdlib.h>
#include "fs/tree/path_owners.h"
#include "missing_text.h"
#include "core/archive/naming.h"
#include "core/base/text.h"

struct missing {
	FILE *out;
	struct path_owners *claims;
	char *chosen;       /* architectures, separated by commas */
	const char *subdir; /* NULL: the whole tree */
};

static void put_escaped(FILE *f, struct kp_span s)
{
	char *text = kp_text_escape_new(s);

	fputs(text ? text : "?", f);
	free(text);
}

/* Write a line.  REASON is escaped, too, because parts of it come from archives. */
static void put_line(const struct missing *m, struct kp_span path, const char *reason)
{
	put_escaped(m->out, path);
	fputc('\t', m->out);
	put_escaped(m->out, kp_span_str(reason));
	fputc('\n', m->out);
}

static void __attribute__((format(printf, 3, 4)))
put_reason(const struct missing *m, struct kp_span path, const char *format, ...)
{
	char *reason = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&reason, format, args);
	va_end(args);
	put_line(m, path, n < 0 ? "?" : reason);
	if (n >= 0)
		free(reason);
}

/*
 * True if the contents of X and Y have the same bytes, as far as the archives record it.
 */
static bool same_bytes(struct claim x, struct claim y)
{
	struct kp_entry_info x_info, y_info;
	struct kp_meta x_meta, y_meta;

	kp_archive_entry(x.archive, x.entry, &x_info);
	kp_archive_entry(y.archive, y.entry, &y_info);
	if (x_info.size != y_info.size)
		return false;
	if (kp_view_same_content(x.archive, x.entry, y.archive, y.entry))
		return true;
	kp_archive_meta(x.archive, x.entry, &x_meta);
	kp_archive_meta(y.archive, y.entry, &y_meta);
	return x_meta.has_xxh3 && y_meta.has_xxh3 &&
	       memcmp(x_meta.xxh3, y_meta.xxh3, sizeof(x_meta.xxh3)) == 0;
}

static void put_holder(const struct missing *m, struct kp_span path, struct claim mine,
		       struct claim holder)
{
	struct kp_entry_info info;

	if (same_bytes(mine, holder))
		return;
	kp_archive_entry(holder.archive, holder.entry, &info);
	put_reason(m, path, "%s: other content of %s comes first: %.*s %s",
		   kp_archive_path(mine.archive), kp_archive_path(holder.archive),
		   (int)info.key.size, (const char *)info.key.data,
		   (const char *)info.arch.data);
}

/* True if PATH is below DIR, which may be the root. */
static bool is_below(struct kp_span path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 ||
	       (kp_span_starts(path, dir, n) && path.size > n && path.data[n] == '/');
}

/* Write a line if PATH is hidden because of subdir=; false: it is not. */
static bool put_hidden(const struct missing *m, struct kp_span path)
{
	const char *dir = m->subdir;
	struct kp_span below;

	if (!dir)
		return false;
	if (!is_below(path, dir)) {
		put_reason(m, path, "not below subdir=%s", dir);
		return true;
	}
	below = kp_span_tail(path, *dir ? strlen(dir) + 1 : 0);
	if (!*dir && kp_span_starts(below, "toc/", 4))
		put_line(m, path, "subdir=. has no toc");
	else if (kp_span_is(below, KP_CONTROL_NAME) ||
		 kp_span_starts(below, KP_CONTROL_NAME "/", sizeof(KP_CONTROL_NAME)))
		put_reason(m, path, "subdir=%s has the mount's own .kpackfs", dir);
	else
		return false;
	return true;
}

static void put_path(const struct missing *m, struct claim mine,
		     const struct kp_entry_info *info, const struct kp_entry_path *path)
{
	struct claim holder;
	uint32_t name;

	if (!path_owners_selects(m->claims, info->arch))
		put_reason(m, path->text, "architecture %s is not for arch=%s",
			   (const char *)info->arch.data, m->chosen);
	else if (path->fault[0])
		put_reason(m, path->text, "%s: %s", kp_archive_path(mine.archive),
			   path->fault);
	else if (put_hidden(m, path->text))
		return;
	else if (!path_owners_find(m->claims, path->text, &name))
		put_line(m, path->text, "paths before it have too many directories");
	else if (!path_owners_holder(m->claims, name, &holder))
		put_reason(m, path->text, "%s: a directory has this name",
			   kp_archive_path(mine.archive));
	else
		put_holder(m, path->text, mine, holder);
}

static void put_entries(const struct missing *m, struct kpack_archive *a)
{
	struct kp_entry_path paths[KP_ENTRY_PATHS];
	size_t n = kp_archive_entry_count(a);

	for (size_t entry = 0; entry < n; entry++) {
		struct claim mine = {a, entry};
		struct kp_entry_info info;
		size_t count = path_owners_paths(m->claims, a, entry, paths);

		kp_archive_entry(a, entry, &info);
		for (size_t i = 0; i < count; i++)
			put_path(m, mine, &info, &paths[i]);
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
	bool named = fault->arch.size && !kp_path_fault(key.binary);
	char *path = NULL;
	int n = -1;

	if (named && key.index)
		n = asprintf(&path, "toc/%.*s/%.*s#%u.*", (int)key.binary.size,
			     (const char *)key.binary.data, (int)fault->arch.size,
			     (const char *)fault->arch.data, key.index);
	else if (named)
		n = asprintf(&path, "toc/%.*s/%.*s.*", (int)key.binary.size,
			     (const char *)key.binary.data, (int)fault->arch.size,
			     (const char *)fault->arch.data);
	put_reason(m,
		   n >= 0            ? kp_span_str(path)
		   : fault->key.size ? fault->key
				     : kp_span_str(kp_archive_path(a)),
		   "%s: refused: %s", kp_archive_path(a), fault->text);
	if (n >= 0)
		free(path);
}

static void put_faults(const struct missing *m, const struct kpack_archive *a)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		if (faults[i].refused)
			put_fault(m, a, &faults[i]);
	if (counted > kept)
		put_reason(m, kp_span_str(kp_archive_path(a)), "and %zu more faults",
			   counted - kept);
}

static void put_refused(const struct missing *m, const struct refused *r)
{
	put_reason(m, kp_span_str(r->path), "refused: %s", r->text);
}

/* The chosen architectures, or a text that says that there are none; NULL: no memory. */
static char *chosen_new(const struct kp_choice *arches)
{
	char *text = arches_line_new(arches, ",");

	return text ? text : strdup("auto, which found no GPU");
}

bool missing_put(FILE *f, const struct edition *e, const struct kp_choice *arches,
		 const char *subdir)
{
	struct missing m = {
		.out = f,
		.claims = path_owners_new(e, arches),
		.chosen = chosen_new(arches),
		.subdir = subdir,
	};
	bool ok = m.claims && m.chosen;

	for (size_t i = 0; ok && i < e->holdings.count; i++) {
		put_entries(&m, e->archives[i]);
		put_faults(&m, e->archives[i]);
	}
	for (size_t i = 0; ok && i < e->holdings.n_refused; i++)
		put_refused(&m, &e->holdings.refused[i]);
	path_owners_free(m.claims);
	free(m.chosen);
	return ok;
}
