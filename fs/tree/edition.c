/* SPDX-License-Identifier: MIT */
/*
 * An edition is made of the archives that a survey found: their view (core/view), the
 * directory that subdir= makes the root, and the inode numbers.  Conflicts that were not
 * logged for the last edition are logged.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "edition.h"
#include "fs/base/log.h"
#include "core/base/alloc.h"
#include "core/archive/naming.h"
#include "core/base/hash.h"
#include "core/base/span.h"

/* The most conflicts of one edition that are logged, each in a line. */
#define CONFLICTS_LOGGED 20

/* --- holdings --------------------------------------------------------------------- */

static bool fail_memory(void)
{
	log_print(LOG_ERR, "out of memory");
	return false;
}

static bool report_error(const struct kpackx_error *why)
{
	log_print(LOG_ERR, "%s", why->text);
	return false;
}

/* Grow ARRAY by one element, by doubling at powers of two. */
static void *grown_array(void *array, size_t count, size_t element)
{
	if (count & (count - 1))
		return array;
	return reallocarray(array, count ? 2 * count : 1, element);
}

bool holdings_add(struct holdings *h, struct origin *o)
{
	struct origin **list = grown_array(h->origins, h->count, sizeof(struct origin *));

	if (!list) {
		origin_unref(o);
		return fail_memory();
	}
	h->origins = list;
	list[h->count++] = o;
	atomic_store(&o->idle, false);
	return true;
}

bool holdings_refuse(struct holdings *h, const char *path, const char *text)
{
	struct refused *list = grown_array(h->refused, h->n_refused, sizeof(*list));
	struct refused *r;

	if (!list)
		return fail_memory();
	h->refused = list;
	r = &list[h->n_refused];
	r->path = strdup(path);
	r->text = strdup(text);
	h->n_refused++;
	return r->path && r->text ? true : fail_memory();
}

void holdings_fini(struct holdings *h)
{
	for (size_t i = 0; i < h->count; i++)
		origin_unref(h->origins[i]);
	for (size_t i = 0; i < h->n_refused; i++) {
		free(h->refused[i].path);
		free(h->refused[i].text);
	}
	free(h->origins);
	free(h->refused);
	*h = (struct holdings){0};
}

/* --- building --------------------------------------------------------------------- */

/*
 * Attributes for directories: the owner of the first archive, the newest time, and the read
 * bits of all archives together; if users share the mount, its names are for all of them.
 */
static struct stat look_of_dirs(const struct edition *e)
{
	struct stat look = e->holdings.look;

	for (size_t i = 0; i < e->holdings.count; i++) {
		const struct stat *st = kp_archive_stat(e->archives[i]);
		mode_t mode = i ? look.st_mode : 0;

		if (i == 0)
			look = *st;
		else if (is_newer_time(st->st_mtim, look.st_mtim))
			look.st_mtim = st->st_mtim;
		look.st_mode = mode | st->st_mode;
	}
	if (e->shared)
		look.st_mode |= 0444;
	return look;
}

static bool list_archives(struct edition *e)
{
	e->archives = calloc(e->holdings.count + 1, sizeof(struct kpack_archive *));
	if (!e->archives)
		return fail_memory();
	for (size_t i = 0; i < e->holdings.count; i++) {
		e->archives[i] = e->holdings.origins[i]->archive;
		e->bytes += (uint64_t)kp_archive_stat(e->archives[i])->st_size;
	}
	return true;
}

/* When GPUs were chosen, no directory without files is shown, not even toc. */
static bool hide_empty_toc(struct kp_view *v)
{
	const struct kp_span name = kp_span_str(KP_TOC_NAME);
	uint32_t toc;

	return kp_view_find_dir(v, name, &toc) && kp_view_dir(v, toc)->count == 0 &&
	       kp_view_hide(v, 0, name);
}

/* --- conflicts in the log ------------------------------------------------------------- */

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return KP_ORDER(x, y);
}

/*
 * Note that the new edition has the conflict TEXT, about the archive SERIAL (0: about
 * none).  True if the last edition had it, too.
 * Without memory it is not noted, and logged again.
 */
