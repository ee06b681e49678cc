/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the content cache: archives that are made up, which stand in for core,
 * and an executor that runs one job after another, in whatever order a test wants.
 */
#ifndef TESTS_UNIT_FS_CONTENT_FAKE_H
#define TESTS_UNIT_FS_CONTENT_FAKE_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "core/archive/entry.h"
#include "core/archive/shared.h"
#include "fs/content/internal.h"
#include "fs/base/clock.h"
#include "fs/content/content.h"

#define KIB 1024
#define MIB (1024 * KIB)
#define NONE UINT64_MAX

/* ---- archives ---- */

/* The facts that core would have about each entry. */
static struct file {
	uint64_t size, chunk;
	uint64_t fails;         /* the first damaged byte; NONE: there is none */
	uint64_t window;        /* of the first frame */
	uint64_t decoder;       /* bytes that a stream holds */
	uint64_t wide_at, wide; /* offset and window of a frame with another window */
	uint64_t rows;          /* number of rows in its chunk table */
	uint64_t bad;           /* its checksum does not match */
	_Atomic uint64_t whole; /* it has one checksum for all, and is not checked yet */
	uint64_t origin;
	atomic_uint opened; /* number of times that a decode began */
	atomic_uint steps;
} files[512];

struct kpack_archive {
	size_t entries;
	bool plain;      /* stored without compression */
	uint64_t blocks; /* bytes of a block of a shared archive; 0: it is not shared */
};

enum { ORIGINS = 3 };
static struct kpack_archive archives[ORIGINS];
static struct origin origins[ORIGINS];

static atomic_uint running, most_running, open_passes, open_tables, open_decoders;
static _Atomic uint64_t decoder_bytes; /* that a decoder has when it is left */

/* Blocks of shared archives: POOL bytes after POOL_AFTER more calls, before that none. */
static _Atomic uint64_t pool;
static atomic_int pool_after;

/*
 * Called where a decoder holds no lock: before each step of a decode of FILE (STEP counts
 * from 1), when a decode ends (STEP is 0), and while a read of FILE is answered.
 */
enum { ANSWER = 1000000 };
static void (*between)(uint32_t file, unsigned step);

/*
 * Only the first bytes of each GRID bytes, and the last ones of the entry, are written and
 * compared: so decoding takes no time.  They are others once the archive was changed.
 */
enum { GRID = 32 * KIB, STAMP = 16 };

static uint8_t stamp(uint32_t file, uint64_t at)
{
	return (uint8_t)(((at + 1) * UINT64_C(0x9e3779b97f4a7c15) + file * 40503U) >> 33);
}

static uint64_t next_stamp(uint32_t file, uint64_t at)
{
	if (at % GRID < STAMP || at + STAMP >= files[file].size)
		return at;
	at = (at / GRID + 1) * GRID;
	return at + STAMP < files[file].size ? at : files[file].size - STAMP;
}

static void fill(uint32_t file, uint8_t *buf, uint64_t from, uint64_t size)
{
	uint8_t other = origins[files[file].origin].changed ? 0x55 : 0;

	for (uint64_t at = from; (at = next_stamp(file, at)) < from + size; at++)
		buf[at - from] = stamp(file, at) ^ other;
}

static inline bool is_right(uint32_t file, const uint8_t *buf, uint64_t from,
			    uint64_t size)
{
	for (uint64_t at = from; size && (at = next_stamp(file, at)) < from + size; at++)
		if (buf[at - from] != stamp(file, at))
			return false;
	return true;
}

static inline struct origin_entry entry(uint32_t file)
{
	return (struct origin_entry){&origins[files[file].origin], file};
}

static inline void reset_files(void)
{
	memset(files, 0, sizeof(files));
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		files[i].fails = NONE, files[i].window = 64 * MIB;
	for (uint32_t i = 0; i < ORIGINS; i++) {
		archives[i] = (struct kpack_archive){.entries = 16};
		origins[i] = (struct origin){
			.archive = &archives[i], .serial = i + 1, .refs = 1};
	}
	running = most_running = open_passes = open_tables = open_decoders = 0;
	decoder_bytes = 1000;
	pool = 0;
	pool_after = 0;
	between = NULL;
}

static kpack_error_t corrupt(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "frame: made to fail");
}

static bool is_damaged(const struct file *f, uint64_t from, uint64_t size)
{
	return from <= f->fails && f->fails < from + size;
}

