/* SPDX-License-Identifier: MIT */
/*
 * A dictionary is chosen from the unique bytes and written if it pays; then all blocks are
 * compressed with it, in batches, on several threads.  An archive that begins with another
 * one's blocks has that one's dictionary, as their frames refer to it.
 *
 * The bytes must not depend on the number of threads: a block's level depends on its own
 * density, its frame on nothing but its bytes, level and dictionary, and a batch is written in
 * order when all of it is encoded.  Threads only take the next block of the batch.
 *
 * What takes memory is bounded: a batch of at most 64 frames, encoders of 192 MiB together
 * unless one alone takes more, and for choosing a dictionary samples of the bytes, not the
 * bytes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "effort.h"
#include "internal.h"

/* Blocks of a batch for each thread, and at most. */
enum { BATCH_SHARE = 4, BATCH_MAX = 64 };

/* Bytes that the threads' encoders may take, unless one alone takes more. */
static const uint64_t ENCODERS = UINT64_C(192) << 20;

/* Blocks are compressed at up to two levels. */
enum { LOW, HIGH, LEVELS };

struct blocks_writer {
	struct kp_writer *archive;
	const struct kp_unique *unique; /* its bytes */
	uint64_t count;                 /* blocks of them */
	struct kp_blocks *out;

	/* how they are compressed */
	struct kp_effort effort;
	ZSTD_CDict *dictionaries[LEVELS]; /* NULL: none */
	uint32_t *densities;              /* of all blocks, if there are two levels */

	/* blocks that are compressed at the same time */
	uint64_t first; /* number of the first one */
	size_t n, cap;
	atomic_size_t next; /* the next one to take */
	struct block {
		uint8_t *frame;
		size_t size;
	} * blocks;
	struct job {
		pthread_t thread;
		struct blocks_writer *w;
		struct kp_encoder *encoders[LEVELS];
		uint8_t *raw; /* a block's bytes */
		kpack_error_t err;
		struct kpackx_error why;
	} * jobs;
	unsigned n_jobs, most_jobs;
};

/* Append the next frame, and note its size and hash. */
static kpack_error_t append_frame(struct blocks_writer *w, const uint8_t *frame,
				  size_t size, struct kpackx_error *why)
{
	struct kp_blocks *out = w->out;

	KP_TRY(kp_writer_append(w->archive, frame, size, why));
	kp_put_le32(out->sizes + 4 * (size_t)out->n, (uint32_t)size);
	kp_put_le64(out->hashes + 8 * (size_t)out->n, kp_hash64(frame, size, 0));
	out->n++;
	return KPACK_SUCCESS;
}

static struct kp_source block_source(const struct kp_unique *u, uint64_t block)
{
	uint64_t at = block * KP_SHARE_BLOCK, left = u->size - at;

	return kp_source_fd(u->file.fd, at,
			    left < KP_SHARE_BLOCK ? left : KP_SHARE_BLOCK);
}

/* --- choosing a dictionary ------------------------------------------------------------------ */

/*
 * The dictionary has the parts of the unique bytes whose content is in most blocks.  Samples
 * of the content are places where the hash of 32 bytes has a certain value.  A sample is
 * worth the number of other blocks that have it, too; a part is worth its samples, except
 * those of parts that are chosen already.
 */

/* Bytes of a part, and at most of a dictionary. */
enum { PART = 4096, DICTIONARY = 8 << 20 };

/* One in 32 places is a sample, or fewer, so that there are about SAMPLES of them. */
enum { RATE_LOG = 5, SAMPLES = 8 << 20 };

/* A part has at most so many times the average number of samples: in bytes that repeat
 * themselves every place may be one. */
enum { PART_SAMPLES = 4 };

/* Bits of a sample by which samples are distinguished. */
enum { VALUE_BITS = 24 };

/* An archive of fewer blocks needs no dictionary. */
enum { BLOCKS_MIN = 4 };

struct choice {
	uint32_t *values; /* of the samples, in order */
	size_t n_values, values_cap;
	/* the blocks that have samples with one value */
	struct seen {
		uint32_t blocks; /* that have one; 0: the dictionary has it already */
		uint32_t last;   /* the number of the last such block, from 1 */
	} * seen;
	struct part {
		size_t first; /* its samples are [first, next part's first) */
		uint64_t worth;
	} * parts;
	size_t n_parts, parts_cap;
	size_t *heap; /* numbers of parts, the most worth first */
	size_t n_heap;
};

