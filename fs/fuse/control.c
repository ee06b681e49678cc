/* SPDX-License-Identifier: MIT */
/*
 * The files of .kpackfs are texts that change all the time, while the kernel wants files whose
 * size and bytes stay: so each look-up of a name is answered with a snapshot, a text that was
 * made for it, under an inode number of its own.
 *
 *   look-up   makes a snapshot, or finds the one of this edition if the text depends on nothing
 *             else; each answer counts one look-up
 *   read      copies from it, at any offset and as often as wanted
 *   forget    takes look-ups back, and the last one frees it
 *
 * Snapshots are in a small hash table by inode number; a request finds its snapshot there,
 * with the lock, and needs no reference.
 *
 * Readers of the barrier share looks, in two groups: those for whom the look that is under
 * way began late enough, and those who came since, who share the next one.  So however many
 * read, one look follows another at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include "control.h"
#include "texts.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"

/* Which function of texts.h makes each text; NULL: the barrier. */
static const struct row {
	const char *name;
	text_put *put;
	bool changes; /* within an edition: each look-up makes a snapshot */
} rows[] = {
	{"archives", archives_text_put, false}, {"metrics", metrics_text_put, true},
	{"missing", missing_text_put, false},   {"stats", stats_text_put, true},
	{"status", status_text_put, true},      {"barrier", NULL, true},
};

_Static_assert(CONTROL_LISTED + KP_COUNT(rows) <= CONTROL_FIRST, "a number for each");

struct snapshot {
	struct snapshot *next;
	uint64_t ino;
	size_t file; /* its row */
	uint64_t lookups;
	char *text; /* NULL: the barrier's, which is made at the read */
	size_t size;
	struct timespec made;
	struct timespec edition; /* when its edition was made */
};

#define BUCKETS 64

/* The bytes of the barrier's text: the edition's number, right-aligned, and a line feed. */
#define BARRIER_SIZE 21
/*
 * The most readers that wait.  The kernel sends as many reads to a mount at once as op_init
 * allows: if a disk hangs, and with it the supervisor, others are still to read files.
 */
#define READERS_MAX 32

/* Readers of the barrier that wait for the same look. */
struct group {
	struct {
		void *token;
		uint64_t off;
		size_t len;
	} readers[READERS_MAX];
	size_t count;
};

struct control {
	struct control_subject about;
	struct timespec started, ticking; /* start: real-time and boot clock */
	/* while a text is made that others may share; taken before LOCK */
	pthread_mutex_t making;

	pthread_mutex_t lock; /* guards everything below */
	struct stat look;     /* attributes of the root */
	uint64_t reloads;
	struct timespec reloaded;
	uint64_t next_ino;
	struct snapshot *buckets[BUCKETS];
	/* `looking` is not empty as long as a look is under way, and waits for it; `later`
	 * came when it may have begun already. */
	struct group looking, later;
};

const char *control_name(size_t position)
{
	return position < KP_COUNT(rows) ? rows[position].name : NULL;
}

/* --- snapshots ------------------------------------------------------------------------ */

static struct snapshot **find_snapshot(struct control *c, uint64_t ino)
{
	struct snapshot **at = &c->buckets[ino % BUCKETS];

	while (*at && (*at)->ino != ino)
		at = &(*at)->next;
	return at;
}

static void snapshot_free(struct snapshot *s)
{
	if (s)
		free(s->text);
	free(s);
}

static struct snapshot *snapshot_new(struct control *c, size_t file,
				     const struct edition *e)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct stats stats = {
		.edition = e,
		.arches = c->about.arches,
		.subdir = c->about.subdir,
		.started = c->started,
		.sandbox = c->about.sandbox,
	};
	struct timespec now;
	bool fine = true;
	FILE *f;

	if (!s)
		return NULL;
	s->file = file;
	s->edition = e->made;
	clock_gettime(CLOCK_REALTIME, &s->made);
	if (!rows[file].put) {
		s->size = BARRIER_SIZE;
		return s;
	}
	clock_gettime(CLOCK_BOOTTIME, &now);
	stats.uptime = (double)(now.tv_sec - c->ticking.tv_sec) +
		       (double)(now.tv_nsec - c->ticking.tv_nsec) / 1e9;
	content_stats(c->about.content, &stats.content);
	inodes_retired(c->about.inodes, &stats.retired_inodes, &stats.retired_archives);
	pthread_mutex_lock(&c->lock);
	stats.reloads = c->reloads;
	stats.reloaded = c->reloaded;
	pthread_mutex_unlock(&c->lock);
	f = open_memstream(&s->text, &s->size);
	if (f)
		rows[file].put(f, &stats);
	fine = f && !ferror(f);
	fine = f && !fclose(f) && fine;
	if (fine)
		return s;
	snapshot_free(s);
	return NULL;
}

