/* SPDX-License-Identifier: MIT */
#include "blocks.h"
#include <pthread.h>
#include <stdlib.h>
#include "core/codec/codec.h"
#include "core/shared/pool.h"
#include "dictionary.h"
#include "internal.h"
#include "share.h"

static const uint64_t DICTIONARY = 8 << 20;

/* The dictionary is at most this part of the unique bytes. */
enum { DICTIONARY_SHARE = 4 };

/* Blocks of a batch for each thread, and at most. */
enum { BATCH_SHARE = 4, BATCH_MAX = 64 };

/* Bytes that the threads' encoders may take, unless one alone takes more. */
static const uint64_t ENCODERS = UINT64_C(192) << 20;

struct block {
	uint8_t *frame;
	size_t size;
};

struct job {
	pthread_t thread;
	struct batch *batch;
	struct kp_encoder *encoder;
	uint8_t *raw; /* a block's bytes */
	kpack_error_t err;
	struct kpackx_error why;
};

/* Blocks that are compressed at the same time. */
struct batch {
	const struct kp_unique *unique;
	uint64_t first; /* number of the first block */
	size_t n, cap;
	size_t next; /* the next one to take; guarded by LOCK */
	pthread_mutex_t lock;
	struct block *blocks;
	struct job *jobs;
	unsigned n_jobs, most_jobs;
};

void kp_blocks_fini(struct kp_blocks *b)
{
	free(b->sizes);
	*b = (struct kp_blocks){0};
}

/* --- one block ------------------------------------------------------------------------ */

static bool take_block(struct batch *b, size_t *i)
{
	bool some;

	pthread_mutex_lock(&b->lock);
	some = b->next < b->n;
	if (some)
		*i = b->next++;
	pthread_mutex_unlock(&b->lock);
	return some;
}

static kpack_error_t encode_block(struct job *j, size_t i)
{
	const struct kp_unique *u = j->batch->unique;
	uint64_t at = (j->batch->first + i) * KP_SHARE_BLOCK, left = u->size - at;
	size_t n = (size_t)(left < KP_SHARE_BLOCK ? left : KP_SHARE_BLOCK);
	struct block *block = &j->batch->blocks[i];

	KP_TRY(kp_unique_read(u, at, j->raw, n, &j->why));
	return kp_encode(j->encoder, (struct kp_span){j->raw, n}, 0, block->frame,
			 kp_encode_bound(KP_SHARE_BLOCK, 0), &block->size, &j->why);
}

static void *encode_blocks(void *arg)
{
	struct job *j = arg;
	size_t i;

	while (!j->err && take_block(j->batch, &i))
		j->err = encode_block(j, i);
	return NULL;
}

/* --- batches -------------------------------------------------------------------------- */

/* Run the jobs, all but the first on threads of their own. */
static void run_jobs(struct batch *b)
{
	unsigned started = 1;

	while (started < b->n_jobs &&
	       pthread_create(&b->jobs[started].thread, NULL, encode_blocks,
			      &b->jobs[started]) == 0)
		started++;
	encode_blocks(&b->jobs[0]);
	while (started > 1)
		pthread_join(b->jobs[--started].thread, NULL);
}

static kpack_error_t add_job(struct batch *b, int level,
			     const struct kp_dictionary *dictionary,
			     struct kpackx_error *why)
{
	struct job *j = &b->jobs[b->n_jobs++];

	j->batch = b;
	j->raw = malloc(KP_SHARE_BLOCK);
	if (!j->raw)
		return kp_fail_memory(why, KP_SHARE_BLOCK, "a block");
	KP_TRY(kp_encoder_new(level, &j->encoder, why));
	return kp_encoder_use(j->encoder, dictionary, why);
}

/* Once the first encoder has all its memory: let further encoders run beside it. */
static kpack_error_t add_jobs(struct batch *b, int level,
			      const struct kp_dictionary *dictionary,
			      struct kpackx_error *why)
{
	uint64_t each = kp_encoder_memory(b->jobs[0].encoder) + 1;

	while (b->n_jobs < b->most_jobs && (b->n_jobs + 1) * each <= ENCODERS)
		KP_TRY(add_job(b, level, dictionary, why));
	return KPACK_SUCCESS;
}