static bool conflict_was_logged(struct logged_conflicts *w, uint32_t serial,
				const char *text)
{
	uint64_t hash = kp_hash64(text, strlen(text), serial);

	if (!w)
		return false;
	if (kp_grow(&w->now, w->n_now, &w->now_cap, sizeof(*w->now)))
		w->now[w->n_now++] = hash;
	return w->n_before &&
	       bsearch(&hash, w->before, w->n_before, sizeof(hash), by_hash);
}

/*
 * End the new edition, which also has MORE conflicts without text; it becomes the last
 * one.  Returns by how many MORE exceeds that number of the last edition.
 */
static size_t end_logged_conflicts(struct logged_conflicts *w, size_t more)
{
	size_t fresh;

	if (!w)
		return more;
	fresh = more > w->more ? more - w->more : 0;
	free(w->before);
	if (w->n_now)
		qsort(w->now, w->n_now, sizeof(*w->now), by_hash);
	*w = (struct logged_conflicts){
		.before = w->now, .n_before = w->n_now, .more = more};
	return fresh;
}

void logged_conflicts_fini(struct logged_conflicts *w)
{
	free(w->now);
	free(w->before);
}

struct conflict_log {
	struct logged_conflicts *warned;
	size_t lines; /* lines that may still be logged */
	size_t more;  /* conflicts that were not logged */
};

/* Log TEXT, about the archive O or about none (NULL), unless the last edition had it. */
static void log_conflict(struct conflict_log *l, const struct origin *o, const char *text)
{
	if (conflict_was_logged(l->warned, o ? o->serial : 0, text))
		return;
	if (l->lines == 0)
		l->more++;
	else if (o)
		log_about(LOG_WARNING, kp_archive_path(o->archive), text);
	else
		log_print(LOG_WARNING, "%s", text);
	l->lines -= l->lines > 0;
}

/* Log the refused entries of the archive O.  Returns how many faults have no text. */
static size_t log_refused(struct conflict_log *l, const struct origin *o)
{
	size_t n, all;
	const struct kp_fault *faults = kp_archive_faults(o->archive, &n, &all);

	for (size_t i = 0; i < n; i++)
		if (faults[i].refused)
			log_conflict(l, o, faults[i].text);
	return all - n;
}

/*
 * Log the refused entries and the conflicts of archives that are served, in a few lines.
 */
static void log_conflicts(const struct edition *e, struct logged_conflicts *warned)
{
	struct conflict_log l = {.warned = warned, .lines = CONFLICTS_LOGGED};
	size_t kept, counted, textless = 0;
	const char *const *conflicts = kp_view_conflicts(e->view, &kept, &counted);

	for (size_t i = 0; i < e->holdings.count; i++)
		textless += log_refused(&l, e->holdings.origins[i]);
	for (size_t i = 0; i < kept; i++)
		log_conflict(&l, NULL, conflicts[i]);
	l.more += end_logged_conflicts(warned, textless + counted - kept);
	if (l.more)
		log_print(LOG_WARNING, "and %zu more, see " KP_CONTROL_NAME "/missing",
			  l.more);
}

/* --- subdir= -------------------------------------------------------------------------- */