/* Take samples of all blocks; BUF has room for one. */
static kpack_error_t take_samples(struct choice *c, const struct blocks_writer *w,
				  uint8_t *buf, struct kpackx_error *why)
{
	unsigned rate_log = RATE_LOG;

	while (w->unique->size >> rate_log > SAMPLES)
		rate_log++;
	for (uint32_t block = 0; block < w->count; block++) {
		struct kp_source s = block_source(w->unique, block);
		uint64_t rolling = 0;
		size_t first = 0;

		KP_TRY(kp_source_read(&s, 0, buf, (size_t)s.size, why));
		for (size_t i = 0; i < s.size; i++) {
			uint32_t value;

			if (i % PART == 0) {
				KP_TRY(kp_room(&c->parts, c->n_parts, &c->parts_cap,
					       "samples", why));
				first = c->n_values;
				c->parts[c->n_parts++] = (struct part){.first = first};
			}
			rolling = kp_rolling_add(rolling, buf[i]);
			if ((uint32_t)rolling >> (32 - rate_log) ||
			    c->n_values - first >
				    (size_t)PART_SAMPLES * (PART >> rate_log))
				continue;
			value = (uint32_t)rolling * UINT32_C(0x9e3779b1) >>
				(32 - VALUE_BITS);
			/* a run of equal bytes is one sample */
			if (c->n_values > first && c->values[c->n_values - 1] == value)
				continue;
			KP_TRY(kp_room(&c->values, c->n_values, &c->values_cap, "samples",
				       why));
			c->values[c->n_values++] = value;
			if (c->seen[value].last != block + 1) {
				c->seen[value].last = block + 1;
				c->seen[value].blocks++;
			}
		}
	}
	return KPACK_SUCCESS;
}

static size_t samples_end(const struct choice *c, size_t part)
{
	return part + 1 < c->n_parts ? c->parts[part + 1].first : c->n_values;
}

static uint64_t worth_now(const struct choice *c, size_t part)
{
	uint64_t worth = 0;

	for (size_t i = c->parts[part].first; i < samples_end(c, part); i++)
		if (c->seen[c->values[i]].blocks)
			worth += c->seen[c->values[i]].blocks - 1;
	return worth;
}

/* The part that is worth more comes first; of equal ones the first. */
static void sift_down(struct choice *c, size_t i)
{
	for (;;) {
		size_t best = i, *heap = c->heap, moved;

		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < c->n_heap; k++) {
			uint64_t x = c->parts[heap[k]].worth;
			uint64_t y = c->parts[heap[best]].worth;

			if (x > y || (x == y && heap[k] < heap[best]))
				best = k;
		}
		if (best == i)
			return;
		moved = heap[i];
		heap[i] = heap[best];
		heap[best] = moved;
		i = best;
	}
}

/* Choose at most MOST bytes for OUT; *SIZE 0: there is nothing worth it. */
static kpack_error_t choose_dictionary(const struct blocks_writer *w, size_t most,
				       uint8_t *out, size_t *size,
				       struct kpackx_error *why)
{
	size_t *chosen = NULL, n = 0;
	struct choice c = {0};
	uint8_t *buf;
	kpack_error_t err;

	*size = 0;
	err = kp_new(&buf, KP_SHARE_BLOCK, "samples", why);
	if (!err)
		err = kp_new(&c.seen, (size_t)1 << VALUE_BITS, "samples", why);
	if (!err)
		err = take_samples(&c, w, buf, why);
	if (!err)
		err = kp_new(&c.heap, c.n_parts, "samples", why);
	if (!err)
		err = kp_new(&chosen, most / PART + 1, "samples", why);
	if (err)
		goto out;
	for (; c.n_heap < c.n_parts; c.n_heap++) {
		c.heap[c.n_heap] = c.n_heap;
		c.parts[c.n_heap].worth = worth_now(&c, c.n_heap);
	}
	for (size_t i = c.n_heap / 2; i-- > 0;)
		sift_down(&c, i);
	while (n < most / PART && c.n_heap) {
		size_t best = c.heap[0];
		uint64_t worth = worth_now(&c, best);

		/* worth only sinks, so that only the first part has to be looked at */
		if (worth != c.parts[best].worth) {
			c.parts[best].worth = worth;
			sift_down(&c, 0);
			continue;
		}
		if (!worth)
			break;
		chosen[n++] = best;
		c.heap[0] = c.heap[--c.n_heap];
		sift_down(&c, 0);
		for (size_t i = c.parts[best].first; i < samples_end(&c, best); i++)
			c.seen[c.values[i]].blocks = 0;
	}
	/* the best part is the last one: encoders with small tables find it best */
	while (n-- && !err) {
		uint64_t at = (uint64_t)chosen[n] * PART, left = w->unique->size - at;
		size_t part = left < PART ? (size_t)left : PART;

		err = kp_unique_read(w->unique, at, out + *size, part, why);
		*size += part;
	}
	/* one that began as zstd's trained ones do would not be taken for content */
	while (*size >= 4 && kp_le32(out) == KP_TRAINED_DICTIONARY)
		memmove(out, out + 1, --*size);
out:
	free(buf);
	free(chosen);
	free(c.values);
	free(c.seen);
	free(c.parts);
	free(c.heap);
	return err;
}