static void step(uint32_t file)
{
	unsigned n = ++files[file].steps;

	if (between)
		between(file, n);
}

struct origin *origin_ref(struct origin *o)
{
	o->refs++;
	return o;
}

void origin_unref(struct origin *o)
{
	if (o)
		o->refs--;
}

bool origin_intact(struct origin *o)
{
	return !o->changed;
}

void kp_archive_entry(const struct kpack_archive *a, size_t entry,
		      struct kp_entry_info *out)
{
	(void)a;
	*out = (struct kp_entry_info){.size = files[entry].size};
}

size_t kp_archive_entry_count(const struct kpack_archive *a)
{
	return a->entries;
}

enum kp_form kp_entry_form(const struct kpack_archive *a, size_t entry, uint64_t *unit)
{
	*unit = a->blocks ? a->blocks : files[entry].chunk;
	if (a->blocks)
		return KP_FORM_BLOCKS;
	return *unit ? KP_FORM_CHUNKS : a->plain ? KP_FORM_PLAIN : KP_FORM_FRAMES;
}

/* As if all bytes of an entry before the first MiB were in blocks of their own. */
uint64_t kp_entry_visits(const struct kpack_archive *a, size_t entry, uint64_t offset,
			 uint64_t size)
{
	(void)a, (void)entry;
	return offset < MIB ? size / 4096 : 1;
}

uint64_t kp_pool_held(void)
{
	return pool_after-- > 0 ? 0 : pool;
}

void kp_pool_limit(uint64_t most)
{
	(void)most;
}

bool kp_entry_has_parts(const struct kpack_archive *a, size_t entry)
{
	(void)a;
	return !files[entry].whole;
}

kpack_error_t kp_entry_check_parts(const struct kpack_archive *a, size_t entry,
				   uint64_t most, struct kpackx_error *why)
{
	(void)most;
	if (kp_entry_has_parts(a, entry))
		return KPACK_SUCCESS;
	files[entry].opened++;
	step((uint32_t)entry);
	if (files[entry].bad)
		return corrupt(why);
	files[entry].whole = 0;
	return KPACK_SUCCESS;
}

bool kp_entry_differs(const struct kpackx_error *why)
{
	(void)why;
	return false;
}

kpack_error_t kp_entry_read_range(const struct kpack_archive *a, size_t entry,
				  uint64_t offset, void *buf, size_t size, size_t *got,
				  struct kpackx_error *why)
{
	KP_TRY(kp_entry_check_parts(a, entry, UINT64_MAX, why));
	files[entry].opened++;
	step((uint32_t)entry);
	if (is_damaged(&files[entry], offset, size))
		return corrupt(why);
	fill((uint32_t)entry, buf, offset, size);
	*got = size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_entry_window(const struct kpack_archive *a, size_t entry,
			      uint64_t *window, struct kpackx_error *why)
{
	(void)a, (void)why;
	*window = files[entry].window;
	return KPACK_SUCCESS;
}

uint64_t kp_entry_memory(const struct kpack_archive *a, size_t entry)
{
	(void)a;
	return files[entry].decoder;
}

struct kp_reader {
	uint32_t file;
	uint64_t done, limit;
	bool open, pieces, table, too_wide;
	bool failed; /* only close is allowed */
};

kpack_error_t kp_reader_reopen(struct kp_reader *d, const struct kpack_archive *a,
			       size_t entry, enum kp_read_how how,
			       struct kpackx_error *why)
{
	unsigned now;

