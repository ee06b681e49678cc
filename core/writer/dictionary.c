/* SPDX-License-Identifier: MIT */
#include "dictionary.h"
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/archive/shared.h"
#include "encode.h"
#include "rolling.h"

/*
 * Samples of the content are places where the hash of 32 bytes has a certain value.  A
 * sample is worth the number of other blocks that have it, too; a part is worth its
 * samples, except those of parts that are chosen already.
 */

/* Bytes of a part. */
enum { PART = 4096 };

/* One in 32 places is a sample, or fewer, so that there are about SAMPLES of them. */
enum { RATE_LOG = 5 };
static const uint64_t SAMPLES = 8 << 20;

/* A part has at most so many times the average number of samples: in bytes that repeat
 * themselves every place may be one. */
static const size_t PART_SAMPLES = 4;

/* Bits of a sample by which samples are distinguished. */
enum { VALUE_BITS = 24 };

/* An archive of fewer blocks needs no dictionary. */
enum { BLOCKS_MIN = 4 };

struct part {
	size_t first; /* its samples are [first, next part's first) */
	uint64_t worth;
};

/* The blocks that have samples with one value. */
struct seen {
	uint32_t blocks; /* that have one; 0: the dictionary has it already */
	uint32_t last;   /* the number of the last such block, from 1 */
};

struct choice {
	const struct kp_unique *unique;
	uint64_t block_size;
	unsigned rate_log;
	uint8_t *buf;     /* a block */
	uint32_t *values; /* of the samples, in order */
	size_t n_values, values_cap;
	struct seen *seen; /* by value */
	struct part *parts;
	size_t n_parts, parts_cap;
	size_t *heap; /* numbers of parts, the most worth first */
	size_t n_heap;
};

static void choice_fini(struct choice *c)
{
	free(c->buf);
	free(c->values);
	free(c->seen);
	free(c->parts);
	free(c->heap);
}

/* --- samples ------------------------------------------------------------------------ */

static bool add_sample(struct choice *c, uint64_t hash, uint32_t block)
{
	uint32_t value = (uint32_t)hash * UINT32_C(0x9e3779b1) >> (32 - VALUE_BITS);
	size_t first = c->parts[c->n_parts - 1].first;

	if (c->n_values - first > PART_SAMPLES * (PART >> c->rate_log))
		return true;
	/* a run of equal bytes is one sample */
	if (c->n_values > first && c->values[c->n_values - 1] == value)
		return true;
	if (!kp_grow(&c->values, c->n_values, &c->values_cap, sizeof(*c->values)))
		return false;
	c->values[c->n_values++] = value;
	if (c->seen[value].last != block + 1) {
		c->seen[value].last = block + 1;
		c->seen[value].blocks++;
	}
	return true;
}

static bool begin_part(struct choice *c)
{
	if (!kp_grow(&c->parts, c->n_parts, &c->parts_cap, sizeof(*c->parts)))
		return false;
	c->parts[c->n_parts++] = (struct part){.first = c->n_values};
	return true;
}

static bool sample_block(struct choice *c, uint32_t block, size_t size)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < size; i++) {
		if (i % PART == 0 && !begin_part(c))
			return false;
		hash = kp_rolling_add(hash, c->buf[i]);
		if ((uint32_t)hash >> (32 - c->rate_log) == 0 &&
		    !add_sample(c, hash, block))
			return false;
	}
	return true;
}

static kpack_error_t sample_blocks(struct choice *c, struct kpackx_error *why)
{
	uint32_t block = 0;

	for (uint64_t at = 0, n; at < c->unique->size; at += n, block++) {
		n = c->unique->size - at;
		if (n > c->block_size)
			n = c->block_size;
		KP_TRY(kp_unique_read(c->unique, at, c->buf, (size_t)n, why));
		if (!sample_block(c, block, (size_t)n))
			return kp_fail_memory(why, c->n_values, "samples");
	}
	return KPACK_SUCCESS;
}

/* --- the parts that are worth most ---------------------------------------------------- */

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

/* The order of parts: the one that is worth more, then the first. */
static bool is_better(const struct choice *c, size_t a, size_t b)
{
	if (c->parts[a].worth != c->parts[b].worth)
		return c->parts[a].worth > c->parts[b].worth;
	return a < b;
}

