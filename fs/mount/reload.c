/* SPDX-License-Identifier: MIT */
/*
 * A survey comes in as one message for each archive, and a last one.  An archive that is
 * fresh is opened from the descriptor in its message; any other is known from the last
 * survey by its serial.  Then an edition is made of all of them, and takes the place of
 * the one that is shown; what is open of the old one lives on in retired inodes.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "fs/base/process_link.h"
#include "fs/base/log.h"
#include "reload.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "fs/tree/edition.h"

/*
 * A file that was last written to less than this many seconds ago is likely being copied.
 */
#define YOUNG 10

/* Descriptors that archives must leave to threads, logs and memory pressure. */
#define FDS_LEFT 64

/* The archive of a serial, or the reason why it is refused. */
struct known {
	uint32_t serial;
	struct origin *origin; /* NULL: refused */
	char *path, *text;     /* refused: the path, and the reason */
};

/* A survey, sorted by serial when it is complete. */
struct list {
	struct known *items;
	size_t count, cap;
};

struct reload {
	int link;
	struct edition_options look;
	struct fs *fs;
	pthread_t thread;
	bool runs, first;
	bool wanting; /* the survey that is coming in lacks descriptors */
	bool again;   /* that survey was asked for because the last one lacked some */
	int fd_end;   /* archives use descriptors below this one only */
	atomic_bool stopped;
	struct list now;  /* the last survey, sorted by serial */
	struct list next; /* the survey that is coming in, in order of precedence */
	struct logged_conflicts warned;
	struct link_buffer room;
	char *heap; /* its end before the first survey */
};

static void list_free(struct list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		origin_unref(l->items[i].origin);
		free(l->items[i].path);
		free(l->items[i].text);
	}
	free(l->items);
	*l = (struct list){0};
}

static bool fail_memory(void)
{
	log_print(LOG_ERR, "out of memory");
	return false;
}

struct reload *reload_new(int link, const struct edition_options *look, struct fs *fs)
{
	struct reload *r = calloc(1, sizeof(*r));
	struct rlimit limit;

	if (!r) {
		fail_memory();
		return NULL;
	}
	r->link = link;
	r->look = *look;
	r->fs = fs;
	r->first = true;
	r->fd_end = INT_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= INT_MAX)
		r->fd_end = (int)limit.rlim_cur - (limit.rlim_cur < 4 * FDS_LEFT
							   ? (int)limit.rlim_cur / 4
							   : FDS_LEFT);
	/* malloc_trim returns the unused end of the first heap only: all threads use it */
	mallopt(M_ARENA_MAX, 1);
	r->heap = sbrk(0);
	return r;
}

/* --- surveys -------------------------------------------------------------------------- */

static const struct known *find_known(const struct list *l, uint32_t serial)
{
	const struct known probe = {.serial = serial};

	return kp_find(l->items, l->count, &probe, KP_BY_NUMBER(struct known, serial));
}

/* Add K to the survey that is coming in, and take over what it has. */
static bool keep_known(struct reload *r, struct known k)
{
	struct list *l = &r->next;

	if (!kp_grow(&l->items, l->count, &l->cap, sizeof(*l->items))) {
		origin_unref(k.origin);
		free(k.path);
		free(k.text);
		return fail_memory();
	}
	l->items[l->count++] = k;
	return true;
}

static bool refuse_archive(struct reload *r, const struct link_message *m,
			   const char *text)
{
	struct known k = {
		.serial = m->serial,
		.path = strdup(m->path),
		.text = strdup(text),
	};

	return keep_known(r, k) && ((k.path && k.text) || fail_memory());
}

/*
 * Why the archive FD is left out of a mount that users share; NULL: it is shown.  The kernel
 * checks the mode of each file, but lets everybody see the names, and knows no access control
 * list.  Who states uid=, gid= or umask= has decided for all archives.
 */
static const char *unshared_reason(const struct reload *r, int fd)
{
	const struct tree_options *look = &r->look.look;
	struct stat st;

	if (!r->look.shared || look->uid != (uid_t)-1 || look->gid != (gid_t)-1 ||
	    look->mask)
		return NULL;
	if (fstat(fd, &st))
		return strerror(errno);
	if (!(st.st_mode & 0044))
		return "only its owner may read it, and users share the mount; with "
		       "uid=, "
		       "gid= or umask= it is shown";
	if (fgetxattr(fd, "system.posix_acl_access", NULL, 0) >= 0 ||
	    (errno != ENODATA && errno != EOPNOTSUPP && errno != ENOSYS))
		return "it has an access control list, and users share the mount; with "
		       "uid=, gid= or umask= it is shown";
	return NULL;
}

/*
 * The intact origin of the same file, which is open already; or NULL.  If users share the
 * mount, a file with other readers than before is not the same.
 */
static struct origin *still_served(const struct reload *r, const struct link_message *m)
{
	const struct known *old =
		m->number ? find_known(&r->now, (uint32_t)m->number) : NULL;
	struct origin *o = old ? old->origin : NULL;
	const struct stat *was;
	struct stat now;