	(void)a, (void)why;
	assert_false(d->open);
	*d = (struct kp_reader){.file = (uint32_t)entry,
				.open = true,
				.pieces = how == KP_READ_PIECES,
				.table = how == KP_READ_PARTS};
	if (d->table) {
		open_tables++;
		return KPACK_SUCCESS;
	}
	files[entry].opened++;
	if (d->pieces)
		open_passes++;
	else if ((now = ++running) > most_running)
		most_running = now;
	return KPACK_SUCCESS;
}

kpack_error_t kp_reader_open(const struct kpack_archive *a, size_t entry,
			     enum kp_read_how how, struct kp_reader **out,
			     struct kpackx_error *why)
{
	*out = calloc(1, sizeof(**out));
	open_decoders += how != KP_READ_PARTS;
	return kp_reader_reopen(*out, a, entry, how, why);
}

uint64_t kp_reader_leave(struct kp_reader *d)
{
	bool was_open = d->open && !d->table;

	if (was_open && d->pieces)
		open_passes--;
	else if (was_open)
		running--;
	d->open = false;
	if (was_open && between)
		between(d->file, 0);
	return decoder_bytes;
}

void kp_reader_limit_window(struct kp_reader *d, uint64_t max)
{
	d->limit = max;
}

kpack_error_t kp_reader_next(struct kp_reader *d, void *buf, uint64_t size,
			     uint64_t *done, struct kpackx_error *why)
{
	struct file *f = &files[d->file];
	uint64_t left = f->size - d->done, n = left < size ? left : size;

	assert_false(d->failed);
	step(d->file);
	if (d->pieces)
		assert_int_equal(n, size);
	d->too_wide = d->pieces && f->wide && d->done >= f->wide_at && f->wide > d->limit;
	d->failed = is_damaged(f, d->done, n) || d->too_wide;
	if (d->failed)
		return corrupt(why);
	fill(d->file, (uint8_t *)buf + (d->pieces ? 0 : d->done), d->done, n);
	*done = d->done += n;
	if (d->done == f->size && f->whole && f->bad)
		return corrupt(why);
	if (d->done == f->size)
		f->whole = 0;
	return KPACK_SUCCESS;
}

bool kp_reader_too_wide(const struct kp_reader *d)
{
	return d->too_wide;
}

void kp_reader_close(struct kp_reader *d)
{
	if (!d)
		return;
	kp_reader_leave(d);
	if (d->table)
		open_tables--;
	else
		open_decoders--;
	free(d);
}

uint64_t kp_reader_chunks(const struct kp_reader *d)
{
	return files[d->file].rows;
}

kpack_error_t kp_reader_at(struct kp_reader *d, uint64_t at, void *buf, uint64_t size,
			   struct kpackx_error *why)
{
	struct file *f = &files[d->file];

