/* SPDX-License-Identifier: MIT */
#include "content.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "check.h"
#include "core/archive/entry.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/format/format.h"
#include "packer/cli/options.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* --- decoding --------------------------------------------------------------------------- */

kpack_error_t archive_decode(const struct kpack_archive *a, size_t entry,
			     kpack_error_t (*sink)(const void *data, size_t size,
						   void *arg, struct kpackx_error *why),
			     void *arg, struct kpackx_error *why)
{
	uint64_t unit, done = 0, before;
	KP_AUTO_FREE void *buf = NULL;
	struct kp_entry_info info;
	struct kp_reader *d;
	kpack_error_t err = KPACK_SUCCESS;

	kp_archive_entry(a, entry, &info);
	KP_TRY(kp_reader_open(a, entry, KP_READ_VERIFY, &d, why));
	unit = kp_reader_unit(d);
	buf = malloc(unit ? unit : 1);
	if (!buf)
		err = kp_fail_memory(why, unit, "an entry");
	do { /* an empty entry is decoded, too */
		before = done;
		if (!err)
			err = kp_reader_next(d, buf, unit, &done, why);
		if (!err)
			err = sink(buf, done - before, arg, why);
	} while (!err && done < info.size);
	kp_reader_close(d);
	return err;
}

/* --- hashes ------------------------------------------------------------------------------ */

static struct kp_hasher *begin_hash(void)
{
	struct kp_hasher *hash = kp_hasher_new();

	if (!hash)
		xalloc_fail(0);
	return hash;
}

static void end_hash(struct kp_hasher *hash, struct kp_hash *out)
{
	*out = kp_hasher_value(hash);
	kp_hasher_free(hash);
}

kpack_error_t content_hash_file(const char *disk, uint64_t offset, uint64_t size,
				struct kp_hash *out, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = -1;
	kpack_error_t err;
	struct kp_hasher *hash;
	uint8_t buf[65536];
	size_t n = sizeof(buf);
	struct stat st;

	err = below_file_open(disk, &fd, &st, why);
	if (err) {
		fd = -1;
		return err;
	}
	hash = begin_hash();
	for (uint64_t at = 0; at < size && !err; at += n) {
		if (n > size - at)
			n = (size_t)(size - at);
		err = kp_file_pread(fd, offset + at, buf, n, why);
		if (!err)
			kp_hasher_add(hash, buf, n);
	}
	end_hash(hash, out);
	return err;
}

static kpack_error_t add_to_hash(const void *data, size_t size, void *arg,
				 struct kpackx_error *why)
{
	(void)why;
	kp_hasher_add(arg, data, size);
	return KPACK_SUCCESS;
}

kpack_error_t content_hash_decoded(const struct kpack_archive *a, size_t entry,
				   struct kp_hash *out, struct kpackx_error *why)
{
	struct kp_hasher *hash = begin_hash();
	kpack_error_t err = archive_decode(a, entry, add_to_hash, hash, why);

	end_hash(hash, out);
	return err;
}

kpack_error_t content_hash_entry(const struct kpack_archive *a, size_t entry,
				 struct kp_hash *out, struct kpackx_error *why)
{
	struct kp_meta meta;

	kp_archive_meta(a, entry, &meta);
	if (!meta.has_xxh3)
		return content_hash_decoded(a, entry, out, why);
	memcpy(out->bytes, meta.xxh3, sizeof(out->bytes));
	return KPACK_SUCCESS;
}

static kpack_error_t hash_named(const struct kpack_archive *a, size_t entry,
				struct kp_hash *out, struct kpackx_error *why)
{
	kpack_error_t err = content_hash_entry(a, entry, out, why);

	return err ? kp_fail_prefix(why, err, "%s", kp_archive_path(a)) : KPACK_SUCCESS;
}

kpack_error_t content_hash_same(const struct kpack_archive *a, size_t i,
				const struct kpack_archive *b, size_t k, bool *same,
				struct kpackx_error *why)
{
	struct kp_entry_info x, y;
	struct kp_hash xs, ys;

