/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "tables.h"

/* Tables that are kept open though unused. */
#define TABLES_MAX 32

/* Unlink what is too much; returns it. */
static struct table *drop_old(struct tables *ts)
{
	struct table **at = &ts->first, *dropped = NULL;
	unsigned count = 0;

	while (*at) {
		struct table *t = *at;

		if (++count <= TABLES_MAX || t->pins) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->next = dropped;
		dropped = t;
	}
	return dropped;
}

static void close_all(struct table *t)
{
	struct table *next;

	for (; t; t = next) {
		next = t->next;
		kp_chunks_close(t->chunks);
		free(t);
	}
}

static struct table *pin(struct tables *ts, uint32_t file)
{
	for (struct table **at = &ts->first; *at; at = &(*at)->next) {
		struct table *t = *at;

		if (t->file != file)
			continue;
		*at = t->next;
		t->next = ts->first;
		ts->first = t;
		t->pins++;
		return t;
	}
	return NULL;
}

static struct table *table_open(const struct kp_view *view, uint32_t file,
				struct kpackx_error *why)
{
	size_t entry;
	struct kpack_archive *a = kp_view_entry(view, file, &entry);
	struct table *t = calloc(1, sizeof(*t));

	if (!t) {
		kp_fail_memory(why, sizeof(*t), "a chunk table");
		return NULL;
	}
	t->file = file;
	t->pins = 1;
	if (!kp_chunks_open(a, entry, &t->chunks, why))
		return t;
	free(t);
	return NULL;
}

/* Two threads may open the same table at once: one of them is thrown away. */
kpack_error_t tables_get(struct tables *ts, uint32_t file, struct table **out,
			 struct kpackx_error *why)
{
	struct table *t, *dropped;

	pthread_mutex_lock(&ts->lock);
	*out = pin(ts, file);
	pthread_mutex_unlock(&ts->lock);
	if (*out)
		return KPACK_SUCCESS;
	t = table_open(ts->view, file, why);
	if (!t)
		return why->code;
	pthread_mutex_lock(&ts->lock);
	*out = pin(ts, file);
	if (*out) {
		dropped = t;
	} else {
		*out = t;
		t->next = ts->first;
		ts->first = t;
		dropped = drop_old(ts);
	}
	pthread_mutex_unlock(&ts->lock);
	close_all(dropped);
	return KPACK_SUCCESS;
}

void tables_put(struct tables *ts, struct table *t)
{
	pthread_mutex_lock(&ts->lock);
	t->pins--;
	pthread_mutex_unlock(&ts->lock);
}

void tables_init(struct tables *ts, const struct kp_view *view)
{
	*ts = (struct tables){.view = view};
	pthread_mutex_init(&ts->lock, NULL);
}

void tables_fini(struct tables *ts)
{
	close_all(ts->first);
	pthread_mutex_destroy(&ts->lock);
}