	f->opened++;
	step(d->file);
	if (is_damaged(f, at, size))
		return corrupt(why);
	fill(d->file, buf, at, size);
	return KPACK_SUCCESS;
}

/* ---- memory, which goes back to the system only when the test ends ---- */

int malloc_trim(size_t pad)
{
	(void)pad;
	return 0;
}

/* Blocks of powers of two that were returned; each begins with the address of the next. */
static uint8_t *spare_blocks[32];

static unsigned order_of(uint64_t size)
{
	unsigned order = 4;

	while (UINT64_C(1) << order < size)
		order++;
	return order;
}

/* Bytes of the blocks that are in use. */
static uint64_t buffers_used;

void buffers_init(struct buffers *b, uint64_t size)
{
	*b = (struct buffers){.block_max = (size_t)size};
}

/* Every block was returned. */
void buffers_fini(struct buffers *b)
{
	(void)b;
	assert_int_equal(buffers_used, 0);
}

bool buffers_get(struct buffers *b, uint64_t size, struct buffer *out)
{
	unsigned order = order_of(size);
	uint8_t *data = spare_blocks[order];

	if (data)
		memcpy(&spare_blocks[order], data, sizeof(data));
	else
		data = malloc((size_t)1 << order);
	*out = (struct buffer){data, size};
	(void)b;
	buffers_used += size;
	return data != NULL;
}

/* What comes from a block that was returned is not right. */
void buffers_put(struct buffers *b, struct buffer block)
{
	unsigned order = order_of(block.cap);

	if (!block.data)
		return;
	for (size_t at = 0; at + STAMP <= block.cap; at += GRID)
		memset(block.data + at, 0xdd, STAMP);
	(void)b;
	buffers_used -= block.cap;
	memcpy(block.data, &spare_blocks[order], sizeof(block.data));
	spare_blocks[order] = block.data;
}

void buffers_trim(struct buffers *b)
{
	(void)b;
}

/* ---- the executor ---- */

/* No time passes by itself. */
static uint64_t nanoseconds;

uint64_t clock_ns(void)
{
	return nanoseconds += 1000;
}

/*
 * The decoders differ in nothing, so they are counted: AWAKE ones have a job to look for,
 * ASLEEP ones wait to be woken, and those that are inside of a job are on the stack.
 */
static struct runner {
	struct executor executor;
	bool (*run)(void *arg, enum executor_job job);
	void *arg;
	pthread_mutex_t *lock;
	unsigned awake, asleep;
	bool waits; /* the job that ran last waits */
	bool tends; /* the other job has been woken, or waits only for a time */
	bool tending;
} runner;

static bool runner_start(struct executor *e,
			 bool (*run)(void *arg, enum executor_job job), void *arg)
{
	(void)e;
	runner.run = run;
	runner.arg = arg;
	return true;
}

static void runner_wait(struct executor *e, enum executor_job job, pthread_mutex_t *lock,
			unsigned seconds)
{
	(void)e;
	runner.lock = lock;
	if (job == JOB_DECODE)
		runner.waits = true;
	else
		runner.tends = seconds > 0;
}

static void runner_wake(struct executor *e, enum executor_job job)
{
	(void)e;
	assert_int_not_equal(pthread_mutex_trylock(runner.lock), 0);
	if (job == JOB_TEND)
		runner.tends = true;
	else if (runner.asleep)
		runner.asleep--, runner.awake++;
}

static void runner_end(struct executor *e, pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	e->stopped = true;
	pthread_mutex_unlock(lock);
}

/* No lock is held, so that another thread could do anything now. */
static void assert_unlocked(void)
{
	assert_int_equal(pthread_mutex_trylock(runner.lock), 0);
	pthread_mutex_unlock(runner.lock);
}

/* Let a decoder that is awake do one job, inside of the jobs that run; false: all sleep. */
static bool run_one(void)
{
	bool outer = runner.waits, goes_on;

	if (!runner.awake)
		return false;
	runner.awake--;
	runner.waits = false;
	goes_on = runner.run(runner.arg, JOB_DECODE);
	assert_true(goes_on || runner.executor.stopped);
	*(runner.waits || !goes_on ? &runner.asleep : &runner.awake) += 1;
	runner.waits = outer;
	return true;
}

static void run_all(void)
{
	while (run_one())
		;
}

static void pass_time(uint64_t seconds)
{
	nanoseconds += seconds * 1000000000;
	for (int i = 0; i < 3 && runner.tends && !runner.tending; i++) {
		runner.tending = true;
		runner.run(runner.arg, JOB_TEND);
		runner.tending = false;
	}
}

static struct executor *runner_new(unsigned decoders)
{
	runner = (struct runner){
		.executor = {runner_start, runner_wait, runner_wake, runner_end, false},
		.awake = decoders,
		.tends = true,
	};
	return &runner.executor;
}

/* ---- reads ---- */

struct read {
	uint32_t file;
	uint64_t off;
	size_t len;
	kpack_error_t expected; /* unless a test sets `check` */
	unsigned answered;
};

static struct content *content;
static unsigned failures, changes, n_answered, n_right;
static void (*check)(const struct read *r, kpack_error_t code);

static void answer(void *token, const void *data, size_t size,
		   const struct kpackx_error *why)
{
	struct read *r = token;
	uint64_t size_of = files[r->file].size,
		 left = r->off < size_of ? size_of - r->off : 0;

	assert_unlocked();
	assert_int_equal(r->answered++, 0);
	n_answered++;
	if (check)
		check(r, why ? why->code : KPACK_SUCCESS);
	else
		assert_int_equal(why ? why->code : KPACK_SUCCESS, r->expected);
	if (why)
		return;
	n_right += size > 0;
	assert_int_equal(size, left < r->len ? left : r->len);
	assert_true(is_right(r->file, data, r->off, size));
	assert_true(size == 0 || !files[r->file].whole);
	if (between && size)
		between(r->file, ANSWER);
}

static void failure(void *user, struct origin_entry what, const struct kpackx_error *why)
{
	(void)user, (void)what;
	assert_unlocked();
	assert_true(why->text[0] != 0);
	failures++;
}

static void changed(void *user, struct origin *o)
{
	(void)user;
	assert_unlocked();
	assert_true(o->changed);
	changes++;
}

static void make(uint64_t budget, unsigned decoders, bool ahead)
{
	struct content_options options = {.budget = budget,
					  .executor = runner_new(decoders),
					  .ahead = ahead,
					  .failure = failure,
					  .changed = changed};

	failures = changes = n_answered = n_right = 0;
	assert_int_equal(content_new(&options, &content, NULL), KPACK_SUCCESS);
	run_all();
	pass_time(0);
}

static struct content_stats stats(void)
{
	struct content_stats s;

	content_stats(content, &s);
	return s;
}

#endif