/* --- compressing ------------------------------------------------------------------------------- */

/* Encode block BLOCK into FRAME with E; RAW has room for its bytes. */
static kpack_error_t encode_block(const struct blocks_writer *w, uint64_t block,
				  struct kp_encoder *e, uint8_t *raw, struct block *out,
				  struct kpackx_error *why)
{
	struct kp_source s = block_source(w->unique, block);

	KP_TRY(kp_source_read(&s, 0, raw, (size_t)s.size, why));
	return kp_encode(e, (struct kp_span){raw, (size_t)s.size}, 0, out->frame,
			 kp_encode_bound(KP_SHARE_BLOCK, 0), &out->size, why);
}

static void *encode_some(void *arg)
{
	struct job *j = arg;
	struct blocks_writer *w = j->w;
	size_t i;

	while (!j->err && (i = atomic_fetch_add(&w->next, 1)) < w->n) {
		uint64_t block = w->first + i;
		bool high =
			w->densities && kp_effort_high(&w->effort, w->densities[block]);

		j->err = encode_block(w, block, j->encoders[high ? HIGH : LOW], j->raw,
				      &w->blocks[i], &j->why);
	}
	return NULL;
}

static kpack_error_t add_job(struct blocks_writer *w, struct kpackx_error *why)
{
	const int levels[LEVELS] = {w->effort.low, w->effort.high};
	struct job *j = &w->jobs[w->n_jobs++];

	j->w = w;
	KP_TRY(kp_new(&j->raw, KP_SHARE_BLOCK, "a block", why));
	for (int i = 0; i < (w->densities ? LEVELS : 1); i++) {
		KP_TRY(kp_encoder_new(levels[i], &j->encoders[i], why));
		KP_TRY(kp_encoder_use(j->encoders[i], w->dictionaries[i], why));
	}
	return KPACK_SUCCESS;
}

/* Compress the blocks of a batch on all jobs, the first of which is this thread. */
static kpack_error_t encode_batch(struct blocks_writer *w, size_t n,
				  struct kpackx_error *why)
{
	unsigned started = 1;

	w->n = n;
	w->next = 0;
	while (started < w->n_jobs && pthread_create(&w->jobs[started].thread, NULL,
						     encode_some, &w->jobs[started]) == 0)
		started++;
	encode_some(&w->jobs[0]);
	while (started > 1)
		pthread_join(w->jobs[--started].thread, NULL);
	for (unsigned i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].err)
			return kp_fail(why, w->jobs[i].err, "%s", w->jobs[i].why.text);
	for (size_t i = 0; i < n; i++)
		KP_TRY(append_frame(w, w->blocks[i].frame, w->blocks[i].size, why));
	w->first += n;
	return KPACK_SUCCESS;
}

/* Write the blocks from number FIRST on. */
static kpack_error_t write_blocks(struct blocks_writer *w, uint64_t first,
				  struct kpackx_error *why)
{
	size_t bound = kp_encode_bound(KP_SHARE_BLOCK, 0), size;
	uint64_t each = 1;
	struct job *j;

	if (first == w->count)
		return KPACK_SUCCESS;
	w->first = first;
	w->cap = w->most_jobs * BATCH_SHARE < BATCH_MAX ? w->most_jobs * BATCH_SHARE
							: BATCH_MAX;
	KP_TRY(kp_new(&w->jobs, w->most_jobs, "blocks", why));
	KP_TRY(kp_new(&w->blocks, w->cap, "blocks", why));
	for (size_t i = 0; i < w->cap; i++) {
		w->blocks[i].frame = malloc(bound);
		if (!w->blocks[i].frame)
			return kp_fail_memory(why, bound, "blocks");
	}
	KP_TRY(add_job(w, why));
	/*
	 * The first block alone, to see what memory an encoder takes, and then as many encoders
	 * beside it as may be.  If there are two, both take what they need for a block.
	 */
	j = &w->jobs[0];
	for (int i = 0; i < LEVELS && w->densities; i++)
		KP_TRY(kp_encode(j->encoders[i], (struct kp_span){j->raw, KP_SHARE_BLOCK},
				 0, w->blocks[0].frame, bound, &size, why));
	KP_TRY(encode_batch(w, 1, why));
	for (int i = 0; i < LEVELS; i++)
		if (j->encoders[i])
			each += kp_encoder_memory(j->encoders[i]);
	while (w->n_jobs < w->most_jobs && (w->n_jobs + 1) * each <= ENCODERS)
		KP_TRY(add_job(w, why));
	while (w->first < w->count) {
		uint64_t left = w->count - w->first;

		KP_TRY(encode_batch(w, left < w->cap ? (size_t)left : w->cap, why));
	}
	return KPACK_SUCCESS;
}

