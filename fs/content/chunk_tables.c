/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "chunk_tables.h"

/* The most tables that are kept open although unused. */
#define TABLES_MAX 32
/* The most rows, of 12 bytes, in all of these tables. */
#define ROWS_MAX (1 << 20)

/* Unlink unused tables in excess of the limits, and return them. */
static struct table *drop_old_tables(struct chunk_tables *ts)
{
	struct table **at = &ts->first, *dropped = NULL;
	unsigned count = 0;
	uint64_t rows = 0;

	while (*at) {
		struct table *t = *at;

		rows += kp_chunks_count(t->chunks);
		if ((++count <= TABLES_MAX && rows <= ROWS_MAX) || t->pins) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->next = dropped;
		dropped = t;
	}
	return dropped;
}

static void close_tables(struct table *t)
{
	struct table *next;

	for (; t; t = next) {
		next = t->next;
		kp_chunks_close(t->chunks);
		origin_unref(t->what.origin);
		free(t);
	}
}

static struct table *pin_table(struct chunk_tables *ts, struct origin_entry what)
{
	for (struct table **at = &ts->first; *at; at = &(*at)->next) {
		struct table *t = *at;

		if (t->what.origin != what.origin || t->what.entry != what.entry)
			continue;
		*at = t->next;
		t->next = ts->first;
		ts->first = t;
		t->pins++;
		return t;
	}
	return NULL;
}

static struct table *table_open(struct origin_entry what, struct kpackx_error *why)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t) {
		kp_fail_memory(why, sizeof(*t), "a chunk table");
		return NULL;
	}
	t->what = what;
	t->pins = 1;
	if (!kp_chunks_open(what.origin->archive, what.entry, &t->chunks, why)) {
		origin_ref(what.origin);
		return t;
	}
	free(t);
	return NULL;
}

/* Two threads may open the same table at once: then the second copy is closed. */
kpack_error_t chunk_tables_get(struct chunk_tables *ts, struct origin_entry what,
			       struct table **out, struct kpackx_error *why)
{
	struct table *t, *dropped;

	pthread_mutex_lock(&ts->lock);
	*out = pin_table(ts, what);
	pthread_mutex_unlock(&ts->lock);
	if (*out)
		return KPACK_SUCCESS;
	t = table_open(what, why);
	if (!t)
		return why->code;
	pthread_mutex_lock(&ts->lock);
	*out = pin_table(ts, what);
	if (*out) {
		dropped = t;
	} else {
		*out = t;
		t->next = ts->first;
		ts->first = t;
		dropped = drop_old_tables(ts);
	}
	pthread_mutex_unlock(&ts->lock);
	close_tables(dropped);
	return KPACK_SUCCESS;
}

static void unlink_table(struct chunk_tables *ts, struct table *t)
{
	struct table **at = &ts->first;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->next = NULL;
}

void chunk_tables_put(struct chunk_tables *ts, struct table *t)
{
	struct table *dropped = NULL;

	pthread_mutex_lock(&ts->lock);
	if (--t->pins == 0 && atomic_load(&t->what.origin->idle)) {
		unlink_table(ts, t);
		dropped = t;
	}
	pthread_mutex_unlock(&ts->lock);
	close_tables(dropped);
}

void chunk_tables_forget(struct chunk_tables *ts, const struct origin *o)
{
	struct table *dropped = NULL;

	pthread_mutex_lock(&ts->lock);
	for (struct table **at = &ts->first; *at;) {
		struct table *t = *at;

		if (t->what.origin != o || t->pins) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->next = dropped;
		dropped = t;
	}
	pthread_mutex_unlock(&ts->lock);
	close_tables(dropped);
}

void chunk_tables_init(struct chunk_tables *ts)
{
	*ts = (struct chunk_tables){0};
	pthread_mutex_init(&ts->lock, NULL);
}

void chunk_tables_fini(struct chunk_tables *ts)
{
	close_tables(ts->first);
	pthread_mutex_destroy(&ts->lock);
}
