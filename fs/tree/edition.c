/* SPDX-License-Identifier: MIT */
/*
 * An edition is made of the archives that a survey found: their view (core/view) for the
 * chosen GPUs, the directory that subdir= makes the root, and the inode numbers.  Conflicts
 * that were not logged for the last edition are logged.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "edition.h"
#include "fs/base/log.h"
#include "core/base/alloc.h"
#include "core/archive/naming.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/base/text.h"

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

bool holdings_add(struct holdings *h, struct origin *o)
{
	if (!kp_grow(&h->origins, h->count, &h->cap, sizeof(struct origin *))) {
		origin_unref(o);
		return fail_memory();
	}
	h->origins[h->count++] = o;
	atomic_store(&o->idle, false);
	return true;
}

bool holdings_refuse(struct holdings *h, const char *path, const char *text)
{
	struct refused *r;

	if (!kp_grow(&h->refused, h->n_refused, &h->cap_refused, sizeof(*r)))
		return fail_memory();
	r = &h->refused[h->n_refused++];
	*r = (struct refused){strdup(path), strdup(text)};
	return (r->path && r->text) || fail_memory();
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

/* --- arch= ------------------------------------------------------------------------ */

static bool fail_list(const char *text)
{
	log_about(LOG_ERR, "arch=", text);
	return false;
}

bool arches_add(struct kp_choice *s, const char *list)
{
	struct kpackx_error why = {0};

	return (!kp_choice_add(s, list, &why) &&
		!kp_choice_check(s, KP_CHOICE_ARCHES, &why)) ||
	       fail_list(why.text);
}

bool arches_find(struct kp_choice *s, const char *topology)
{
	struct kpackx_error why = {0};
	struct kp_gpus gpus;
	bool ok;

	if (!s->find || s->all)
		return true;
	kp_gpus_read(topology, &gpus, &why);
	for (size_t i = 0; i < gpus.faults.kept; i++)
		log_print(LOG_WARNING, "%s", gpus.faults.items[i].text);
	if (gpus.count == 0)
		log_print(
			LOG_WARNING, "%s: arch=auto finds no GPU%s%s%s",
			topology ? topology : KP_TOPOLOGY, why.code ? ": " : "", why.text,
			s->count ? "" : "; only files for every architecture are shown");
	ok = !kp_choice_add_found(s, &gpus, &why) || fail_list(why.text);
	kp_gpus_fini(&gpus);
	return ok;
}

/*
 * Log a warning for each named target ID for which no archive has a file: it may be a
 * typing error.  Target IDs that suit every GPU are not checked.  If there was one, or arch=auto found
 * no GPU, log what can be chosen.
 */
static void arches_warn(const struct kp_choice *s, struct kpack_archive *const *archives,
			size_t count)
{
	enum { LISTED_MAX = 32 };
	const char *listed[LISTED_MAX];
	KP_AUTO(kp_compose) line = {0};
	char text[KP_TARGET_TEXT_MAX];
	struct kp_target code;
	bool missing = s->limited && !s->all && !s->count;
	size_t n_listed = 0;

	for (size_t i = 0; i < s->named && !s->all; i++) {
		const struct kp_target *gpu = &s->gpus[i];
		bool served = kp_target_neutral(gpu);

		for (size_t k = 0; k < count && !served; k++) {
			served = !s->exact && kp_archive_serves(archives[k], gpu);
			for (size_t n = 0; s->exact && !served &&
					   n < kp_archive_arch_count(archives[k]);
			     n++)
				served = !kp_target_parse(kp_span_str(kp_archive_arch(
								  archives[k], n)),
							  &code, NULL) &&
					 kp_target_eq(gpu, &code);
		}
		if (served)
			continue;
		kp_target_format(gpu, text);
		log_print(LOG_WARNING, "arch=%s: no archive has a file for it", text);
		missing = true;
	}
	/* what could be meant instead */
	for (size_t k = 0; k < count && missing; k++)
		for (size_t n = 0; n < kp_archive_arch_count(archives[k]); n++) {
			const char *arch = kp_archive_arch(archives[k], n);
			size_t i = 0;

			while (i < n_listed && strcmp(listed[i], arch) != 0)
				i++;
			if (i < n_listed || n_listed == LISTED_MAX)
				continue;
			listed[n_listed++] = arch;
			kp_compose_print(&line, "%s%s", i ? ", " : "", arch);
		}
	if (n_listed && line.text)
		log_print(LOG_WARNING,
			  "choose with -o arch=LIST what the archives have: %s",
			  line.text);
}