static void sift_down(struct choice *c, size_t i)
{
	for (;;) {
		size_t best = i;

		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < c->n_heap; k++)
			if (is_better(c, c->heap[k], c->heap[best]))
				best = k;
		if (best == i)
			return;
		size_t swapped = c->heap[i];
		c->heap[i] = c->heap[best];
		c->heap[best] = swapped;
		i = best;
	}
}

static void make_heap(struct choice *c)
{
	for (c->n_heap = 0; c->n_heap < c->n_parts; c->n_heap++) {
		c->heap[c->n_heap] = c->n_heap;
		c->parts[c->n_heap].worth = worth_now(c, c->n_heap);
	}
	for (size_t i = c->n_heap / 2; i-- > 0;)
		sift_down(c, i);
}

/*
 * Take the best part out of the heap; false: no part is worth anything.  The worth of a
 * part only sinks, so that only the first one of the heap has to be looked at.
 */
static bool take_best(struct choice *c, size_t *part)
{
	while (c->n_heap) {
		size_t best = c->heap[0];
		uint64_t worth = worth_now(c, best);

		if (worth == c->parts[best].worth) {
			c->heap[0] = c->heap[--c->n_heap];
			sift_down(c, 0);
			*part = best;
			return worth;
		}
		c->parts[best].worth = worth;
		sift_down(c, 0);
	}
	return false;
}

static void cover_samples(struct choice *c, size_t part)
{
	for (size_t i = c->parts[part].first; i < samples_end(c, part); i++)
		c->seen[c->values[i]].blocks = 0;
}

/* Let the best part be the last one: encoders with small tables find it best. */
static void reverse_parts(size_t *parts, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		size_t swapped = parts[i];

		parts[i] = parts[n - 1 - i];
		parts[n - 1 - i] = swapped;
	}
}

/* --- the dictionary ------------------------------------------------------------------- */

/*
 * A dictionary that begins as zstd's trained ones do would not be taken for content: leave
 * out its first byte.
 */
static void spoil_magic(uint8_t *bytes, size_t *size)
{
	while (*size >= 4 && kp_le32(bytes) == KP_TRAINED_DICTIONARY)
		memmove(bytes, bytes + 1, --*size);
}

static kpack_error_t read_parts(const struct choice *c, const size_t *parts, size_t n,
				uint8_t *out, size_t *size, struct kpackx_error *why)
{
	*size = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t at = (uint64_t)parts[i] * PART, left = c->unique->size - at;
		size_t part = left < PART ? (size_t)left : PART;

		KP_TRY(kp_unique_read(c->unique, at, out + *size, part, why));
		*size += part;
	}
	spoil_magic(out, size);
	return KPACK_SUCCESS;
}

static kpack_error_t choose_parts(struct choice *c, size_t most, uint8_t **out,
				  size_t *size, struct kpackx_error *why)
{
	size_t *chosen = malloc((most / PART + 1) * sizeof(*chosen)), n = 0;
	kpack_error_t err = KPACK_SUCCESS;
	uint8_t *bytes;

	c->heap = malloc((c->n_parts + 1) * sizeof(*c->heap));
	bytes = malloc(most + 1);
	if (!chosen || !c->heap || !bytes) {
		free(chosen);
		free(bytes);
		return kp_fail_memory(why, most, "a dictionary");
	}
	make_heap(c);
	for (; n < most / PART && take_best(c, &chosen[n]); n++)
		cover_samples(c, chosen[n]);
	reverse_parts(chosen, n);
	*size = 0;
	err = read_parts(c, chosen, n, bytes, size, why);
	free(chosen);
	if (!err && *size)
		*out = bytes;
	else
		free(bytes);
	return err;
}

kpack_error_t kp_dictionary_choose(const struct kp_unique *u, uint64_t block_size,
				   size_t most, uint8_t **out, size_t *size,
				   struct kpackx_error *why)
{
	struct choice c = {.unique = u, .block_size = block_size, .rate_log = RATE_LOG};
	kpack_error_t err;

	*out = NULL;
	*size = 0;
	if (u->size < BLOCKS_MIN * block_size)
		return KPACK_SUCCESS;
	while (u->size >> c.rate_log > SAMPLES)
		c.rate_log++;
	c.buf = malloc((size_t)block_size);
	c.seen = calloc((size_t)1 << VALUE_BITS, sizeof(*c.seen));
	err = c.buf && c.seen ? sample_blocks(&c, why)
			      : kp_fail_memory(why, 8 << VALUE_BITS, "samples");
	if (!err)
		err = choose_parts(&c, most, out, size, why);
	choice_fini(&c);
	return err;
}