/*
 * The attributes of the directory (NULL), or of the snapshot S.  Who may read the root may
 * read these, too.
 */
static void stat_snapshot(const struct control *c, const struct snapshot *s,
			  struct stat *out)
{
	const struct timespec when = s ? s->made : c->started;
	const mode_t read = c->look.st_mode & 0444;

	*out = (struct stat){
		.st_uid = c->look.st_uid,
		.st_gid = c->look.st_gid,
		.st_ino = s ? CONTROL_LISTED + s->file : CONTROL_DIR,
		.st_nlink = s ? 1 : 2,
		.st_mode = s ? S_IFREG | read : S_IFDIR | read | read >> 2,
		.st_size = s ? (off_t)s->size : 0,
		.st_blksize = 4096,
		.st_atim = when,
		.st_mtim = when,
		.st_ctim = when,
	};
	out->st_blocks = (out->st_size + 511) / 512;
}

int control_lookup(struct control *c, const struct edition *e, struct kp_span name,
		   uint64_t *ino, struct stat *out)
{
	struct snapshot *s = NULL;
	size_t file = 0;
	bool shared;

	while (file < KP_COUNT(rows) && !kp_span_is(name, rows[file].name))
		file++;
	if (file == KP_COUNT(rows))
		return ENOENT;
	shared = !rows[file].changes;
	/* a text of many megabytes is made once, though many look it up at the same time */
	if (shared)
		pthread_mutex_lock(&c->making);
	pthread_mutex_lock(&c->lock);
	/* There are only as many snapshots as programs have open, so a walk over all of them is
	 * enough. */
	for (size_t i = 0; shared && !s && i < BUCKETS; i++)
		for (s = c->buckets[i]; s; s = s->next)
			if (s->file == file && s->edition.tv_sec == e->made.tv_sec &&
			    s->edition.tv_nsec == e->made.tv_nsec)
				break;
	if (!s) {
		/* without the lock, because it may take a while */
		pthread_mutex_unlock(&c->lock);
		s = snapshot_new(c, file, e);
		pthread_mutex_lock(&c->lock);
		/* the numbers come round in a mount that is looked at for years: one that is
		 * open all the time keeps its number */
		do {
			if (++c->next_ino >= CONTROL_END)
				c->next_ino = CONTROL_FIRST;
		} while (*find_snapshot(c, c->next_ino));
		if (s) {
			s->ino = c->next_ino;
			*find_snapshot(c, s->ino) = s; /* at the end of its bucket */
		}
	}
	if (s) {
		s->lookups++;
		*ino = s->ino;
		stat_snapshot(c, s, out);
	}
	pthread_mutex_unlock(&c->lock);
	if (shared)
		pthread_mutex_unlock(&c->making);
	return s ? 0 : ENOMEM;
}

bool control_find(struct control *c, uint64_t ino, uint64_t lookups, struct stat *out)
{
	struct snapshot *s;
	bool found;

	pthread_mutex_lock(&c->lock);
	s = *find_snapshot(c, ino);
	found = s || ino == CONTROL_DIR;
	if (found)
		stat_snapshot(c, s, out);
	if (s)
		s->lookups += lookups;
	pthread_mutex_unlock(&c->lock);
	return found;
}

void control_forget(struct control *c, uint64_t ino, uint64_t n)
{
	struct snapshot **at, *gone = NULL;

	pthread_mutex_lock(&c->lock);
	at = find_snapshot(c, ino);
	if (*at && (*at)->lookups > n) {
		(*at)->lookups -= n;
	} else if (*at) {
		gone = *at;
		*at = gone->next;
	}
	pthread_mutex_unlock(&c->lock);
	snapshot_free(gone);
}

/* --- the barrier ---------------------------------------------------------------------- */