char *arches_line_new(const struct kp_choice *s, const char *separator)
{
	struct kp_compose line = {0};
	char target[KP_TARGET_TEXT_MAX], *text;

	if (kp_choice_is_all(s))
		kp_compose_str(&line, "all");
	for (size_t i = 0; i < s->count && !kp_choice_is_all(s); i++) {
		kp_target_format(&s->gpus[i], target);
		kp_compose_print(&line, "%s%s", i ? separator : "", target);
	}
	if (!line.size || kp_compose_take(&line, &text, NULL))
		return NULL;
	return text;
}

/* --- conflicts in the log ------------------------------------------------------------- */

void logged_conflicts_fini(struct logged_conflicts *w)
{
	free(w->now);
	free(w->before);
}

struct conflict_log {
	struct logged_conflicts *known;
	size_t lines; /* lines that may still be logged */
	size_t more;  /* conflicts that were not logged */
};

/*
 * Log TEXT, about the archive O or about none (NULL), unless the last edition had it.  Without
 * memory it is not noted, and logged again.
 */
static void log_conflict(struct conflict_log *l, const struct origin *o, const char *text)
{
	struct logged_conflicts *w = l->known;
	const struct conflict_hash hash = {
		kp_hash64(text, strlen(text), o ? o->serial : 0)};

	if (kp_grow(&w->now, w->n_now, &w->now_cap, sizeof(*w->now)))
		w->now[w->n_now++] = hash;
	if (kp_find(w->before, w->n_before, &hash,
		    KP_BY_NUMBER(struct conflict_hash, value)))
		return;
	if (l->lines == 0)
		l->more++;
	else if (o)
		log_about(LOG_WARNING, kp_archive_path(o->archive), text);
	else
		log_print(LOG_WARNING, "%s", text);
	l->lines -= l->lines > 0;
}

/*
 * Log the refused entries and the conflicts of archives that are served, in a few lines,
 * but not those that were logged for the last edition; KNOWN are then those of this one.
 */
static void log_conflicts(const struct edition *e, struct logged_conflicts *known)
{
	struct conflict_log l = {.known = known, .lines = CONFLICTS_LOGGED};
	size_t kept, counted, textless = 0;
	const char *const *conflicts;

	for (size_t i = 0; i < e->holdings.count; i++) {
		const struct origin *o = e->holdings.origins[i];
		const struct kp_fault *faults =
			kp_archive_faults(o->archive, &kept, &counted);

		for (size_t k = 0; k < kept; k++)
			if (faults[k].refused)
				log_conflict(&l, o, faults[k].text);
		textless += counted - kept;
	}
	conflicts = kp_view_conflicts(e->view, &kept, &counted);
	for (size_t i = 0; i < kept; i++)
		log_conflict(&l, NULL, conflicts[i]);
	textless += counted - kept;
	l.more += textless > known->more ? textless - known->more : 0;
	if (l.more)
		log_print(LOG_WARNING, "and %zu more, see " KP_CONTROL_NAME "/missing",
			  l.more);
	free(known->before);
	kp_sort(known->now, known->n_now, KP_BY_NUMBER(struct conflict_hash, value));
	*known = (struct logged_conflicts){
		.before = known->now, .n_before = known->n_now, .more = textless};
}