	if (!o || !origin_intact(o))
		return NULL;
	if (!r->look.shared)
		return o;
	was = kp_archive_stat(o->archive);
	if (fstat(kp_archive_fd(o->archive), &now) || now.st_uid != was->st_uid ||
	    now.st_gid != was->st_gid || now.st_mode != was->st_mode ||
	    unshared_reason(r, kp_archive_fd(o->archive)))
		return NULL;
	return o;
}

/*
 * Refuse a fresh archive.  But if the same file is served already, and just its
 * attributes are new, it stays, with the old attributes.
 */
static bool refuse_fresh(struct reload *r, const struct link_message *m, bool young,
			 const char *text)
{
	const struct link_message answer = {
		.word = LINK_REFUSED, .serial = m->serial, .fd = -1};
	struct origin *served = still_served(r, m);

	log_about(r->first ? LOG_ERR : young ? LOG_INFO : LOG_WARNING, m->path, text);
	if (m->serial)
		link_send_all(r->link, &answer);
	if (served)
		return keep_known(r, (struct known){.serial = m->serial,
						    .origin = origin_ref(served)});
	return refuse_archive(r, m, text);
}

static bool take_fresh(struct reload *r, const struct link_message *m)
{
	struct known k = {.serial = m->serial};
	struct kpackx_error why = {0};
	const char *reason;
	struct stat st;
	bool young;

	if (m->fd < 0 || m->fd >= r->fd_end) {
		if (m->fd >= 0)
			close(m->fd);
		r->wanting = r->wanting || !m->text[0];
		return refuse_fresh(r, m, false,
				    m->text[0] ? m->text : "too many open files");
	}
	reason = unshared_reason(r, m->fd);
	if (reason) {
		close(m->fd);
		return refuse_fresh(r, m, false, reason);
	}
	/* an unfinished copy, which was written to just now, is no fault */
	young = !r->first && fstat(m->fd, &st) == 0 &&
		time(NULL) - st.st_mtim.tv_sec < YOUNG;
	if (origin_new(m->fd, m->path, &k.origin, &why))
		return refuse_fresh(r, m, young, why.text);
	return keep_known(r, k);
}

static bool take_archive(struct reload *r, const struct link_message *m)
{
	/* An item without a serial has its reason in each survey. */
	const struct known *old = m->serial ? find_known(&r->now, m->serial) : NULL;

	if (m->fresh)
		return take_fresh(r, m);
	if (m->fd >= 0)
		close(m->fd);
	/* it is as it was in the last survey */
	if (old && old->origin)
		return keep_known(r, (struct known){.serial = m->serial,
						    .origin = origin_ref(old->origin)});
	return refuse_archive(r, m, old ? old->text : m->text);
}

/*
 * Building allocates and frees large blocks.  Meanwhile freed blocks are kept for reuse,
 * because the system has to clear new ones; afterwards the unused memory of the heap goes
 * back to the system.
 */
static void keep_memory(struct reload *r, bool building)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *begin = r->heap + (page - (uintptr_t)r->heap % page) % page, *end;

	mallopt(M_MMAP_THRESHOLD, building ? 32 << 20 : 4 << 20);
	mallopt(M_TRIM_THRESHOLD, building ? INT_MAX : 4 << 20);
	if (building)
		return;
	malloc_trim(0);
	end = sbrk(0);
	/* Where a table was that asked for huge pages, the kernel would later fill what is
	 * unused with a huge page again, so that wish is withdrawn: huge pages that exist
	 * stay.  It is only advice. */
	if (end > begin)
		madvise(begin, (size_t)(end - begin), MADV_NOHUGEPAGE);
}

static struct edition *make_edition(struct reload *r, const struct link_message *m)
{
	const struct tree_taken taken = {inodes_taken, r->fs->inodes};
	struct edition_options look = r->look;
	struct holdings h = {.look = m->st};
	bool ok = true;

	look.first = r->first;
	look.warned = &r->warned;
	for (size_t i = 0; ok && i < r->next.count; i++) {
		const struct known *k = &r->next.items[i];

		ok = k->origin ? holdings_add(&h, origin_ref(k->origin))
			       : holdings_refuse(&h, k->path, k->text);
	}
	if (ok && r->first && h.count == 0 && h.n_refused) {
		log_print(LOG_ERR, "none of %zu archives can be served", h.n_refused);
		ok = false;
	}
	if (ok)
		return edition_new(&h, &look, r->first ? NULL : &taken);
	holdings_fini(&h);
	return NULL;
}

/* The survey that came in becomes the last one, even if its edition failed. */
static void turn_over_survey(struct reload *r)
{
	list_free(&r->now);
	r->now = r->next;
	r->next = (struct list){0};
	kp_sort(r->now.items, r->now.count, KP_BY_NUMBER(struct known, serial));
}

