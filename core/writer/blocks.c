/* SPDX-License-Identifier: MIT */
#include "blocks.h"
#include <pthread.h>
#include <stdlib.h>
#include "effort.h"
#include "core/base/hash.h"
#include "core/archive/shared.h"
#include "dictionary.h"
#include "internal.h"
#include "share.h"

static const uint64_t DICTIONARY = 8 << 20;

/* Blocks of a batch for each thread, and at most. */
enum { BATCH_SHARE = 4, BATCH_MAX = 64 };

/* Bytes that the threads' encoders may take, unless one alone takes more. */
static const uint64_t ENCODERS = UINT64_C(192) << 20;

/* Blocks are compressed at up to two levels. */
enum { LOW, HIGH, LEVELS };

/* How blocks are compressed. */
struct method {
	struct kp_effort effort;
	struct kp_dictionary *dictionaries[LEVELS]; /* NULL: none */
	uint32_t *densities; /* of all blocks, if there are two levels */
};

/* The blocks of one archive, from the unique bytes to the table of their frames. */
struct blocks_writer {
	const struct kp_unique *unique;
	uint64_t count; /* blocks of the unique bytes */
	struct method method;
	unsigned jobs;
	struct kp_writer *archive;
	struct kp_blocks *out;
};

struct block {
	uint8_t *frame;
	size_t size;
};

struct job {
	pthread_t thread;
	struct batch *batch;
	struct kp_encoder *encoders[LEVELS];
	uint8_t *raw; /* a block's bytes */
	kpack_error_t err;
	struct kpackx_error why;
};

/* Blocks that are compressed at the same time. */
struct batch {
	const struct kp_unique *unique;
	const struct method *method;
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
	free(b->hashes);
	*b = (struct kp_blocks){0};
}

