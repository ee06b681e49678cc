/* SPDX-License-Identifier: MIT */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "barrier.h"
#include "compressed_text.h"
#include "checksum_thread.h"
#include "entries_text.h"
#include "missing_text.h"
#include "fs/base/sandbox.h"
#include "archives_text.h"
#include "stats_text.h"
#include "status_text.h"
#include "texts.h"
#include "core/archive/naming.h"

#define TEXTS_MAX 16

/*
 * Freeing a text of more bytes than this returns memory to the system, which takes a
 * while.
 */
#define LONG (1 << 20)

struct text {
	struct texts *texts;
	struct text **place; /* its element of `shared`; NULL: it is not shared */
	unsigned refs;
	struct timespec of; /* when its edition was made */
	size_t size;
	/* One of these, or neither: the barrier. */
	struct compressed_text *lines;
	struct checksums *sums;
};

struct texts {
	struct control_subject about;
	struct checksum_thread *hasher;
	struct barrier *barrier;
	struct timespec started, ticking; /* start: real-time and boot clock */

	/* Only one thread at a time makes a text; taken before the lock. */
	pthread_mutex_t making[TEXTS_MAX];
	pthread_mutex_t lock; /* guards everything below, and references of texts */
	struct text *shared[TEXTS_MAX];
	uint64_t reloads;
	struct timespec reloaded;
};

/* --- contents --------------------------------------------------------------------- */

static double seconds_since(struct timespec begin)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (double)(now.tv_sec - begin.tv_sec) +
	       (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
}

static void take_stats(struct texts *t, const struct edition *e, struct stats *out)
{
	*out = (struct stats){
		.edition = e,
		.arches = t->about.arches,
		.started = t->started,
		.uptime = seconds_since(t->ticking),
		.sandbox = sandbox_parts(),
	};
	content_stats(t->about.content, &out->content);
	inodes_retired(t->about.inodes, &out->retired_inodes, &out->retired_archives);
	pthread_mutex_lock(&t->lock);
	out->reloads = t->reloads;
	out->reloaded = t->reloaded;
	pthread_mutex_unlock(&t->lock);
}

static bool put_archives(struct texts *t, const struct edition *e, FILE *f)
{
	(void)t;
	archives_text_put(f, e);
	return true;
}

static bool put_arches(struct texts *t, const struct edition *e, FILE *f)
{
	(void)e;
	arches_put(t->about.arches, f);
	return true;
}

static bool put_conflicts(struct texts *t, const struct edition *e, FILE *f)
{
	(void)t;
	archives_text_put_conflicts(f, e);
	return true;
}

static bool put_entries(struct texts *t, const struct edition *e, FILE *f)
{
	return entries_text_put(f, e, t->about.arches);
}

static bool put_metrics(struct texts *t, const struct edition *e, FILE *f)
{
	struct stats stats;

	take_stats(t, e, &stats);
	stats_put_metrics(f, &stats);
	return true;
}

static bool put_missing(struct texts *t, const struct edition *e, FILE *f)
{
	return missing_put(f, e, t->about.arches, t->about.subdir);
}

static bool put_stats(struct texts *t, const struct edition *e, FILE *f)
{
	struct stats stats;

	take_stats(t, e, &stats);
	stats_put_json(f, &stats);
	return true;
}

static bool put_status(struct texts *t, const struct edition *e, FILE *f)
{
	struct stats stats;

	take_stats(t, e, &stats);
	status_text_put(f, &stats);
	return true;
}

static bool put_version(struct texts *t, const struct edition *e, FILE *f)
{
	(void)t;
	(void)e;
	fputs("kpackfs " KP_VERSION "\n", f);
	return true;
}

/* Attach what TEXT consists of. */
typedef bool make_text(struct text *text, struct edition *e);

static make_text make_checksums, make_barrier;

static const struct row {
	const char *name;
	bool (*put)(struct texts *t, const struct edition *e, FILE *f);
	bool changes;    /* changes within an edition, so it cannot be shared */
	make_text *make; /* instead of `put`: it has no lines */
} rows[] = {
	{"archives", put_archives, false, NULL},
	{"arches", put_arches, false, NULL},
	{"conflicts", put_conflicts, false, NULL},
	{"entries.jsonl", put_entries, false, NULL},
	{"metrics", put_metrics, true, NULL},
	{"missing", put_missing, false, NULL},
	{"stats", put_stats, true, NULL},
	{"status", put_status, true, NULL},
	{"version", put_version, false, NULL},
	{"checksums", NULL, false, make_checksums},
	{"barrier", NULL, true, make_barrier},
};

#define N_ROWS KP_COUNT(rows)
_Static_assert(N_ROWS <= TEXTS_MAX, "a place for each");

const char *texts_name(size_t position)
{
	return position < N_ROWS ? rows[position].name : NULL;
}

/* --- making ----------------------------------------------------------------------- */

/*
 * Memory of a long text is returned to the system: it may not be needed again for a year.
 */
static void text_free(struct text *text)
{
	bool is_long = text->size > LONG;

	checksums_unref(text->sums);
	compressed_text_free(text->lines);
	free(text);
	if (is_long)
		malloc_trim(0);
}

