/* SPDX-License-Identifier: MIT */
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

struct list {
	struct known *items;
	size_t count;
};

struct reload {
	struct reload_options o;
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

static int fd_end(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	return (int)limit.rlim_cur -
	       (limit.rlim_cur < 4 * FDS_LEFT ? (int)limit.rlim_cur / 4 : FDS_LEFT);
}

struct reload *reload_new(const struct reload_options *o)
{
	struct reload *r = calloc(1, sizeof(*r));

	if (!r) {
		fail_memory();
		return NULL;
	}
	r->o = *o;
	r->first = true;
	r->fd_end = fd_end();
	/* malloc_trim returns the unused end of the first heap only: all threads use it */
	mallopt(M_ARENA_MAX, 1);
	r->heap = sbrk(0);
	return r;
}

/* Surveys. */

static int by_serial(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return KP_ORDER(x->serial, y->serial);
}

static const struct known *find_known(const struct list *l, uint32_t serial)
{
	const struct known key = {.serial = serial};

	return l->count ? bsearch(&key, l->items, l->count, sizeof(key), by_serial)
			: NULL;
}

static bool keep_known(struct reload *r, struct known k)
{
	struct list *l = &r->next;
	struct known *items = l->items;

	if ((l->count & (l->count - 1)) == 0)
		items = reallocarray(items, l->count ? 2 * l->count : 1, sizeof(k));
	if (!items) {
		origin_unref(k.origin);
		free(k.path);
		free(k.text);
		return fail_memory();
	}
	l->items = items;
	items[l->count++] = k;
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

/* True if the archive was written to just now: an unfinished copy is no fault. */
static bool is_young(const struct link_message *m)
{
	struct stat st;

	return m->fd >= 0 && fstat(m->fd, &st) == 0 &&
	       time(NULL) - st.st_mtim.tv_sec < YOUNG;
}

/*
 * Why the archive FD is left out of a mount that users share; NULL: it is shown.  The kernel
 * checks the mode of each file, but lets everybody see the names, and knows no access control
 * list.  Who states uid=, gid= or umask= has decided for all archives.
 */
static const char *unshared_reason(const struct reload *r, int fd)
{
	const struct tree_options *look = &r->o.look.look;
	struct stat st;

	if (!r->o.look.shared || look->uid != (uid_t)-1 || look->gid != (gid_t)-1 ||
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
	if (!r->o.look.shared)
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
		link_send_all(r->o.link, &answer);
	if (served)
		return keep_known(r, (struct known){.serial = m->serial,
						    .origin = origin_ref(served)});
	return refuse_archive(r, m, text);
}

static bool take_fresh(struct reload *r, const struct link_message *m)
{
	bool young = !r->first && is_young(m);
	struct known k = {.serial = m->serial};
	struct kpackx_error why = {0};
	const char *reason;

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
	if (origin_new(m->fd, m->path, &k.origin, &why))
		return refuse_fresh(r, m, young, why.text);
	return keep_known(r, k);
}

/* Take over an archive as it was in the last survey. */
static bool take_known(struct reload *r, const struct link_message *m)
{
	/* An item without a serial has its reason in each survey. */
	const struct known *old = m->serial ? find_known(&r->now, m->serial) : NULL;

	if (m->fd >= 0)
		close(m->fd);
	if (old && old->origin)
		return keep_known(r, (struct known){.serial = m->serial,
						    .origin = origin_ref(old->origin)});
	return refuse_archive(r, m, old ? old->text : m->text);
}

static bool take_archive(struct reload *r, const struct link_message *m)
{
	return m->fresh ? take_fresh(r, m) : take_known(r, m);
}

static bool list_holdings(const struct reload *r, struct holdings *h)
{
	bool ok = true;

	for (size_t i = 0; ok && i < r->next.count; i++) {
		const struct known *k = &r->next.items[i];

		ok = k->origin ? holdings_add(h, origin_ref(k->origin))
			       : holdings_refuse(h, k->path, k->text);
	}
	return ok;
}

/*
 * Return the unused memory of the heap to the system.  Where a table was that asked for
 * huge pages, the kernel would later fill what is unused with a huge page again, so that
 * wish is withdrawn: huge pages that exist stay.
 */
static void trim_heap(struct reload *r)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *begin = r->heap + (page - (uintptr_t)r->heap % page) % page, *end;

	malloc_trim(0);
	end = sbrk(0);
	if (end > begin)
		madvise(begin, (size_t)(end - begin), MADV_NOHUGEPAGE); /* only advice */
}

/*
 * Building allocates and frees large blocks.  Meanwhile freed blocks are kept for reuse,
 * because the system has to clear new ones.
 */
static void keep_memory(struct reload *r, bool building)
{
	mallopt(M_MMAP_THRESHOLD, building ? 32 << 20 : 4 << 20);
	mallopt(M_TRIM_THRESHOLD, building ? INT_MAX : 4 << 20);
	if (!building)
		trim_heap(r);
}

static struct edition *make_edition(struct reload *r, const struct link_message *m)
{
	struct edition_options look = r->o.look;
	struct holdings h = {.look = m->st};

	look.first = r->first;
	look.warned = &r->warned;
	if (!list_holdings(r, &h)) {
		holdings_fini(&h);
		return NULL;
	}
	if (r->first && h.count == 0 && h.n_refused) {
		log_print(LOG_ERR, "none of %zu archives can be served", h.n_refused);
		holdings_fini(&h);
		return NULL;
	}
	return edition_new(&h, &look, r->first ? NULL : &r->o.taken);
}

/* The survey that came in becomes the last one, even if its edition failed. */
static void turn_over_survey(struct reload *r)
{
	list_free(&r->now);
	r->now = r->next;
	r->next = (struct list){0};
	if (r->now.count)
		qsort(r->now.items, r->now.count, sizeof(*r->now.items), by_serial);
}

/* The thread. */

static void report_survey(const struct reload *r, struct edition *e, size_t names)
{
	char text[128];
	const struct link_message m = {
		.word = LINK_TAKEN, .number = names, .fd = -1, .text = text};

	if (e)
		snprintf(text, sizeof(text), "%zu archives, %u files, %zu names changed",
			 e->holdings.count, tree_file_count(e->tree), names);
	else
		snprintf(text, sizeof(text),
			 "cannot show the changed sources; the mount stays as it was");
	link_send_all(r->o.link, &m);
}

/*
 * If descriptors were lacking, ask for one more survey, once: those that were closed
 * meanwhile may be enough.
 */
static void retry_survey(struct reload *r)
{
	const struct link_message m = {.word = LINK_RESCAN, .number = 1, .fd = -1};

	r->again = r->wanting && !r->again;
	r->wanting = false;
	if (r->again)
		link_send_all(r->o.link, &m);
}

static void take_survey(struct reload *r, const struct link_message *m)
{
	struct edition *e;
	size_t names = 0;

	keep_memory(r, true);
	e = make_edition(r, m);
	turn_over_survey(r);
	if (e) {
		edition_ref(e);
		if (!r->o.show(r->o.user, e, &names)) {
			edition_unref(e);
			e = NULL;
		}
	}
	report_survey(r, e, names);
	edition_unref(e);
	retry_survey(r);
	keep_memory(r, false);
}

/*
 * The supervisor has looked.  If descriptors were lacking and a further survey was asked for,
 * the look is not complete: another one takes that survey.
 */
static void end_look(struct reload *r, bool fine)
{
	if (!r->again || !reload_look(r))
		r->o.seen(r->o.user, fine);
}

static void answer_ping(struct reload *r)
{
	const struct link_message m = {
		.word = LINK_PONG, .number = r->o.requests(r->o.user), .fd = -1};

	link_send_all(r->o.link, &m);
}

/*
 * An archive for which there is no memory is missing in the next edition: better than
 * none.
 */
static void take_message(struct reload *r, const struct link_message *m)
{
	if (m->word == LINK_ARCHIVE)
		take_archive(r, m);
	else if (m->word == LINK_SURVEYED)
		take_survey(r, m);
	else if (m->word == LINK_SEEN)
		end_look(r, m->number != 0);
	else if (m->word == LINK_PING)
		answer_ping(r);
	else if (m->word == LINK_LEAVING)
		atomic_store(&r->stopped, true);
}

static void *receive_messages(void *arg)
{
	struct reload *r = arg;
	struct link_message m;
	enum link_result got;

	while ((got = link_receive(r->o.link, true, &r->room, &m)) != LINK_OVER)
		if (got == LINK_DONE)
			take_message(r, &m);
	if (!atomic_load(&r->stopped))
		log_print(LOG_ERR, "the supervisor has gone: changes of the sources will "
				   "not be noticed");
	r->o.unwatched(r->o.user);
	return NULL;
}

struct edition *reload_first(struct reload *r)
{
	struct edition *first;
	struct link_message m;
	enum link_result got;

	keep_memory(r, true);
	do {
		got = link_receive(r->o.link, true, &r->room, &m);
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
	shutdown(r->o.link, SHUT_RDWR);
	if (r->runs)
		pthread_join(r->thread, NULL);
	close(r->o.link);
	list_free(&r->now);
	list_free(&r->next);
	logged_conflicts_fini(&r->warned);
	free(r);
}

void reload_rescan(const struct reload *r)
{
	const struct link_message m = {.word = LINK_RESCAN, .fd = -1};

	link_send(r->o.link, &m);
}

bool reload_look(const struct reload *r)
{
	const struct link_message m = {.word = LINK_LOOK, .fd = -1};

	return link_send(r->o.link, &m) == LINK_DONE;
}