/* Append the next frame, and note its size and hash. */
static kpack_error_t append_frame(const struct blocks_writer *w, const uint8_t *frame,
				  size_t size, struct kpackx_error *why)
{
	struct kp_blocks *out = w->out;

	KP_TRY(kp_writer_append(w->archive, frame, size, why));
	kp_put_le32(out->sizes + 4 * (size_t)out->n, (uint32_t)size);
	kp_put_le64(out->hashes + 8 * (size_t)out->n, kp_hash64(frame, size, 0));
	out->n++;
	return KPACK_SUCCESS;
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

/* Which of the levels the I-th block of B has. */
static int level_of(const struct batch *b, size_t i)
{
	const struct method *m = b->method;

	return m->densities && kp_effort_high(&m->effort, m->densities[b->first + i])
		       ? HIGH
		       : LOW;
}

static kpack_error_t encode_block(struct job *j, size_t i)
{
	const struct kp_unique *u = j->batch->unique;
	uint64_t at = (j->batch->first + i) * KP_SHARE_BLOCK, left = u->size - at;
	size_t n = (size_t)(left < KP_SHARE_BLOCK ? left : KP_SHARE_BLOCK);
	struct block *block = &j->batch->blocks[i];

	KP_TRY(kp_unique_read(u, at, j->raw, n, &j->why));
	return kp_encode(j->encoders[level_of(j->batch, i)], (struct kp_span){j->raw, n},
			 0, block->frame, kp_encode_bound(KP_SHARE_BLOCK, 0),
			 &block->size, &j->why);
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

static kpack_error_t add_encoder(struct job *j, int i, struct kpackx_error *why)
{
	const struct method *m = j->batch->method;

	KP_TRY(kp_encoder_new(i == LOW ? m->effort.low : m->effort.high, &j->encoders[i],
			      why));
	return kp_encoder_use(j->encoders[i], m->dictionaries[i], why);
}

static kpack_error_t add_job(struct batch *b, struct kpackx_error *why)
{
	struct job *j = &b->jobs[b->n_jobs++];

	j->batch = b;
	j->raw = malloc(KP_SHARE_BLOCK);
	if (!j->raw)
		return kp_fail_memory(why, KP_SHARE_BLOCK, "a block");
	KP_TRY(add_encoder(j, LOW, why));
	return b->method->densities ? add_encoder(j, HIGH, why) : KPACK_SUCCESS;
}

/* Let both encoders take the memory that they need for a block. */
static kpack_error_t fill_encoders(struct job *j, uint8_t *frame,
				   struct kpackx_error *why)
{
	size_t size;

	memset(j->raw, 0, KP_SHARE_BLOCK);
	for (int i = 0; i < LEVELS; i++)
		KP_TRY(kp_encode(j->encoders[i], (struct kp_span){j->raw, KP_SHARE_BLOCK},
				 0, frame, kp_encode_bound(KP_SHARE_BLOCK, 0), &size,
				 why));
	return KPACK_SUCCESS;
}

/* Once the first encoder has all its memory: let further encoders run beside it. */
static kpack_error_t add_jobs(struct batch *b, struct kpackx_error *why)
{
	uint64_t each = 1;

	for (int i = 0; i < LEVELS; i++)
		if (b->jobs[0].encoders[i])
			each += kp_encoder_memory(b->jobs[0].encoders[i]);
	while (b->n_jobs < b->most_jobs && (b->n_jobs + 1) * each <= ENCODERS)
		KP_TRY(add_job(b, why));
	return KPACK_SUCCESS;
}

static kpack_error_t append_batch(const struct batch *b, const struct blocks_writer *w,
				  struct kpackx_error *why)
{
	for (unsigned i = 0; i < b->n_jobs; i++)
		if (b->jobs[i].err)
			return kp_fail(why, b->jobs[i].err, "%s", b->jobs[i].why.text);
	for (size_t i = 0; i < b->n; i++)
		KP_TRY(append_frame(w, b->blocks[i].frame, b->blocks[i].size, why));
	return KPACK_SUCCESS;
}

static kpack_error_t encode_all(struct batch *b, const struct blocks_writer *w,
				struct kpackx_error *why)
{
	uint64_t begin = b->first;

	KP_TRY(add_job(b, why));
	if (b->method->densities)
		KP_TRY(fill_encoders(&b->jobs[0], b->blocks[0].frame, why));
	for (; b->first < w->count; b->first += b->n) {
		uint64_t left = w->count - b->first;

		/* the first alone, to see what memory an encoder takes */
		b->n = b->first == begin ? 1 : left < b->cap ? (size_t)left : b->cap;
		b->next = 0;
		run_jobs(b);
		KP_TRY(append_batch(b, w, why));
		if (b->first == begin)
			KP_TRY(add_jobs(b, why));
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
		for (int k = 0; k < LEVELS; k++)
			kp_encoder_free(b->jobs[i].encoders[k]);
		free(b->jobs[i].raw);
	}
	for (size_t i = 0; b->blocks && i < b->cap; i++)
		free(b->blocks[i].frame);
	free(b->jobs);
	free(b->blocks);
	pthread_mutex_destroy(&b->lock);
}

/* Write the blocks from number FIRST on. */
static kpack_error_t write_blocks(const struct blocks_writer *w, uint64_t first,
				  struct kpackx_error *why)
{
	struct batch b = {.unique = w->unique, .method = &w->method, .first = first};
	kpack_error_t err;

	if (first == w->count)
		return KPACK_SUCCESS;

	pthread_mutex_init(&b.lock, NULL);
	err = alloc_batch(&b, w->jobs)
		      ? encode_all(&b, w, why)
		      : kp_fail_memory(why, b.cap * KP_SHARE_BLOCK, "blocks");
	batch_fini(&b);
	return err;
}

/* --- levels --------------------------------------------------------------------------- */

static void method_fini(struct method *m)
{
	for (int i = 0; i < LEVELS; i++)
		kp_dictionary_free(m->dictionaries[i]);
	free(m->densities);
	*m = (struct method){0};
}

static struct kp_source source_of_block(const struct kp_unique *u, uint64_t block)
{
	uint64_t at = block * KP_SHARE_BLOCK, left = u->size - at;

	return kp_source_fd(u->file.fd, at,
			    left < KP_SHARE_BLOCK ? left : KP_SHARE_BLOCK);
}

static kpack_error_t measure_blocks(const struct blocks_writer *w, struct kp_encoder *e,
				    struct kp_density_sample *samples,
				    struct kpackx_error *why)
{
	uint32_t *densities = w->method.densities;

	for (uint64_t i = 0; i < w->count; i++) {
		struct kp_source block = source_of_block(w->unique, i);

		KP_TRY(kp_density(e, &block, &densities[i], why));
		samples[i] = (struct kp_density_sample){densities[i], block.size};
	}
	return KPACK_SUCCESS;
}

/* Choose the levels for NS. */
static kpack_error_t choose_levels(struct blocks_writer *w, uint64_t ns,
				   struct kpackx_error *why)
{
	size_t count = (size_t)w->count;
	struct method *m = &w->method;
	struct kp_density_sample *samples;
	struct kp_encoder *e = NULL;
	kpack_error_t err;

	m->densities = malloc((count + 1) * sizeof(*m->densities));
	samples = malloc((count + 1) * sizeof(*samples));
	err = m->densities && samples
		      ? kp_encoder_new(KP_DENSITY_LEVEL, &e, why)
		      : kp_fail_memory(why, count * sizeof(*samples), "blocks");
	if (!err)
		err = measure_blocks(w, e, samples, why);
	if (!err)
		m->effort = kp_effort_choose(true, ns, samples, count);
	kp_encoder_free(e);
	free(samples);
	if (m->effort.low != m->effort.high)
		return err;
	free(m->densities);
	m->densities = NULL;
	return err;
}

/* Let M have BYTES, which are not empty, as its dictionaries. */
static kpack_error_t add_dictionaries(struct method *m, struct kp_span bytes,
				      struct kpackx_error *why)
{
	KP_TRY(kp_dictionary_new(m->effort.low, bytes, &m->dictionaries[LOW], why));
	if (m->effort.low == m->effort.high)
		return KPACK_SUCCESS;
	return kp_dictionary_new(m->effort.high, bytes, &m->dictionaries[HIGH], why);
}

/* --- the dictionary ------------------------------------------------------------------- */

/* Blocks that are compressed with and without the dictionary, to see whether it pays. */
enum { TRIALS = 8 };

/* The dictionary's frame. */
struct dictionary {
	uint8_t *frame;
	size_t size;
};

static kpack_error_t encode_dictionary(struct kp_span bytes, int level,
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
	return err;
}

/* Compress some of the blocks at M's lower level. */
static kpack_error_t try_blocks(const struct blocks_writer *w, const struct method *m,
				uint64_t *size, struct kpackx_error *why)
{
	struct batch b = {.unique = w->unique, .method = m};
	kpack_error_t err;

	*size = 0;
	pthread_mutex_init(&b.lock, NULL);
	err = alloc_batch(&b, 1) ? add_job(&b, why)
				 : kp_fail_memory(why, KP_SHARE_BLOCK, "blocks");
	for (unsigned i = 0; i < TRIALS && !err; i++) {
		b.first = i * w->count / TRIALS;
		err = encode_block(&b.jobs[0], 0);
		if (err)
			kp_fail(why, err, "%s", b.jobs[0].why.text);
		*size += b.blocks[0].size;
	}
	batch_fini(&b);
	return err;
}

/*
 * Whether the dictionary saves more bytes than the SIZE that it takes: of random bytes it
 * does not.
 */
static kpack_error_t pays_off(const struct blocks_writer *w, uint64_t size, bool *pays,
			      struct kpackx_error *why)
{
	struct method low = {.effort = kp_effort_fixed(w->method.effort.low)};
	uint64_t with, without;

	KP_TRY(try_blocks(w, &low, &without, why));
	low.dictionaries[LOW] = w->method.dictionaries[LOW]; /* borrowed */
	KP_TRY(try_blocks(w, &low, &with, why));
	*pays = without > with && (without - with) * w->count / TRIALS > size;
	return KPACK_SUCCESS;
}

/* Make the method's dictionaries of BYTES and write them, if they pay. */
static kpack_error_t write_dictionary(struct blocks_writer *w, struct kp_span bytes,
				      struct kpackx_error *why)
{
	struct method *m = &w->method;
	struct dictionary d = {0};
	bool pays = false;
	kpack_error_t err = encode_dictionary(bytes, m->effort.high, &d, why);

	if (!err)
		err = add_dictionaries(m, bytes, why);
	if (!err)
		err = pays_off(w, d.size, &pays, why);
	if (!err && pays) {
		w->out->dictionary_size = bytes.size;
		err = append_frame(w, d.frame, d.size, why);
	}
	for (int i = 0; i < LEVELS && !pays; i++) {
		kp_dictionary_free(m->dictionaries[i]);
		m->dictionaries[i] = NULL;
	}
	free(d.frame);
	return err;
}

/* Choose a dictionary, and write it and all blocks. */
static kpack_error_t write_anew(struct blocks_writer *w, struct kpackx_error *why)
{
	uint64_t most = w->unique->size / KP_DICTIONARY_SHARE;
	struct kp_span bytes = {0};
	uint8_t *owned = NULL;
	kpack_error_t err;

	KP_TRY(kp_dictionary_choose(w->unique, KP_SHARE_BLOCK,
				    (size_t)(most < DICTIONARY ? most : DICTIONARY),
				    &owned, &bytes.size, why));
	bytes.data = owned;
	err = bytes.size ? write_dictionary(w, bytes, why) : KPACK_SUCCESS;
	free(owned);
	return err ? err : write_blocks(w, 0, why);
}

/* --- blocks of another archive --------------------------------------------------------- */

/* A frame without a hash is decoded, to see whether it is intact. */
static kpack_error_t copy_frame(const struct blocks_writer *w, const struct kp_copied *c,
				uint32_t frame, struct kpackx_error *why)
{
	size_t size = (size_t)kp_frame_stored(c->from, frame);
	uint8_t *bytes = malloc(size + 1);
	struct kp_frame *decoded;
	kpack_error_t err = bytes ? KPACK_SUCCESS : kp_fail_memory(why, size, "a block");

	if (!err && !c->from->hashes) {
		err = kp_pool_get(c->from, frame, &decoded, why);
		if (!err)
			kp_pool_put(decoded);
	}
	if (!err)
		err = kp_shared_read_frame(c->from, frame, bytes, why);
	if (!err)
		err = append_frame(w, bytes, size, why);
	free(bytes);
	return err;
}

static kpack_error_t copy_frames(const struct blocks_writer *w, const struct kp_copied *c,
				 struct kpackx_error *why)
{
	uint32_t first = c->from->first_block;

	w->out->dictionary_size = c->from->dictionary_size;
	if (first)
		KP_TRY(copy_frame(w, c, 0, why));
	for (uint32_t i = 0; i < c->n; i++)
		KP_TRY(copy_frame(w, c, first + c->blocks[i], why));
	return KPACK_SUCCESS;
}

/* Let M have the dictionary of C's archive, if it has one. */
static kpack_error_t take_dictionary(const struct kp_copied *c, struct method *m,
				     struct kpackx_error *why)
{
	size_t size = (size_t)c->from->dictionary_size;
	struct kp_frame *f;
	kpack_error_t err;

	if (!size)
		return KPACK_SUCCESS;
	KP_TRY(kp_pool_get(c->from, 0, &f, why));
	err = add_dictionaries(m, (struct kp_span){kp_frame_bytes(f), size}, why);
	kp_pool_put(f);
	return err;
}

static kpack_error_t write_after(struct blocks_writer *w, const struct kp_copied *c,
				 struct kpackx_error *why)
{
	KP_TRY(copy_frames(w, c, why));
	if (c->n == w->count)
		return KPACK_SUCCESS;
	KP_TRY(take_dictionary(c, &w->method, why));
	return write_blocks(w, c->n, why);
}

kpack_error_t kp_blocks_write(const struct kp_unique *u, const struct kp_copied *c,
			      const struct kp_blocks_how *how, struct kp_writer *w,
			      struct kp_blocks *out, struct kpackx_error *why)
{
	struct blocks_writer b = {
		.unique = u,
		.count = u->size / KP_SHARE_BLOCK + (u->size % KP_SHARE_BLOCK != 0),
		.method = {.effort = kp_effort_fixed(how->level)},
		.jobs = how->jobs,
		.archive = w,
		.out = out,
	};
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct kp_blocks){.sizes = malloc(4 * ((size_t)b.count + 1)),
				  .hashes = malloc(8 * ((size_t)b.count + 1))};
	if (!out->sizes || !out->hashes)
		return kp_fail_memory(why, 12 * b.count, "a table of frames");
	if (how->ns)
		err = choose_levels(&b, how->ns, why);
	if (!err)
		err = c->from ? write_after(&b, c, why) : write_anew(&b, why);
	method_fini(&b.method);
	return err;
}