static bool write_lines(struct text *text, const struct row *row, const struct edition *e)
{
	FILE *f;
	bool ok;

	text->lines = compressed_text_new();
	f = text->lines ? compressed_text_open(text->lines) : NULL;
	if (!f)
		return false;
	ok = row->put(text->texts, e, f) && !ferror(f);
	ok = !fclose(f) && ok;
	text->size = (size_t)compressed_text_size(text->lines);
	return ok;
}

static bool make_checksums(struct text *text, struct edition *e)
{
	text->sums = checksums_new(e);
	if (text->sums)
		text->size = checksums_size(text->sums);
	return text->sums;
}

static bool make_barrier(struct text *text, struct edition *e)
{
	(void)e;
	text->size = BARRIER_SIZE;
	return true;
}

static struct text *text_new(struct texts *t, const struct row *row, struct edition *e)
{
	struct text *text = calloc(1, sizeof(*text));

	if (!text)
		return NULL;
	text->texts = t;
	text->refs = 1;
	text->of = e->made;
	if (row->make ? row->make(text, e) : write_lines(text, row, e))
		return text;
	text_free(text);
	return NULL;
}

/* --- sharing ---------------------------------------------------------------------- */

/* The shared text of E with a reference, or NULL. */
static struct text *find_shared(struct texts *t, size_t i, const struct edition *e)
{
	struct text *text;

	pthread_mutex_lock(&t->lock);
	text = t->shared[i];
	if (text &&
	    (text->of.tv_sec != e->made.tv_sec || text->of.tv_nsec != e->made.tv_nsec))
		text = NULL;
	if (text)
		text->refs++;
	pthread_mutex_unlock(&t->lock);
	return text;
}

/* Make TEXT the shared text of file number I, in place of an older text. */
static void share_text(struct texts *t, size_t i, struct text *text)
{
	pthread_mutex_lock(&t->lock);
	if (t->shared[i])
		t->shared[i]->place = NULL;
	t->shared[i] = text;
	text->place = &t->shared[i];
	pthread_mutex_unlock(&t->lock);
}

struct text *texts_get(struct texts *t, struct edition *e, size_t position)
{
	struct text *text;

	if (rows[position].changes)
		return text_new(t, &rows[position], e);
	pthread_mutex_lock(&t->making[position]);
	text = find_shared(t, position, e);
	if (!text) {
		text = text_new(t, &rows[position], e);
		if (text)
			share_text(t, position, text);
	}
	pthread_mutex_unlock(&t->making[position]);
	return text;
}

struct text *text_ref(struct text *text)
{
	pthread_mutex_lock(&text->texts->lock);
	text->refs++;
	pthread_mutex_unlock(&text->texts->lock);
	return text;
}

void text_unref(struct text *text)
{
	struct texts *t = text->texts;
	bool last;

	pthread_mutex_lock(&t->lock);
	last = --text->refs == 0;
	if (last && text->place)
		*text->place = NULL;
	pthread_mutex_unlock(&t->lock);
	if (last)
		text_free(text);
}

size_t text_size(const struct text *text)
{
	return text->size;
}

static void read_lines(const struct text *text, uint64_t off, size_t len, void *token)
{
	content_answer *answer = text->texts->about.answer;
	struct kpackx_error why = {0};
	char *bytes = malloc(len ? len : 1);

	if (bytes && compressed_text_read(text->lines, off, bytes, len)) {
		answer(token, bytes, len, NULL);
	} else {
		kp_fail_memory(&why, len, KP_CONTROL_NAME);
		answer(token, NULL, 0, &why);
	}
	free(bytes);
}

void text_read(struct text *text, uint64_t off, size_t len, void *token)
{
	struct texts *t = text->texts;

	if (text->sums)
		checksum_thread_read(t->hasher, text->sums, off, len, token);
	else if (text->lines)
		read_lines(text, off, len, token);
	else
		barrier_read(t->barrier, off, len, token);
}

/* --- the set of texts ------------------------------------------------------------- */

struct texts *texts_new(const struct control_subject *about)
{
	struct texts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->about = *about;
	clock_gettime(CLOCK_REALTIME, &t->started);
	clock_gettime(CLOCK_BOOTTIME, &t->ticking);
	for (size_t i = 0; i < TEXTS_MAX; i++)
		pthread_mutex_init(&t->making[i], NULL);
	pthread_mutex_init(&t->lock, NULL);
	t->hasher = checksum_thread_new(about->content, about->answer);
	t->barrier = barrier_new(about->ask, about->user, about->answer);
	if (t->hasher && t->barrier)
		return t;
	texts_free(t);
	return NULL;
}

void texts_free(struct texts *t)
{
	if (!t)
		return;
	checksum_thread_free(t->hasher);
	barrier_free(t->barrier);
	pthread_mutex_destroy(&t->lock);
	for (size_t i = 0; i < TEXTS_MAX; i++)
		pthread_mutex_destroy(&t->making[i]);
	free(t);
}

void texts_renew(struct texts *t)
{
	pthread_mutex_lock(&t->lock);
	t->reloads++;
	clock_gettime(CLOCK_REALTIME, &t->reloaded);
	pthread_mutex_unlock(&t->lock);
}

void texts_seen(struct texts *t, bool fine)
{
	uint64_t edition;

	pthread_mutex_lock(&t->lock);
	edition = t->reloads + 1;
	pthread_mutex_unlock(&t->lock);
	barrier_seen(t->barrier, fine ? edition : 0);
}

void texts_unwatched(struct texts *t)
{
	barrier_over(t->barrier);
}