/* Choose the levels for NS nanoseconds. */
static kpack_error_t choose_levels(struct blocks_writer *w, uint64_t ns,
				   struct kpackx_error *why)
{
	KP_AUTO_FREE struct kp_density_sample *samples = NULL;
	struct kp_encoder *e;
	kpack_error_t err = KPACK_SUCCESS;

	KP_TRY(kp_new(&w->densities, (size_t)w->count, "blocks", why));
	KP_TRY(kp_new(&samples, (size_t)w->count, "blocks", why));
	KP_TRY(kp_encoder_new(KP_DENSITY_LEVEL, &e, why));
	for (uint64_t i = 0; i < w->count && !err; i++) {
		struct kp_source block = block_source(w->unique, i);

		err = kp_density(e, &block, &w->densities[i], why);
		samples[i] = (struct kp_density_sample){w->densities[i], block.size};
	}
	kp_encoder_free(e);
	if (err)
		return err;
	w->effort = kp_effort_choose(true, ns, samples, (size_t)w->count);
	if (w->effort.low == w->effort.high) {
		free(w->densities);
		w->densities = NULL;
	}
	return KPACK_SUCCESS;
}

/* --- the dictionary ---------------------------------------------------------------------------- */

/* Let encoders have BYTES, which are not empty, as their dictionary. */
static kpack_error_t use_dictionary(struct blocks_writer *w, struct kp_span bytes,
				    struct kpackx_error *why)
{
	const int levels[LEVELS] = {w->effort.low, w->effort.high};

	for (int i = 0; i < (w->densities ? LEVELS : 1); i++) {
		w->dictionaries[i] = ZSTD_createCDict(bytes.data, bytes.size, levels[i]);
		if (!w->dictionaries[i])
			return kp_fail_memory(why, bytes.size, "a dictionary");
	}
	return KPACK_SUCCESS;
}

/*
 * Whether the dictionary saves more bytes than the SIZE that it takes: of random bytes it
 * does not.  Some of the blocks are compressed with and without it, at the lower level; BUF
 * has room for a block and its frame.
 */
static kpack_error_t pays_off(const struct blocks_writer *w, uint64_t size, uint8_t *buf,
			      bool *pays, struct kpackx_error *why)
{
	enum { TRIALS = 8 };
	struct block b = {.frame = buf + KP_SHARE_BLOCK};
	uint64_t sums[2] = {0}; /* without, with it */
	struct kp_encoder *e;
	kpack_error_t err;

	KP_TRY(kp_encoder_new(w->effort.low, &e, why));
	for (unsigned i = 0; i < 2 * TRIALS; i++) {
		if (i == TRIALS && (err = kp_encoder_use(e, w->dictionaries[LOW], why)))
			break;
		err = encode_block(w, i % TRIALS * w->count / TRIALS, e, buf, &b, why);
		if (err)
			break;
		sums[i / TRIALS] += b.size;
	}
	kp_encoder_free(e);
	*pays = sums[0] > sums[1] && (sums[0] - sums[1]) * w->count / TRIALS > size;
	return err;
}