static kpack_error_t append_batch(const struct batch *b, struct kp_writer *w,
				  struct kp_blocks *out, struct kpackx_error *why)
{
	for (unsigned i = 0; i < b->n_jobs; i++)
		if (b->jobs[i].err)
			return kp_fail(why, b->jobs[i].err, "%s", b->jobs[i].why.text);
	for (size_t i = 0; i < b->n; i++) {
		KP_TRY(kp_writer_append(w, b->blocks[i].frame, b->blocks[i].size, why));
		kp_put_le32(out->sizes + 4 * (size_t)out->n++,
			    (uint32_t)b->blocks[i].size);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t encode_all(struct batch *b, uint64_t count, int level,
				const struct kp_dictionary *dictionary,
				struct kp_writer *w, struct kp_blocks *out,
				struct kpackx_error *why)
{
	uint64_t begin = b->first;

	KP_TRY(add_job(b, level, dictionary, why));
	for (; b->first < count; b->first += b->n) {
		uint64_t left = count - b->first;

		/* the first alone, to see what memory an encoder takes */
		b->n = b->first == begin ? 1 : left < b->cap ? (size_t)left : b->cap;
		b->next = 0;
		run_jobs(b);
		KP_TRY(append_batch(b, w, out, why));
		if (b->first == begin)
			KP_TRY(add_jobs(b, level, dictionary, why));
	}
	return KPACK_SUCCESS;
}

static bool alloc_batch(struct batch *b, unsigned jobs)
{
	b->most_jobs = jobs < 1 ? 1 : jobs > BATCH_MAX ? BATCH_MAX : jobs;
	b->cap = b->most_jobs * BATCH_SHARE;
	if (b->cap > BATCH_MAX)
		b->cap = BATCH_MAX;
	b->jobs = calloc(b->most_jobs, sizeof(*b->jobs));
	b->blocks = calloc(b->cap, sizeof(*b->blocks));
	for (size_t i = 0; b->blocks && i < b->cap; i++) {
		b->blocks[i].frame = malloc(kp_encode_bound(KP_SHARE_BLOCK, 0));
		if (!b->blocks[i].frame)
			return false;
	}
	return b->jobs && b->blocks;
}

static void batch_fini(struct batch *b)
{
	for (unsigned i = 0; b->jobs && i < b->n_jobs; i++) {
		kp_encoder_free(b->jobs[i].encoder);
		free(b->jobs[i].raw);
	}
	for (size_t i = 0; b->blocks && i < b->cap; i++)
		free(b->blocks[i].frame);
	free(b->jobs);
	free(b->blocks);
	pthread_mutex_destroy(&b->lock);
}

/* Write the blocks from number FIRST on. */
static kpack_error_t write_blocks(const struct kp_unique *u, uint64_t first,
				  uint64_t count, int level, unsigned jobs,
				  const struct kp_dictionary *dictionary,
				  struct kp_writer *w, struct kp_blocks *out,
				  struct kpackx_error *why)
{
	struct batch b = {.unique = u, .first = first};
	kpack_error_t err;

	if (first == count)
		return KPACK_SUCCESS;

	pthread_mutex_init(&b.lock, NULL);
	err = alloc_batch(&b, jobs)
		      ? encode_all(&b, count, level, dictionary, w, out, why)
		      : kp_fail_memory(why, b.cap * KP_SHARE_BLOCK, "blocks");
	batch_fini(&b);
	return err;
}

/* --- the dictionary ------------------------------------------------------------------- */

/* Blocks that are compressed with and without the dictionary, to see whether it pays. */
enum { TRIALS = 8 };

struct dictionary {
	struct kp_dictionary *encoder;
	uint8_t *frame;
	size_t size;
};

static void dictionary_fini(struct dictionary *d)
{
	kp_dictionary_free(d->encoder);
	free(d->frame);
	*d = (struct dictionary){0};
}

static kpack_error_t make_dictionary(struct kp_span bytes, int level,
				     struct dictionary *d, struct kpackx_error *why)
{
	size_t cap = kp_encode_bound(bytes.size, 0);
	struct kp_encoder *e = NULL;
	kpack_error_t err;

	d->frame = malloc(cap);
	if (!d->frame)
		return kp_fail_memory(why, cap, "a dictionary");
	KP_TRY(kp_encoder_new(level, &e, why));
	err = kp_encode(e, bytes, 0, d->frame, cap, &d->size, why);
	kp_encoder_free(e);
	return err ? err : kp_dictionary_new(level, bytes, &d->encoder, why);
}

/* Compress some of the COUNT blocks with a dictionary; NULL: without. */
static kpack_error_t try_blocks(const struct kp_unique *u, uint64_t count, int level,
				const struct kp_dictionary *dictionary, uint64_t *size,
				struct kpackx_error *why)
{
	struct batch b = {.unique = u};
	kpack_error_t err;

	*size = 0;
	pthread_mutex_init(&b.lock, NULL);
	err = alloc_batch(&b, 1) ? add_job(&b, level, dictionary, why)
				 : kp_fail_memory(why, KP_SHARE_BLOCK, "blocks");
	for (unsigned i = 0; i < TRIALS && !err; i++) {
		b.first = i * count / TRIALS;
		err = encode_block(&b.jobs[0], 0);
		if (err)
			kp_fail(why, err, "%s", b.jobs[0].why.text);
		*size += b.blocks[0].size;
	}
	batch_fini(&b);
	return err;
}

/* Whether D saves more bytes than it takes: of random bytes it does not. */
static kpack_error_t pays_off(const struct kp_unique *u, uint64_t count, int level,
			      const struct dictionary *d, bool *pays,
			      struct kpackx_error *why)
{
	uint64_t with, without;

	KP_TRY(try_blocks(u, count, level, NULL, &without, why));
	KP_TRY(try_blocks(u, count, level, d->encoder, &with, why));
	*pays = without > with && (without - with) * count / TRIALS > d->size;
	return KPACK_SUCCESS;
}

static kpack_error_t append_dictionary(struct kp_writer *w, const struct dictionary *d,
				       struct kp_blocks *out, struct kpackx_error *why)
{
	kp_put_le32(out->sizes, (uint32_t)d->size);
	out->n = 1;
	return kp_writer_append(w, d->frame, d->size, why);
}

static kpack_error_t write_with(const struct kp_unique *u, struct kp_span bytes,
				uint64_t count, int level, unsigned jobs,
				struct kp_writer *w, struct kp_blocks *out,
				struct kpackx_error *why)
{
	struct dictionary d = {0};
	kpack_error_t err = KPACK_SUCCESS;
	bool pays = false;

	if (bytes.size)
		err = make_dictionary(bytes, level, &d, why);
	if (!err && bytes.size)
		err = pays_off(u, count, level, &d, &pays, why);
	if (!err && pays) {
		out->dictionary_size = bytes.size;
		err = append_dictionary(w, &d, out, why);
	}
	if (!err)
		err = write_blocks(u, 0, count, level, jobs, pays ? d.encoder : NULL, w,
				   out, why);
	dictionary_fini(&d);
	return err;
}

/* --- blocks of another archive --------------------------------------------------------- */

static kpack_error_t copy_frame(const struct kp_copied *c, uint32_t frame,
				struct kp_writer *w, struct kp_blocks *out,
				struct kpackx_error *why)
{
	struct kp_shared_frame f = kp_shared_frame(c->from, frame);

	kp_put_le32(out->sizes + 4 * (size_t)out->n++, (uint32_t)f.stored);
	return kp_writer_append_file(w, kp_shared_fd(c->from), f.offset, f.stored, why);
}

static kpack_error_t copy_frames(const struct kp_copied *c, struct kp_writer *w,
				 struct kp_blocks *out, struct kpackx_error *why)
{
	uint32_t first = kp_shared_first_block(c->from);

	out->dictionary_size = kp_shared_dictionary_size(c->from);
	if (first)
		KP_TRY(copy_frame(c, 0, w, out, why));
	for (uint32_t i = 0; i < c->n; i++)
		KP_TRY(copy_frame(c, first + c->blocks[i], w, out, why));
	return KPACK_SUCCESS;
}

/* Let *OUT have the archive's dictionary; NULL: it has none. */
static kpack_error_t take_dictionary(const struct kp_copied *c, int level,
				     struct kp_dictionary **out, struct kpackx_error *why)
{
	size_t size = (size_t)kp_shared_dictionary_size(c->from);
	struct kp_frame *f;
	kpack_error_t err;

	*out = NULL;
	if (!size)
		return KPACK_SUCCESS;
	KP_TRY(kp_pool_get(c->from, 0, &f, why));
	err = kp_dictionary_new(level, (struct kp_span){kp_frame_bytes(f), size}, out,
				why);
	kp_pool_put(f);
	return err;
}

static kpack_error_t write_after(const struct kp_unique *u, const struct kp_copied *c,
				 uint64_t count, int level, unsigned jobs,
				 struct kp_writer *w, struct kp_blocks *out,
				 struct kpackx_error *why)
{
	struct kp_dictionary *dictionary;
	kpack_error_t err;

	KP_TRY(copy_frames(c, w, out, why));
	if (c->n == count)
		return KPACK_SUCCESS;
	KP_TRY(take_dictionary(c, level, &dictionary, why));
	err = write_blocks(u, c->n, count, level, jobs, dictionary, w, out, why);
	kp_dictionary_free(dictionary);
	return err;
}

kpack_error_t kp_blocks_write(const struct kp_unique *u, const struct kp_copied *c,
			      int level, unsigned jobs, struct kp_writer *w,
			      struct kp_blocks *out, struct kpackx_error *why)
{
	uint64_t count = u->size / KP_SHARE_BLOCK + (u->size % KP_SHARE_BLOCK != 0);
	uint64_t most = u->size / DICTIONARY_SHARE;
	uint8_t *bytes = NULL;
	size_t size = 0;
	kpack_error_t err;

	*out = (struct kp_blocks){.sizes = malloc(4 * ((size_t)count + 1))};
	if (!out->sizes)
		return kp_fail_memory(why, 4 * count, "a table of frames");
	if (c->from)
		return write_after(u, c, count, level, jobs, w, out, why);
	KP_TRY(kp_dictionary_choose(u, KP_SHARE_BLOCK,
				    (size_t)(most < DICTIONARY ? most : DICTIONARY),
				    &bytes, &size, why));
	err = write_with(u, (struct kp_span){bytes, size}, count, level, jobs, w, out,
			 why);
	free(bytes);
	return err;
}