	kp_archive_entry(a, i, &x);
	kp_archive_entry(b, k, &y);
	*same = x.size == y.size;
	if (!*same)
		return KPACK_SUCCESS;
	KP_TRY(hash_named(a, i, &xs, why));
	KP_TRY(hash_named(b, k, &ys, why));
	*same = kp_hash_is(&xs, ys.bytes);
	return KPACK_SUCCESS;
}

/* --- comparing --------------------------------------------------------------------------- */

/* The decoded bytes of each entry that are compared at a time. */
enum { PIECE = 1 << 20 };

static kpack_error_t decode_piece(const struct kpack_archive *a, size_t entry,
				  struct kp_reader **d, uint8_t *buf, uint64_t *done,
				  struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_entry_info info;

	if (!*d)
		err = kp_reader_open(a, entry, KP_READ_PIECES, d, why);
	if (!err)
		err = kp_reader_next(*d, buf, PIECE, done, why);
	kp_archive_entry(a, entry, &info);
	return err ? kp_fail_prefix(why, err, "%s: %.*s %.*s", kp_archive_path(a),
				    (int)info.key.size, info.key.data,
				    (int)info.arch.size, info.arch.data)
		   : KPACK_SUCCESS;
}

kpack_error_t content_compare(const struct kpack_archive *a, size_t i,
			      const struct kpack_archive *b, size_t k, bool *same,
			      struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *buf = xmalloc(2 * PIECE);
	struct kp_reader *x = NULL, *y = NULL;
	uint64_t before = 0, done = 0, other = 0;
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_entry_info info;

	kp_archive_entry(a, i, &info);
	*same = true;
	do {
		before = done;
		err = decode_piece(a, i, &x, buf, &done, why);
		if (!err)
			err = decode_piece(b, k, &y, buf + PIECE, &other, why);
		*same = !err && done == other &&
			memcmp(buf, buf + PIECE, (size_t)(done - before)) == 0;
	} while (*same && done < info.size);
	kp_reader_close(x);
	kp_reader_close(y);
	return err;
}

/* --- does a type say what the code is? ------------------------------------------------------ */

/* The first bytes of an entry; zeros: nothing was decoded yet. */
struct content_head {
	uint8_t bytes[KP_HEAD_SIZE];
	size_t size;
};

static kpack_error_t add_to_head(const void *data, size_t size, void *arg,
				 struct kpackx_error *why)
{
	struct content_head *head = arg;
	size_t room = sizeof(head->bytes) - head->size, n = size < room ? size : room;

	(void)why;
	if (n)
		memcpy(head->bytes + head->size, data, n);
	head->size += n;
	return KPACK_SUCCESS;
}

/*
 * INVALID_METADATA: the bytes are code of a known format, and one flipped bit makes TYPE of a
 * type of such code: the format's, or "hsaco" or "co", as other writers call all code.  The table
 * of contents of older archives has no hash, so that this shows only in the code.  Other types
 * are correct: writers choose them, and the pieces of kpack thin --keep are "bin".
 */
static kpack_error_t check_type(const struct content_head *head, struct kp_span type,
				struct kpackx_error *why)
{
	const char *is = kp_object_type((struct kp_span){head->bytes, head->size});
	char text[64];

	/* "so": a name that other writers may choose, though one bit from "co" */
	if (strcmp(is, "co") == 0 || kp_span_is(type, is) || kp_span_is(type, "hsaco") ||
	    kp_span_is(type, "co") || kp_span_is(type, "so"))
		return KPACK_SUCCESS;
	if (!raw_is_flipped(type, is) && !raw_is_flipped(type, "hsaco") &&
	    !raw_is_flipped(type, "co"))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
		       "type is %s, but the code is %s",
		       kp_text_escape(type, text, sizeof(text)), is);
}

/* --- is what is stored what the archive says? ------------------------------------------------ */

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
	    kp_entry_has_hashes(d->a, w->entry))
		return kp_archive_check_stored(d->a, w->info.ordinal, why);
	KP_TRY(archive_decode(d->a, w->entry, add_to_head, &head, why));
	return w->meta.path.data || d->what != CHECK_TYPES
		       ? KPACK_SUCCESS
		       : check_type(&head, w->info.type, why);
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