/* Choose a dictionary, and write it if it pays. */
static kpack_error_t write_dictionary(struct blocks_writer *w, struct kpackx_error *why)
{
	uint64_t share = w->unique->size / KP_DICTIONARY_SHARE;
	size_t most = share < DICTIONARY ? (size_t)share : DICTIONARY, size;
	size_t cap = kp_encode_bound(most, 0), block = kp_encode_bound(KP_SHARE_BLOCK, 0);
	KP_AUTO_FREE uint8_t *bytes = NULL, *frame = NULL, *buf = NULL;
	struct kp_encoder *e;
	struct kp_span d;
	kpack_error_t err;
	bool pays;

	if (w->unique->size < BLOCKS_MIN * KP_SHARE_BLOCK)
		return KPACK_SUCCESS;
	bytes = malloc(most + 1);
	if (!bytes)
		return kp_fail_memory(why, most, "a dictionary");
	KP_TRY(choose_dictionary(w, most, bytes, &d.size, why));
	if (!d.size)
		return KPACK_SUCCESS;
	d.data = bytes;
	frame = malloc(cap);
	buf = malloc(KP_SHARE_BLOCK + block);
	if (!frame || !buf)
		return kp_fail_memory(why, cap, "a dictionary");
	KP_TRY(kp_encoder_new(w->effort.high, &e, why));
	err = kp_encode(e, d, 0, frame, cap, &size, why);
	kp_encoder_free(e);
	if (err)
		return err;
	KP_TRY(use_dictionary(w, d, why));
	KP_TRY(pays_off(w, size, buf, &pays, why));
	if (pays) {
		w->out->dictionary_size = d.size;
		return append_frame(w, frame, size, why);
	}
	for (int i = 0; i < LEVELS; i++) {
		ZSTD_freeCDict(w->dictionaries[i]);
		w->dictionaries[i] = NULL;
	}
	return KPACK_SUCCESS;
}

/* --- blocks of another archive --------------------------------------------------------- */

/* A frame without a hash is decoded, to see whether it is intact. */
static kpack_error_t copy_frame(struct blocks_writer *w, const struct kp_shared *from,
				uint32_t frame, struct kpackx_error *why)
{
	size_t size = (size_t)kp_frame_stored(from, frame);
	KP_AUTO_FREE uint8_t *bytes = malloc(size + 1);
	struct kp_frame *decoded;

	if (!bytes)
		return kp_fail_memory(why, size, "a block");
	if (!from->hashes) {
		KP_TRY(kp_pool_get(from, frame, &decoded, why));
		kp_pool_put(decoded);
	}
	KP_TRY(kp_shared_read_frame(from, frame, bytes, why));
	return append_frame(w, bytes, size, why);
}

static void blocks_writer_fini(struct blocks_writer *w)
{
	for (unsigned i = 0; i < w->n_jobs; i++) {
		for (int k = 0; k < LEVELS; k++)
			kp_encoder_free(w->jobs[i].encoders[k]);
		free(w->jobs[i].raw);
	}
	for (size_t i = 0; w->blocks && i < w->cap; i++)
		free(w->blocks[i].frame);
	for (int i = 0; i < LEVELS; i++)
		ZSTD_freeCDict(w->dictionaries[i]);
	free(w->jobs);
	free(w->blocks);
	free(w->densities);
}

kpack_error_t kp_writer_pack_blocks(struct kp_writer *archive, uint64_t ns,
				    struct kp_blocks *out, struct kpackx_error *why)
{
	const struct kp_unique *u = &archive->share->unique;
	KP_AUTO(blocks_writer) all = {.archive = archive, .unique = u, .out = out};
	struct blocks_writer *w = &all;
	const struct kp_copied *c = &archive->copied;
	const struct kp_shared *from = c->from;
	unsigned jobs = archive->jobs;
	struct kp_frame *f;
	kpack_error_t err;

	w->count = u->size / KP_SHARE_BLOCK + (u->size % KP_SHARE_BLOCK != 0);
	w->effort = kp_effort_fixed(archive->level);
	w->most_jobs = jobs < 1 ? 1 : jobs > BATCH_MAX ? BATCH_MAX : jobs;
	KP_TRY(kp_new(&out->sizes, 4 * ((size_t)w->count + 1), "a table of frames", why));
	KP_TRY(kp_new(&out->hashes, 8 * ((size_t)w->count + 1), "a table of frames",
		      why));
	if (ns)
		KP_TRY(choose_levels(w, ns, why));
	if (!from) {
		KP_TRY(write_dictionary(w, why));
		return write_blocks(w, 0, why);
	}
	/* the frames of the other archive, and what follows with its dictionary */
	out->dictionary_size = from->dictionary_size;
	if (from->first_block)
		KP_TRY(copy_frame(w, from, 0, why));
	for (uint32_t i = 0; i < c->n; i++)
		KP_TRY(copy_frame(w, from, from->first_block + c->blocks[i], why));
	if (from->first_block && c->n < w->count) {
		KP_TRY(kp_pool_get(from, 0, &f, why));
		err = use_dictionary(w,
				     (struct kp_span){kp_frame_bytes(f),
						      (size_t)from->dictionary_size},
				     why);
		kp_pool_put(f);
		if (err)
			return err;
	}
	return write_blocks(w, c->n, why);
}
