/* SPDX-License-Identifier: MIT */
/*
 * A row for each file says how its text is made.  Snapshots are in a small hash table by
 * inode number; a request finds its snapshot there, with the lock, and needs no reference.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "barrier.h"
#include "control.h"
#include "fs/base/sandbox.h"
#include "texts.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"

#define BUCKETS 64

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

struct control {
	struct control_subject about;
	struct barrier *barrier;
	struct timespec started, ticking; /* start: real-time and boot clock */
	pthread_mutex_t
		making; /* while a text is made that others may share; before LOCK */

	pthread_mutex_t lock; /* guards everything below */
	struct stat look;     /* attributes of the root */
	uint64_t reloads;
	struct timespec reloaded;
	uint64_t next_ino;
	struct snapshot *buckets[BUCKETS];
};

/* --- the texts ------------------------------------------------------------------------ */

static struct stats take_stats(struct control *c, const struct edition *e)
{
	struct stats out = {
		.edition = e,
		.arches = c->about.arches,
		.started = c->started,
		.sandbox = sandbox_parts(),
	};
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	out.uptime = (double)(now.tv_sec - c->ticking.tv_sec) +
		     (double)(now.tv_nsec - c->ticking.tv_nsec) / 1e9;
	content_stats(c->about.content, &out.content);
	inodes_retired(c->about.inodes, &out.retired_inodes, &out.retired_archives);
	pthread_mutex_lock(&c->lock);
	out.reloads = c->reloads;
	out.reloaded = c->reloaded;
	pthread_mutex_unlock(&c->lock);
	return out;
}

static void put_archives(struct control *c, const struct edition *e, FILE *f)
{
	(void)c;
	archives_text_put(f, e);
}

static void put_arches(struct control *c, const struct edition *e, FILE *f)
{
	(void)e;
	arches_put(c->about.arches, f);
}

static void put_conflicts(struct control *c, const struct edition *e, FILE *f)
{
	(void)c;
	conflicts_text_put(f, e);
}

static void put_metrics(struct control *c, const struct edition *e, FILE *f)
{
	const struct stats stats = take_stats(c, e);

	stats_put_metrics(f, &stats);
}

static void put_missing(struct control *c, const struct edition *e, FILE *f)
{
	missing_text_put(f, e, c->about.arches, c->about.subdir);
}

static void put_stats(struct control *c, const struct edition *e, FILE *f)
{
	const struct stats stats = take_stats(c, e);

	stats_put_json(f, &stats);
}

static void put_status(struct control *c, const struct edition *e, FILE *f)
{
	const struct stats stats = take_stats(c, e);

	status_text_put(f, &stats);
}

static void put_version(struct control *c, const struct edition *e, FILE *f)
{
	(void)c;
	(void)e;
	fputs("kpackfs " KP_VERSION "\n", f);
}

static const struct row {
	const char *name;
	void (*put)(struct control *c, const struct edition *e, FILE *f);
	bool changes; /* within an edition: each look-up makes a snapshot */
} rows[] = {
	{"archives", put_archives, false},
	{"arches", put_arches, false},
	{"conflicts", put_conflicts, false},
	{"metrics", put_metrics, true},
	{"missing", put_missing, false},
	{"stats", put_stats, true},
	{"status", put_status, true},
	{"version", put_version, false},
	{"barrier", NULL, true},
};

_Static_assert(CONTROL_LISTED + KP_COUNT(rows) <= CONTROL_FIRST, "a number for each");

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

/*
 * The snapshot of FILE that those who look it up in E can share, or NULL.  There are only as
 * many snapshots as programs have open, so a walk over all of them is enough.
 */
static struct snapshot *find_shared(struct control *c, size_t file,
				    const struct edition *e)
{
	for (size_t i = 0; !rows[file].changes && i < BUCKETS; i++)
		for (struct snapshot *s = c->buckets[i]; s; s = s->next)
			if (s->file == file && s->edition.tv_sec == e->made.tv_sec &&
			    s->edition.tv_nsec == e->made.tv_nsec)
				return s;
	return NULL;
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
	bool fine = true;
	FILE *f;

	if (!s)
		return NULL;
	s->file = file;
	s->edition = e->made;
	s->size = BARRIER_SIZE; /* if it has no text yet */
	clock_gettime(CLOCK_REALTIME, &s->made);
	if (rows[file].put) {
		f = open_memstream(&s->text, &s->size);
		if (f)
			rows[file].put(c, e, f);
		fine = f && !ferror(f);
		fine = f && !fclose(f) && fine;
	}
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
	struct snapshot *s;
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
	s = find_shared(c, file, e);
	if (!s) {
		/* without the lock, because it may take a while */
		pthread_mutex_unlock(&c->lock);
		s = snapshot_new(c, file, e);
		pthread_mutex_lock(&c->lock);
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

/* Find INO and its attributes, and count LOOKUPS more of it. */
static bool use_snapshot(struct control *c, uint64_t ino, uint64_t lookups,
			 struct stat *out)
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

bool control_stat(struct control *c, uint64_t ino, struct stat *out)
{
	return use_snapshot(c, ino, 0, out);
}

bool control_again(struct control *c, uint64_t ino, struct stat *out)
{
	return use_snapshot(c, ino, 1, out);
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

bool control_read(struct control *c, uint64_t ino, uint64_t off, size_t len, void *token)
{
	struct snapshot *s;
	bool at_barrier;

	pthread_mutex_lock(&c->lock);
	s = *find_snapshot(c, ino);
	at_barrier = s && !s->text;
	if (s) {
		uint64_t left = off < s->size ? s->size - off : 0;

		len = left < len ? (size_t)left : len;
		if (s->text) /* with the lock, so that the text stays */
			c->about.answer(token, s->text + (len ? off : 0), len, NULL);
	}
	pthread_mutex_unlock(&c->lock);
	if (at_barrier)
		barrier_read(c->barrier, off, len, token);
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
	c->barrier = barrier_new(about->ask, about->user, about->answer);
	if (!c->barrier) {
		control_free(c);
		return kp_fail_memory(why, 0, KP_CONTROL_NAME);
	}
	look_at_root(c);
	*out = c;
	return KPACK_SUCCESS;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct snapshot *s = c->buckets[i], *next; s; s = next) {
			next = s->next;
			snapshot_free(s);
		}
	barrier_free(c->barrier);
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

void control_seen(struct control *c, bool fine)
{
	uint64_t edition;

	pthread_mutex_lock(&c->lock);
	edition = c->reloads + 1;
	pthread_mutex_unlock(&c->lock);
	barrier_seen(c->barrier, fine ? edition : 0);
}

void control_unwatched(struct control *c)
{
	barrier_over(c->barrier);
}