/* --- subdir= -------------------------------------------------------------------------- */

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
	const struct kp_view_options options = {.bundles = e->bundles};
	struct kpackx_error why = {0};
	struct kp_view *all, *empty;
	uint32_t dir;
	bool found;

	if (!*path)
		kp_view_hide(e->view, 0, kp_span_str(KP_TOC_NAME));
	if (kp_view_find_dir(e->view, kp_span_str(path), root)) {
		if (kp_view_hide(e->view, *root, kp_span_str(KP_CONTROL_NAME)))
			log_about(LOG_WARNING, path,
				  "its own " KP_CONTROL_NAME " is not shown");
		return true;
	}
	/* does it exist for other architectures? */
	if (kp_view_new(e->archives, e->holdings.count, &options, &all, &why))
		return report_error(&why);
	found = kp_view_find_dir(all, kp_span_str(path), &dir);
	kp_view_free(all);
	if (!found && must_be) {
		log_about(LOG_ERR, path, "subdir= is no directory of any archive");
		return false;
	}
	log_about(LOG_WARNING, path,
		  found ? "has no file for the chosen architectures"
			: "is no directory of any archive any more");
	/* the toc of a view without archives is an empty directory */
	if (kp_view_new(NULL, 0, NULL, &empty, &why))
		return report_error(&why);
	kp_view_free(e->view);
	e->view = empty;
	return kp_view_find_dir(empty, kp_span_str(KP_TOC_NAME), root);
}

/* --- editions ------------------------------------------------------------------------- */

struct edition *edition_new(struct holdings *holdings, const struct edition_options *o,
			    const struct tree_taken *taken)
{
	const struct kp_view_options select = {
		.select = o->arches, .bundles = o->bundles, .shared = o->shared};
	const struct kp_span toc_name = kp_span_str(KP_TOC_NAME);
	struct tree_options look = o->look;
	struct edition *e = calloc(1, sizeof(*e));
	struct kpackx_error why = {0};
	uint32_t toc;

	if (!e) {
		fail_memory();
		holdings_fini(holdings);
		return NULL;
	}
	e->refs = 1;
	e->holdings = *holdings;
	*holdings = (struct holdings){0};
	e->bundles = o->bundles;
	e->shared = o->shared;
	clock_gettime(CLOCK_REALTIME, &e->made);
	if (kp_new(&e->archives, e->holdings.count + 1, "archives", &why))
		goto fail;
	for (size_t i = 0; i < e->holdings.count; i++) {
		e->archives[i] = e->holdings.origins[i]->archive;
		e->bytes += (uint64_t)kp_archive_stat(e->archives[i])->st_size;
	}
	if (kp_view_new(e->archives, e->holdings.count, &select, &e->view, &why))
		goto fail;
	if (o->subdir && !subdir_find(e, o->subdir, o->first, &look.root))
		goto fail;
	look.part = o->subdir;
	/* when GPUs were chosen, no directory without files is shown, not even toc */
	if (!o->subdir && !kp_choice_is_all(o->arches) &&
	    kp_view_find_dir(e->view, toc_name, &toc) &&
	    kp_view_dir(e->view, toc)->count == 0)
		look.part = kp_view_hide(e->view, 0, toc_name);
	/* Directories have the owner of the first archive, the newest time, and the read bits of
	 * all archives together; if users share the mount, its names are for all of them. */
	look.look = e->holdings.look;
	for (size_t i = 0; i < e->holdings.count; i++) {
		const struct stat *st = kp_archive_stat(e->archives[i]);
		mode_t mode = i ? look.look.st_mode : 0;

		if (i == 0)
			look.look = *st;
		else if (is_newer_time(st->st_mtim, look.look.st_mtim))
			look.look.st_mtim = st->st_mtim;
		look.look.st_mode = mode | st->st_mode;
	}
	if (e->shared)
		look.look.st_mode |= 0444;
	if (tree_new(e->view, &look, taken, &e->tree, &why))
		goto fail;
	log_conflicts(e, o->warned);
	if (o->first)
		arches_warn(o->arches, e->archives, e->holdings.count);
	return e;
fail:
	if (why.code)
		report_error(&why);
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

static struct origin_entry entry_of(const struct edition *e, uint32_t file)
{
	size_t entry, archive = kp_view_archive(e->view, file, &entry);

	return (struct origin_entry){e->holdings.origins[archive], entry};
}

bool edition_file(const struct edition *e, uint32_t file, struct file_content *out)
{
	struct kp_view_bundle b;

	*out = (struct file_content){0};
	if (!kp_view_bundle(e->view, file, &b)) {
		out->entry = entry_of(e, file);
		origin_ref(out->entry.origin);
		return true;
	}
	out->bundle = bundle_new(&b);
	if (!out->bundle)
		return false;
	for (uint32_t i = 0; i < b.count; i++)
		bundle_add(out->bundle, entry_of(e, b.parts[i].file), b.parts[i].offset);
	return true;
}
