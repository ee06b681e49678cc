/* SPDX-License-Identifier: MIT */
/*
 * An entry's bytes come from core/archive/entry.h, which lets none out that the archive's hashes
 * contradict; here is what is asked about them.
 *
 * Two entries are the same if their hashes are, where the metadata are trusted: comparing archives
 * of one run costs nothing then.  Before stored bytes are copied into a new archive they are
 * compared, or decoded, because a wrong hash would spread with them.
 *
 * check_content is kpack verify --content, and what merge and prune ask before they copy.  Work is
 * listed by ordinal, so that the file is read from front to back, and entries that ask for the
 * same bytes in the same way are decoded once.  Threads take the next piece of work from a counter;
 * faults are kept beside the work and reported at the end, in the order of entries, so that
 * messages do not depend on the number of threads.
 */
#include "content.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "check.h"
#include "core/archive/entry.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "core/format/format.h"
#include "packer/cli/options.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* --- decoding --------------------------------------------------------------------------- */

kpack_error_t archive_decode(const struct kpack_archive *a, size_t entry,
			     struct kp_sink *sink, struct kpackx_error *why)
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
			err = kp_sink_put(sink, buf, done - before, why);
		progress_add(done - before);
	} while (!err && done < info.size);
	kp_reader_close(d);
	return err;
}

kpack_error_t content_load(const struct kpack_archive *a, size_t entry, uint8_t **owned,
			   struct kp_span *out, struct kpackx_error *why)
{
	struct kp_entry_info info;

	KP_TRY(kp_entry_check_size(a, entry, why));
	kp_archive_entry(a, entry, &info);
	*owned = malloc((size_t)info.size + 1);
	if (!*owned)
		return kp_fail_memory(why, info.size, "an object");
	*out = (struct kp_span){*owned, (size_t)info.size};
	return kp_entry_read(a, entry, *owned, why);
}

/* --- hashes ------------------------------------------------------------------------------ */

static kpack_error_t add_to_hash(void *hash, const void *data, size_t size,
				 struct kpackx_error *why)
{
	(void)why;
	kp_hasher_add(hash, data, size);
	return KPACK_SUCCESS;
}

/* The hash of SOURCE; NULL: of the decoded bytes of an entry. */
static kpack_error_t hash_bytes(const struct kp_source *source,
				const struct kpack_archive *a, size_t entry,
				struct kp_hash *out, struct kpackx_error *why)
{
	struct kp_hasher *hash = kp_hasher_new();
	struct kp_sink sink = {.write = add_to_hash, .arg = hash};
	kpack_error_t err;

	if (!hash)
		xalloc_fail(0);
	err = source ? kp_sink_copy(&sink, source, why)
		     : archive_decode(a, entry, &sink, why);
	*out = kp_hasher_value(hash);
	kp_hasher_free(hash);
	return err;
}

kpack_error_t content_hash_source(const struct kp_source *source, struct kp_hash *out,
				  struct kpackx_error *why)
{
	return hash_bytes(source, NULL, 0, out, why);
}

kpack_error_t content_hash_file(const char *disk, uint64_t offset, uint64_t size,
				struct kp_hash *out, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = -1;
	struct kp_source source;
	struct stat st;

	KP_TRY(below_file_open(disk, &fd, &st, why));
	source = kp_source_fd(fd, offset, size);
	return content_hash_source(&source, out, why);
}

kpack_error_t content_hash_decoded(const struct kpack_archive *a, size_t entry,
				   struct kp_hash *out, struct kpackx_error *why)
{
	return hash_bytes(NULL, a, entry, out, why);
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

kpack_error_t content_hash_same(const struct kpack_archive *a, size_t i,
				const struct kpack_archive *b, size_t k, bool *same,
				struct kpackx_error *why)
{
	struct kp_entry_info x, y;
	struct kp_hash xs, ys;
	kpack_error_t err;

