/* SPDX-License-Identifier: MIT */
#include "check_content.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "content_type.h"
#include "core/base/text.h"
#include "operands.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/options.h"
#include "packer/cli/report.h"

#define JOBS_MAX 1024

/* An entry to decode, and what decides whether decoding two entries is the same work. */
struct work {
	size_t entry;
	struct kp_entry_info info;
	struct kp_meta meta;
};

struct decoding {
	const struct kpack_archive *a;
	enum check_what what;
	struct work *work; /* by ordinal: the file is read from front to back */
	size_t count;
	atomic_size_t next;
	char **faults; /* per work item; NULL: none */
};

static int cmp_content(const struct work *a, const struct work *b)
{
	int c = KP_ORDER(a->info.ordinal, b->info.ordinal);

	if (!c)
		c = KP_ORDER(a->info.size, b->info.size);
	if (!c)
		c = KP_ORDER(a->meta.chunk, b->meta.chunk);
	if (!c)
		c = KP_ORDER(a->meta.path.data != NULL, b->meta.path.data != NULL);
	if (!c)
		c = kp_span_cmp(a->info.type, b->info.type);
	if (!c)
		c = KP_ORDER(a->meta.has_xxh3, b->meta.has_xxh3);
	return c ? c : memcmp(a->meta.xxh3, b->meta.xxh3, sizeof(a->meta.xxh3));
}

static int cmp_work(const void *a, const void *b)
{
	const struct work *x = a, *y = b;
	int c = cmp_content(x, y);

	return c ? c : KP_ORDER(x->entry, y->entry);
}

static kpack_error_t check_entry(const struct decoding *d, const struct work *w,
				 struct kpackx_error *why)
{
	struct content_head head = {0};

	/* what was stored is what was hashed: no need to decode it */
	if (d->what == CHECK_BYTES && !kp_archive_shared(d->a) &&
	    kp_archive_has_hashes(d->a, w->entry))
		return kp_archive_check_stored(d->a, w->info.ordinal, why);
	KP_TRY(archive_decode(d->a, w->entry, content_head_add, &head, why));
	return w->meta.path.data || d->what != CHECK_TYPES
		       ? KPACK_SUCCESS
		       : content_head_check(&head, w->info.type, why);
}

static void *decode_some(void *arg)
{
	struct decoding *d = arg;

	for (;;) {
		struct kpackx_error why = {0};
		size_t i = atomic_fetch_add(&d->next, 1);

		if (i >= d->count)
			return NULL;
		if (i && cmp_content(&d->work[i - 1], &d->work[i]) == 0)
			continue; /* the entry before stands for it */
		if (check_entry(d, &d->work[i], &why))
			d->faults[i] = xstrdup(why.text[0] ? why.text
							   : kpackx_error_name(why.code));
	}
}

static void decode_all(struct decoding *d, uint64_t jobs)
{
	pthread_t threads[JOBS_MAX];
	size_t started = 0;

	/* this thread is one of them */
	while (started + 1 < jobs && started + 1 < d->count && started < JOBS_MAX &&
	       pthread_create(&threads[started], NULL, decode_some, d) == 0)
		started++;
	decode_some(d);
	while (started)
		pthread_join(threads[--started], NULL);
}

static void list_work(struct decoding *d, const bool *entries)
{
	size_t n = kp_archive_entry_count(d->a);

	d->work = xcalloc(n + 1, sizeof(*d->work));
	d->faults = xcalloc(n + 1, sizeof(*d->faults));
	for (size_t i = 0; i < n; i++) {
		struct work *w = &d->work[d->count];

		if (entries && !entries[i])
			continue;
		w->entry = i;
		kp_archive_entry(d->a, i, &w->info);
		kp_archive_meta(d->a, i, &w->meta);
		d->count++;
	}
	qsort(d->work, d->count, sizeof(*d->work), cmp_work);
}

static void report_entry(const struct kpack_archive *a, size_t entry, const char *fault)
{
	struct kp_entry_info info;
	char *key, *arch;

	kp_archive_entry(a, entry, &info);
	key = kp_text_escape_new(info.key);
	arch = kp_text_escape_new(info.arch);
	report_error(kp_archive_path(a), "%s %s: %s", key ? key : "?", arch ? arch : "?",
		     fault);
	free(key);
	free(arch);
}

bool check_content(const struct kpack_archive *a, bool *entries, enum check_what what,
		   uint64_t jobs)
{
	struct decoding d = {.a = a, .what = what};
	size_t n = kp_archive_entry_count(a);
	const char *fault = NULL, **of = xcalloc(n + 1, sizeof(*of));
	bool fine = true;

	list_work(&d, entries);
	decode_all(&d, jobs ? jobs : option_jobs());
	for (size_t i = 0; i < d.count; i++) {
		if (i == 0 || cmp_content(&d.work[i - 1], &d.work[i]) != 0)
			fault = d.faults[i];
		of[d.work[i].entry] = fault;
	}
	for (size_t e = 0; e < n; e++) {
		if (of[e])
			report_entry(a, e, of[e]);
		fine &= !of[e];
		if (entries)
			entries[e] = of[e];
	}
	for (size_t i = 0; i < d.count; i++)
		free(d.faults[i]);
	free(d.faults);
	free(d.work);
	free(of);
	return fine;
}
