/* SPDX-License-Identifier: MIT */
/*
 * An entry of the cache goes through these states, all changes with the lock held:
 *
 *	opening  listed, without an archive; made by the first thread that asks for the file, which
 *	         opens it without the lock, while others that want the same file wait for it
 *	open     listed, with its archive, and users that count
 *	failed   not listed; those that waited take the reason, and the last of them frees it
 *	retired  not listed, because another file is at its path now; its users keep the archive, and
 *	         the last of them frees it
 *
 * An entry without users stays listed: a program loads its code objects one after the other.
 */
#include "archive_cache.h"
#include <errno.h>
#include <stdlib.h>
#include "core/base/lock.h"

struct kp_cached {
	struct kp_cached *next;
	char *path;     /* as given when it was opened */
	struct stat st; /* identifies the file */
	unsigned users;
	bool listed;
	bool opening;
	pthread_t opener;              /* the thread that opens it, or did */
	struct kpack_archive *archive; /* NULL: being opened, or failed */
	struct kpackx_error why;       /* of the failure */
};

static void settle_in_child(void);

/* Guards everything below, in all caches, except in entries what only their users read. */
KP_LOCK(lock, KP_LOCK_INNER, settle_in_child)
static struct kp_cache *living; /* all caches */

/* ---- from init to fini ---- */

kpack_error_t kp_cache_init(struct kp_cache *c, struct kpackx_error *why)
{
	KP_TRY(kp_locks_check(why));
	c->first = NULL;
	kp_lock_take(&lock);
	c->next = living;
	living = c;
	kp_lock_give(&lock);
	return KPACK_SUCCESS;
}

static void entry_free(struct kp_cached *e)
{
	if (!e)
		return;
	kp_archive_close(e->archive);
	free(e->path);
	free(e);
}

void kp_cache_fini(struct kp_cache *c)
{
	struct kp_cache **at = &living;

	kp_lock_take(&lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	kp_lock_give(&lock);
	while (c->first) {
		struct kp_cached *e = c->first;

		c->first = e->next;
		entry_free(e);
	}
}

/* ---- the list; with the lock held ---- */

static void unlist_entry(struct kp_cache *c, struct kp_cached *e)
{
	struct kp_cached **at = &c->first;

	if (!e->listed)
		return;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	e->listed = false;
}

/*
 * In a child of fork(), remove the entries that other threads of the parent were opening: no
 * thread here will finish that.
 */
static void settle_in_child(void)
{
	for (struct kp_cache *c = living; c; c = c->next)
		for (struct kp_cached *e = c->first, *next; e; e = next) {
			next = e->next;
			if (e->opening && !pthread_equal(e->opener, pthread_self()))
				unlist_entry(c, e);
		}
}

/*
 * Unlist the entry that PATH led to before KEEP; return it to be freed, or NULL if it is
 * in use.
 */
static struct kp_cached *retire_entry(struct kp_cache *c, const char *path,
				      const struct kp_cached *keep)
{
	for (struct kp_cached *e = c->first; e; e = e->next) {
		if (e == keep || e->opening || strcmp(e->path, path) != 0)
			continue;
		unlist_entry(c, e);
		return e->users ? NULL : e;
	}
	return NULL;
}

/* ---- opening ---- */

/*
 * Return the entry of the file with ST or, if ST is NULL because nothing is at PATH, of the file that
 * was opened at PATH before.  A relative path may have led elsewhere then, so it never matches.
 * *FRESH becomes true if the entry is new; then the caller opens it.  NULL: no entry, or
 * no memory for one.
 */
static struct kp_cached *enter_path(struct kp_cache *c, const char *path,
				    const struct stat *st, bool *fresh)
{
	struct kp_cached *e, *old = NULL;

	kp_lock_take(&lock);
	for (e = c->first; e; e = e->next) {
		if (!st && path[0] == '/' && !e->opening && strcmp(e->path, path) == 0)
			break;
		if (st && e->st.st_ino == st->st_ino && e->st.st_dev == st->st_dev &&
		    e->st.st_size == st->st_size &&
		    e->st.st_mtim.tv_sec == st->st_mtim.tv_sec &&
		    e->st.st_mtim.tv_nsec == st->st_mtim.tv_nsec)
			break;
	}
	*fresh = !e;
	if (e) {
		e->users++; /* so that it stays while the lock is away */
		while (e->opening)
			kp_lock_wait(&lock);
		if (e->listed) /* E may have failed or been replaced meanwhile */
			old = retire_entry(c, path, e);
	} else if (st && (e = calloc(1, sizeof(*e)))) {
		e->path = strdup(path);
		e->st = *st;
		e->users = 1;
		e->listed = e->opening = true;
		e->opener = pthread_self();
		e->next = c->first;
		if (e->path) {
			c->first = e;
		} else {
			old = e;
			e = NULL;
		}
	}
	kp_lock_give(&lock);
	entry_free(old);
	return e;
}

kpack_error_t kp_cache_get(struct kp_cache *c, const char *path, struct kp_cached **out,
			   struct kpackx_error *why)
{
	struct kpack_archive *archive = NULL;
	struct kpackx_error reason = {0};
	struct kp_cached *old = NULL, *e = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	bool fresh, missing;
	struct stat st;

	missing = stat(path, &st) != 0;
	if (missing)
		err = kp_fail_errno(&reason, errno, "cannot open");
	else if (!(e = enter_path(c, path, &st, &fresh)))
		err = kp_fail_memory(&reason, sizeof(*e), "an open archive");
	/*
	 * Who made the entry opens the archive without the lock, since that reads the disk, and
	 * others load from other archives meanwhile.
	 */
	if (e && fresh) {
		err = kp_archive_open(e->path, &archive, &reason);
		kp_lock_take(&lock);
		e->opening = false;
		if (err) {
			e->why = reason;
			unlist_entry(c, e);
		} else {
			e->archive = archive;
			/* may be another file than before */
			e->st = *kp_archive_stat(archive);
			old = retire_entry(c, e->path, e);
		}
		kp_lock_wake(&lock);
		kp_lock_give(&lock);
		entry_free(old);
	}
	if (e && !e->archive) {
		err = e->why.code;
		reason = e->why;
		kp_cache_put(e);
		e = NULL;
	}
	/* the file may also disappear between stat and open */
	if (missing || err == KPACK_ERROR_FILE_NOT_FOUND)
		e = enter_path(c, path, NULL, &fresh);
	if (e)
		*out = e;
	else if (why)
		*why = reason;
	return e ? KPACK_SUCCESS : err;
}

void kp_cache_put(struct kp_cached *e)
{
	bool last;

	if (!e)
		return;
	kp_lock_take(&lock);
	last = --e->users == 0 && !e->listed;
	kp_lock_give(&lock);
	if (last)
		entry_free(e);
}

struct kpack_archive *kp_cached_archive(const struct kp_cached *e)
{
	return e->archive;
}