	kp_archive_entry(a, i, &x);
	kp_archive_entry(b, k, &y);
	/* most that differ have other sizes, and nothing need be decoded */
	*same = x.size == y.size;
	if (!*same)
		return KPACK_SUCCESS;
	err = content_hash_entry(a, i, &xs, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", kp_archive_path(a));
	err = content_hash_entry(b, k, &ys, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", kp_archive_path(b));
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
	/* side by side, and only until they differ: neither need fit into memory */
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

static kpack_error_t add_to_head(void *arg, const void *data, size_t size,
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
	if (!check_is_flipped(type, is) && !check_is_flipped(type, "hsaco") &&
	    !check_is_flipped(type, "co"))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
		       "type is %s, but the code is %s",
		       kp_text_escape(type, text, sizeof(text)), is);
}

/* --- is what is stored what the archive says? ------------------------------------------------ */

#define JOBS_MAX 1024

/* An entry to decode. */
struct work {
	size_t entry;
	struct kp_entry_info info;
	struct kp_meta meta;
	bool is_file;
	char *fault; /* NULL: none */
};

/*
 * In this order the file is read from front to back.  Entries that differ only in the last key are
 * the same work.
 */
static const struct kp_sort_key work_keys[] = {
	KP_BY_NUMBER(struct work, info.ordinal), KP_BY_NUMBER(struct work, info.size),
	KP_BY_NUMBER(struct work, meta.chunk),   KP_BY_NUMBER(struct work, is_file),
	KP_BY_SPAN(struct work, info.type),      KP_BY_NUMBER(struct work, meta.has_xxh3),
	KP_BY_BYTES(struct work, meta.xxh3),     KP_BY_NUMBER(struct work, entry),
};

static bool is_same_work(const struct work *list, size_t i)
{
	return i && kp_compare_by(&list[i - 1], &list[i], work_keys,
				  KP_COUNT(work_keys) - 1) == 0;
}

struct decoding {
	const struct kpack_archive *a;
	enum check_what what;
	struct work *work;
	size_t count;
	atomic_size_t next;
};

static void *decode_some(void *arg)
{
	struct decoding *d = arg;
	size_t i;

	while ((i = atomic_fetch_add(&d->next, 1)) < d->count) {
		struct work *w = &d->work[i];
		struct content_head head = {0};
		struct kp_sink sink = {.write = add_to_head, .arg = &head};
		struct kpackx_error why = {0};
		kpack_error_t err = KPACK_SUCCESS;

		if (is_same_work(d->work, i)) {
			progress_add(w->info.size);
		} else if (d->what == CHECK_BYTES && !kp_archive_shared(d->a) &&
			   kp_entry_has_hashes(d->a, w->entry)) {
			/* what was stored is what was hashed: no need to decode it */
			progress_add(w->info.size);
			err = kp_archive_check_stored(d->a, w->info.ordinal, &why);
		} else {
			err = archive_decode(d->a, w->entry, &sink, &why);
			if (!err && !w->is_file && d->what == CHECK_TYPES)
				err = check_type(&head, w->info.type, &why);
		}
		if (err)
			w->fault = xstrdup(why.text[0] ? why.text
						       : kpackx_error_name(why.code));
	}
	return NULL;
}

bool check_content(const struct kpack_archive *a, bool *entries, enum check_what what,
		   uint64_t jobs)
{
	size_t n = kp_archive_entry_count(a), started = 0;
	KP_AUTO_FREE struct work *work = xcalloc(n + 1, sizeof(*work));
	KP_AUTO_FREE const char **of =
		xcalloc(n + 1, sizeof(*of)); /* faults of entries */
	struct decoding d = {.a = a, .what = what, .work = work};
	pthread_t threads[JOBS_MAX];
	const char *fault = NULL;
	bool fine = true;

	for (size_t i = 0; i < n; i++) {
		struct work *w = &work[d.count];

		if (entries && !entries[i])
			continue;
		w->entry = i;
		kp_archive_entry(a, i, &w->info);
		kp_archive_meta(a, i, &w->meta);
		w->is_file = w->meta.path.data != NULL;
		d.count++;
	}
	/* equal work stands together now: only the first of it is done, and speaks for the rest */
	kp_sort_by(work, d.count, sizeof(*work), work_keys, KP_COUNT(work_keys));
	jobs = jobs ? jobs : option_jobs();
	/* this thread is one of them */
	while (started + 1 < jobs && started + 1 < d.count && started < JOBS_MAX &&
	       pthread_create(&threads[started], NULL, decode_some, &d) == 0)
		started++;
	decode_some(&d);
	while (started)
		pthread_join(threads[--started], NULL);
	for (size_t i = 0; i < d.count; i++) {
		if (!is_same_work(work, i))
			fault = work[i].fault;
		of[work[i].entry] = fault;
	}
	for (size_t e = 0; e < n; e++) {
		KP_AUTO_FREE char *key = NULL, *arch = NULL;
		struct kp_entry_info info;

		if (entries)
			entries[e] = of[e];
		if (!of[e])
			continue;
		fine = false;
		kp_archive_entry(a, e, &info);
		key = xescape(info.key);
		arch = xescape(info.arch);
		report_error(kp_archive_path(a), "%s %s: %s", key, arch, of[e]);
	}
	for (size_t i = 0; i < d.count; i++)
		free(work[i].fault);
	return fine;
}