/* Answer a group's readers that EDITION is shown now; 0: the look failed. */
static void answer_group(const struct control *c, const struct group *g, uint64_t edition)
{
	const struct kpackx_error why = {.code = KPACK_ERROR_IO_ERROR, .sys_errno = EIO};
	char text[BARRIER_SIZE + 1];

	snprintf(text, sizeof(text), "%*" PRIu64 "\n", BARRIER_SIZE - 1, edition);
	for (size_t i = 0; i < g->count; i++)
		c->about.answer(g->readers[i].token, text + g->readers[i].off,
				edition ? g->readers[i].len : 0, edition ? NULL : &why);
}

/* With the lock: let a reader wait for a look that begins after now.  0, or an errno. */
static int wait_for_look(struct control *c, uint64_t off, size_t len, void *token)
{
	struct group *g = c->looking.count ? &c->later : &c->looking;

	if (c->looking.count + c->later.count == READERS_MAX)
		return EBUSY;
	/* the answer may come at once, and waits for the lock */
	if (g == &c->looking && !c->about.ask(c->about.user))
		return EIO;
	g->readers[g->count].token = token;
	g->readers[g->count].off = off;
	g->readers[g->count++].len = len;
	return 0;
}

void control_seen(struct control *c, bool fine)
{
	struct group done, failed = {.count = 0};
	uint64_t edition;

	pthread_mutex_lock(&c->lock);
	edition = fine ? c->reloads + 1 : 0;
	done = c->looking;
	c->looking = c->later;
	c->later.count = 0;
	if (c->looking.count && !c->about.ask(c->about.user)) {
		failed = c->looking;
		c->looking.count = 0;
	}
	pthread_mutex_unlock(&c->lock);
	answer_group(c, &done, edition);
	answer_group(c, &failed, 0);
}

void control_unwatched(struct control *c)
{
	struct group looking, later;

	pthread_mutex_lock(&c->lock);
	looking = c->looking;
	later = c->later;
	c->looking.count = c->later.count = 0;
	pthread_mutex_unlock(&c->lock);
	answer_group(c, &looking, 0);
	answer_group(c, &later, 0);
}

bool control_read(struct control *c, uint64_t ino, uint64_t off, size_t len, void *token)
{
	struct kpackx_error why = {.code = KPACK_ERROR_IO_ERROR};
	struct snapshot *s;

	pthread_mutex_lock(&c->lock);
	s = *find_snapshot(c, ino);
	if (s) {
		uint64_t left = off < s->size ? s->size - off : 0;

		len = left < len ? (size_t)left : len;
		if (s->text || !len) /* with the lock, so that the text stays */
			c->about.answer(token, len ? s->text + off : "", len, NULL);
		else
			why.sys_errno = wait_for_look(c, off, len, token);
	}
	pthread_mutex_unlock(&c->lock);
	if (why.sys_errno)
		c->about.answer(token, NULL, 0, &why);
	return s;
}

/* --- the directory -------------------------------------------------------------------- */

/* Take owner and read bits from the root. */
static void look_at_root(struct control *c)
{
	const struct edition *e = inodes_enter(c->about.inodes);
	struct stat look;

	tree_stat(e->tree, tree_root(e->tree), &look);
	inodes_leave(c->about.inodes);
	pthread_mutex_lock(&c->lock);
	c->look = look;
	pthread_mutex_unlock(&c->lock);
}

kpack_error_t control_new(const struct control_subject *about, struct control **out,
			  struct kpackx_error *why)
{
	struct control *c;

	*out = NULL;
	KP_TRY(kp_new(&c, 1, KP_CONTROL_NAME, why));
	c->about = *about;
	c->next_ino = CONTROL_FIRST;
	clock_gettime(CLOCK_REALTIME, &c->started);
	clock_gettime(CLOCK_BOOTTIME, &c->ticking);
	pthread_mutex_init(&c->making, NULL);
	pthread_mutex_init(&c->lock, NULL);
	look_at_root(c);
	*out = c;
	return KPACK_SUCCESS;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	control_unwatched(c);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct snapshot *s = c->buckets[i], *next; s; s = next) {
			next = s->next;
			snapshot_free(s);
		}
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->making);
	free(c);
}

void control_renew(struct control *c)
{
	look_at_root(c);
	pthread_mutex_lock(&c->lock);
	c->reloads++;
	clock_gettime(CLOCK_REALTIME, &c->reloaded);
	pthread_mutex_unlock(&c->lock);
}