const char *subdir_clean(char *text)
{
	char *to = text;

	if (!*text)
		return "is empty; use . for the root without toc";
	for (const char *from = text; *from;) {
		size_t n = strcspn(from, "/");

		if (n == 2 && memcmp(from, "..", 2) == 0)
			return "may not have a component ..";
		if (n && !(n == 1 && *from == '.')) {
			if (to != text)
				*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n + (from[n] == '/');
	}
	*to = '\0';
	return NULL;
}

/* FOUND: PATH exists when every architecture is shown.  false: it failed; logged. */
static bool is_anywhere(const struct edition *e, const char *path, bool *found)
{
	const struct kp_view_options options = {.bundles = e->bundles};
	struct kpackx_error why = {0};
	struct kp_view *all;
	uint32_t dir;

	if (kp_view_new(e->archives, e->holdings.count, &options, &all, &why))
		return report_error(&why);
	*found = kp_view_find_dir(all, kp_span_str(path), &dir);
	kp_view_free(all);
	return true;
}

/*
 * Replace *VIEW by a view without archives; *ROOT becomes its toc, which is an empty
 * directory.
 */
static bool make_empty(struct kp_view **view, uint32_t *root)
{
	struct kpackx_error why = {0};
	struct kp_view *empty;

	if (kp_view_new(NULL, 0, NULL, &empty, &why))
		return report_error(&why);
	kp_view_free(*view);
	*view = empty;
	return kp_view_find_dir(empty, kp_span_str(KP_TOC_NAME), root);
}

/*
 * Find the directory PATH, which is clean, in E's view.  An empty PATH is the root
 * without toc.  A .kpackfs that an archive has in PATH is hidden, with a warning: the
 * mount has its own.  If PATH does not exist, or only for architectures that are not
 * shown, the view is replaced by an empty one and ROOT is an empty directory in it, with
 * a warning.  false: MUST_BE and PATH does not exist for any architecture, or no memory;
 * logged.
 */
static bool subdir_find(struct edition *e, const char *path, bool must_be, uint32_t *root)
{
	bool found = false;

	if (!*path)
		kp_view_hide(e->view, 0, kp_span_str(KP_TOC_NAME));
	if (kp_view_find_dir(e->view, kp_span_str(path), root)) {
		if (kp_view_hide(e->view, *root, kp_span_str(KP_CONTROL_NAME)))
			log_about(LOG_WARNING, path,
				  "its own " KP_CONTROL_NAME " is not shown");
		return true;
	}
	if (!is_anywhere(e, path, &found))
		return false;
	if (!found && must_be) {
		log_about(LOG_ERR, path, "subdir= is no directory of any archive");
		return false;
	}
	log_about(LOG_WARNING, path,
		  found ? "has no file for the chosen architectures"
			: "is no directory of any archive any more");
	return make_empty(&e->view, root);
}

/* --- editions ------------------------------------------------------------------------- */

static bool build_edition(struct edition *e, const struct edition_options *o,
			  const struct tree_taken *taken)
{
	const struct kp_view_options select = {
		.select = o->arches, .bundles = o->bundles, .shared = o->shared};
	struct tree_options look = o->look;
	struct kpackx_error why = {0};

	e->bundles = o->bundles;
	e->shared = o->shared;
	if (!list_archives(e))
		return false;
	if (kp_view_new(e->archives, e->holdings.count, &select, &e->view, &why))
		return report_error(&why);
	if (o->subdir && !subdir_find(e, o->subdir, o->first, &look.root))
		return false;
	look.part =
		o->subdir || (!kp_choice_is_all(o->arches) && hide_empty_toc(e->view));
	look.look = look_of_dirs(e);
	if (tree_new(e->view, &look, taken, &e->tree, &why))
		return report_error(&why);
	log_conflicts(e, o->warned);
	if (o->first)
		arches_warn(o->arches, e->archives, e->holdings.count);
	return true;
}

struct edition *edition_new(struct holdings *holdings,
			    const struct edition_options *options,
			    const struct tree_taken *taken)
{
	struct edition *e = calloc(1, sizeof(*e));

	if (!e) {
		fail_memory();
		holdings_fini(holdings);
		return NULL;
	}
	e->refs = 1;
	e->holdings = *holdings;
	*holdings = (struct holdings){0};
	clock_gettime(CLOCK_REALTIME, &e->made);
	if (build_edition(e, options, taken))
		return e;
	edition_unref(e);
	return NULL;
}

struct edition *edition_ref(struct edition *e)
{
	atomic_fetch_add(&e->refs, 1);
	return e;
}

void edition_unref(struct edition *e)
{
	if (!e || atomic_fetch_sub(&e->refs, 1) > 1)
		return;
	tree_free(e->tree);
	kp_view_free(e->view);
	free(e->archives);
	holdings_fini(&e->holdings);
	free(e);
}

struct origin_entry edition_entry(const struct edition *e, uint32_t file)
{
	size_t entry, archive = kp_view_archive(e->view, file, &entry);

	return (struct origin_entry){e->holdings.origins[archive], entry};
}

bool edition_file(const struct edition *e, uint32_t file, struct file_content *out)
{
	struct kp_view_bundle b;

	*out = (struct file_content){0};
	if (!kp_view_bundle(e->view, file, &b)) {
		out->entry = edition_entry(e, file);
		origin_ref(out->entry.origin);
		return true;
	}
	out->bundle = bundle_new(&b);
	if (!out->bundle)
		return false;
	for (uint32_t i = 0; i < b.count; i++)
		bundle_add(out->bundle, edition_entry(e, b.parts[i].file),
			   b.parts[i].offset);
	return true;
}