/* --- the thread ----------------------------------------------------------------------- */

/* Show NEXT from now on, taking over the caller's reference.  false: it failed; logged. */
static bool show_edition(struct fs *fs, struct edition *next, size_t *names)
{
	struct invalidation notices = {.session = fs->session};
	struct change text = {.what = CHANGED_NAME, .ino = CONTROL_DIR};
	struct edition *last = inodes_edition(fs->inodes);
	bool ok = inodes_swap(fs->inodes, next, invalidate_send, &notices, names);
	const char *name;

	if (ok)
		control_renew(fs->control);
	/* without this the kernel may keep a text for long, though its name has no validity */
	for (size_t i = 0; ok && (name = control_name(i)); i++) {
		snprintf(text.name, sizeof(text.name), "%s", name);
		invalidate_send(&notices, &text);
	}
	/* last: archives that are closed now may be deleted files, and the disk takes its
	 * time */
	edition_unref(last);
	return ok;
}

static void take_survey(struct reload *r, const struct link_message *m)
{
	char text[128] = "cannot show the changed sources; the mount stays as it was";
	struct link_message taken = {.word = LINK_TAKEN, .fd = -1, .text = text};
	const struct link_message again = {.word = LINK_RESCAN, .number = 1, .fd = -1};
	struct edition *e;
	size_t names = 0;

	keep_memory(r, true);
	e = make_edition(r, m);
	turn_over_survey(r);
	if (e && show_edition(r->fs, edition_ref(e), &names)) {
		snprintf(text, sizeof(text), "%zu archives, %u files, %zu names changed",
			 e->holdings.count, tree_file_count(e->tree), names);
		taken.number = names;
	}
	edition_unref(e);
	link_send_all(r->link, &taken);
	/* If descriptors were lacking, ask for one more survey, once: those that were closed
	 * meanwhile may be enough. */
	r->again = r->wanting && !r->again;
	r->wanting = false;
	if (r->again)
		link_send_all(r->link, &again);
	keep_memory(r, false);
}

/*
 * An archive for which there is no memory is missing in the next edition: better than
 * none.
 */
static void take_message(struct reload *r, const struct link_message *m)
{
	struct link_message pong = {.word = LINK_PONG, .fd = -1};

	switch (m->word) {
	case LINK_ARCHIVE:
		take_archive(r, m);
		break;
	case LINK_SURVEYED:
		take_survey(r, m);
		break;
	case LINK_SEEN:
		/* If descriptors were lacking and a further survey was asked for, the look
		 * is not complete: another one takes that survey. */
		if (!r->again || !reload_look(r))
			control_seen(r->fs->control, m->number != 0);
		break;
	case LINK_PING:
		pong.number = atomic_load(&r->fs->requests);
		link_send_all(r->link, &pong);
		break;
	case LINK_LEAVING:
		atomic_store(&r->stopped, true);
		break;
	default:
		break;
	}
}

static void *receive_messages(void *arg)
{
	struct reload *r = arg;
	struct link_message m;
	enum link_result got;

	while ((got = link_receive(r->link, true, &r->room, &m)) != LINK_OVER)
		if (got == LINK_DONE)
			take_message(r, &m);
	if (!atomic_load(&r->stopped))
		log_print(LOG_ERR, "the supervisor has gone: changes of the sources will "
				   "not be noticed");
	control_unwatched(r->fs->control);
	return NULL;
}

struct edition *reload_first(struct reload *r)
{
	struct edition *first;
	struct link_message m;
	enum link_result got;

	keep_memory(r, true);
	do {
		got = link_receive(r->link, true, &r->room, &m);
		if (got == LINK_OVER)
			return NULL;
		if (got == LINK_DONE && m.word == LINK_ARCHIVE && !take_archive(r, &m))
			return NULL;
	} while (got != LINK_DONE || m.word != LINK_SURVEYED);
	first = make_edition(r, &m);
	turn_over_survey(r);
	r->first = r->wanting = false;
	keep_memory(r, false);
	return first;
}

bool reload_start(struct reload *r)
{
	int err = pthread_create(&r->thread, NULL, receive_messages, r);

	if (err)
		log_about(LOG_ERR, "thread", strerror(err));
	r->runs = !err;
	return r->runs;
}

void reload_free(struct reload *r)
{
	if (!r)
		return;
	atomic_store(&r->stopped, true);
	shutdown(r->link, SHUT_RDWR);
	if (r->runs)
		pthread_join(r->thread, NULL);
	close(r->link);
	list_free(&r->now);
	list_free(&r->next);
	logged_conflicts_fini(&r->warned);
	free(r);
}

void reload_rescan(const struct reload *r)
{
	const struct link_message m = {.word = LINK_RESCAN, .fd = -1};

	link_send(r->link, &m);
}

bool reload_look(const struct reload *r)
{
	const struct link_message m = {.word = LINK_LOOK, .fd = -1};

	return link_send(r->link, &m) == LINK_DONE;
}
