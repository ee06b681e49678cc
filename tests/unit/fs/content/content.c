/* SPDX-License-Identifier: MIT */
/* The content cache over made-up archives; the calls into core are faked here. */
#include "fs/content/content.h"
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include "core/archive/decode.h"
#include "core/shared/pool.h"
#include "fs/content/pieces.h"

#define KIB 1024
#define MIB (1024 * KIB)
#define NONE UINT64_MAX
/* The window of files that no pass decodes if they fit the budget. */
#define WIDE (64 * MIB)

/* The facts that core would have about each file. */
static struct file {
	uint64_t size, chunk;
	uint64_t fails_at;      /* decoded bytes before damage is found; NONE: never */
	uint64_t window;        /* of the first frame */
	uint64_t decoder;       /* bytes that a stream holds */
	uint64_t wide_at, wide; /* offset and window of a frame with another window */
	bool gated;             /* each step waits for `gate` */
	bool held;              /* no step while a test has locked `hold` */
	bool held_at_end;       /* no end of a decode while a test has locked `hold` */
	bool ends;              /* a decode is about to end */
	unsigned opened;        /* number of times that a decode began */
	uint64_t rows;          /* number of rows in its chunk table */
	bool whole;             /* it has a checksum for all, and is not checked yet */
	bool bad;               /* ... which does not match */
} files[512];
static size_t file_count; /* as many as the archive has */

static bool ahead; /* the next content decodes ahead */
static bool plain; /* everything is stored uncompressed */
static sem_t gate;
static pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned running, most_running, failures, changes, open_passes;

/*
 * The bytes of all files: this pattern repeated, from a position that depends on the
 * file.
 */
#define PERIOD 65521
static uint8_t pattern[PERIOD];

static const uint8_t *bytes_at(uint32_t file, uint64_t off, uint64_t *n)
{
	uint64_t at = (off + file * 101) % PERIOD;

	if (*n > PERIOD - at)
		*n = PERIOD - at;
	return pattern + at;
}

static void fill(uint32_t file, uint8_t *buf, uint64_t from, uint64_t size)
{
	for (uint64_t done = 0, n; done < size; done += n) {
		const uint8_t *bytes;

		n = size - done;
		bytes = bytes_at(file, from + done, &n);
		memcpy(buf + done, bytes, n);
	}
}

static bool is_right(uint32_t file, const uint8_t *buf, uint64_t from, uint64_t size)
{
	bool right = true;

	for (uint64_t done = 0, n; done < size; done += n) {
		const uint8_t *bytes;

		n = size - done;
		bytes = bytes_at(file, from + done, &n);
		right = right && memcmp(buf + done, bytes, n) == 0;
	}
	return right;
}

static void begin(uint32_t file, int step)
{
	pthread_mutex_lock(&fake_lock);
	__atomic_add_fetch(&files[file].opened, 1, __ATOMIC_RELEASE);
	running += (unsigned)step;
	most_running = running > most_running ? running : most_running;
	pthread_mutex_unlock(&fake_lock);
}

static void end(uint32_t file)
{
	__atomic_store_n(&files[file].ends, true, __ATOMIC_RELEASE);
	if (files[file].held_at_end) {
		pthread_mutex_lock(&hold);
		pthread_mutex_unlock(&hold);
	}
	pthread_mutex_lock(&fake_lock);
	running--;
	pthread_mutex_unlock(&fake_lock);
}

static void count_passes(int step)
{
	pthread_mutex_lock(&fake_lock);
	open_passes += (unsigned)step;
	pthread_mutex_unlock(&fake_lock);
}

static kpack_error_t corrupt(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "frame: made to fail");
}

/* Fakes.  An entry's number is the number of its file. */

static struct origin origin = {.serial = 1, .refs = 1};
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

struct origin *origin_ref(struct origin *o)
{
	pthread_mutex_lock(&fake_lock);
	o->refs++;
	pthread_mutex_unlock(&fake_lock);
	return o;
}

void origin_unref(struct origin *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&fake_lock);
	o->refs--;
	pthread_cond_signal(&released);
	pthread_mutex_unlock(&fake_lock);
}

/* Wait until decodes have released the archive; idle passes keep holding it. */
static void wait_for_rest(void)
{
	pthread_mutex_lock(&fake_lock);
	while (origin.refs > 1 + open_passes)
		pthread_cond_wait(&released, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
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
	(void)a;
	return file_count;
}

struct kp_decoding_facts kp_archive_decoding_facts(const struct kpack_archive *a,
						   size_t entry)
{
	(void)a;
	return (struct kp_decoding_facts){.chunk = files[entry].chunk};
}

const struct kp_shared *kp_archive_shared(const struct kpack_archive *a)
{
	(void)a;
	return NULL;
}

uint64_t kp_shared_block_size(const struct kp_shared *s)
{
	(void)s;
	return 0;
}

uint64_t kp_shared_visits(const struct kp_shared *s, uint32_t object, uint64_t offset,
			  uint64_t size)
{
	(void)s, (void)object, (void)offset, (void)size;
	return 0;
}

/* The blocks of shared archives: POOL bytes after POOL_AFTER more calls, before that none. */
static _Atomic uint64_t pool;
static _Atomic int pool_after;

uint64_t kp_pool_held(void)
{
	return pool_after-- > 0 ? 0 : pool;
}

void kp_pool_limit(uint64_t most)
{
	(void)most;
}

bool kp_archive_has_parts(const struct kpack_archive *a, size_t entry)
{
	(void)a;
	return !__atomic_load_n(&files[entry].whole, __ATOMIC_ACQUIRE);
}

kpack_error_t kp_archive_check_parts(const struct kpack_archive *a, size_t entry,
				     uint64_t most, struct kpackx_error *why)
{
	(void)most;
	if (kp_archive_has_parts(a, entry))
		return KPACK_SUCCESS;
	begin((uint32_t)entry, 0);
	if (files[entry].bad)
		return corrupt(why);
	__atomic_store_n(&files[entry].whole, false, __ATOMIC_RELEASE);
	return KPACK_SUCCESS;
}

bool kp_archive_is_plain(const struct kpack_archive *a)
{
	(void)a;
	return plain;
}

kpack_error_t kp_archive_read_range(const struct kpack_archive *a, size_t entry,
				    uint64_t offset, void *buf, size_t size, size_t *got,
				    struct kpackx_error *why)
{
	KP_TRY(kp_archive_check_parts(a, entry, UINT64_MAX, why));
	begin((uint32_t)entry, 0);
	fill((uint32_t)entry, buf, offset, size);
	*got = size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_decode_window(const struct kpack_archive *a, size_t entry,
			       uint64_t *window, struct kpackx_error *why)
{
	(void)a;
	(void)why;
	*window = files[entry].window;
	return KPACK_SUCCESS;
}

uint64_t kp_decode_memory(const struct kpack_archive *a, size_t entry)
{
	(void)a;
	return files[entry].decoder;
}

/* Bytes that a decoder has when it is left. */
static _Atomic uint64_t decoder_bytes;

struct kp_decode {
	uint32_t file;
	uint64_t done, limit;
	bool open, pieces, too_wide;
};

kpack_error_t kp_decode_reopen(struct kp_decode *d, const struct kpack_archive *a,
			       size_t entry, enum kp_decode_how how,
			       struct kpackx_error *why)
{
	bool pieces = how == KP_DECODE_WINDOW;

	(void)a;
	(void)why;
	assert_false(d->open);
	*d = (struct kp_decode){.file = (uint32_t)entry, .open = true, .pieces = pieces};
	begin((uint32_t)entry, !pieces);
	if (pieces)
		count_passes(1);
	return KPACK_SUCCESS;
}

kpack_error_t kp_decode_open(const struct kpack_archive *a, size_t entry,
			     enum kp_decode_how how, struct kp_decode **out,
			     struct kpackx_error *why)
{
	*out = calloc(1, sizeof(**out));
	return kp_decode_reopen(*out, a, entry, how, why);
}

uint64_t kp_decode_leave(struct kp_decode *d)
{
	if (d->open && d->pieces)
		count_passes(-1);
	else if (d->open)
		end(d->file);
	d->open = false;
	return decoder_bytes;
}

kpack_error_t kp_decode_limit_window(struct kp_decode *d, uint64_t max,
				     struct kpackx_error *why)
{
	(void)why;
	d->limit = max;
	return KPACK_SUCCESS;
}

kpack_error_t kp_decode_next(struct kp_decode *d, void *buf, uint64_t size,
			     uint64_t *done, struct kpackx_error *why)
{
	const struct file *f = &files[d->file];
	uint64_t left = f->size - d->done, n = left < size ? left : size;

	if (f->gated)
		sem_wait(&gate);
	if (f->held) {
		pthread_mutex_lock(&hold);
		pthread_mutex_unlock(&hold);
	}
	if (d->pieces)
		assert_int_equal(n, size);
	d->too_wide = d->pieces && f->wide && d->done >= f->wide_at && f->wide > d->limit;
	if (d->done >= f->fails_at || d->too_wide)
		return corrupt(why);
	fill(d->file, (uint8_t *)buf + (d->pieces ? 0 : d->done), d->done, n);
	d->done += n;
	*done = d->done;
	if (d->done == f->size && f->whole) {
		if (f->bad)
			return corrupt(why);
		__atomic_store_n(&files[d->file].whole, false, __ATOMIC_RELEASE);
	}
	return KPACK_SUCCESS;
}

bool kp_decode_too_wide(const struct kp_decode *d)
{
	return d->too_wide;
}

void kp_decode_close(struct kp_decode *d)
{
	if (d)
		kp_decode_leave(d);
	free(d);
}

struct kp_chunks {
	uint32_t file;
};
static _Atomic unsigned tables; /* number of open tables */

kpack_error_t kp_chunks_open(const struct kpack_archive *a, size_t entry,
			     struct kp_chunks **out, struct kpackx_error *why)
{
	(void)a;
	(void)why;
	*out = calloc(1, sizeof(**out));
	(*out)->file = (uint32_t)entry;
	tables++;
	return KPACK_SUCCESS;
}

uint64_t kp_chunks_count(const struct kp_chunks *c)
{
	return files[c->file].rows;
}

kpack_error_t kp_chunks_read(const struct kp_chunks *c, uint64_t k, void *buf,
			     struct kpackx_error *why)
{
	const struct file *f = &files[c->file];
	uint64_t at = k * f->chunk;

	begin(c->file, 0);
	if (at >= f->fails_at)
		return corrupt(why);
	fill(c->file, buf, at, f->size - at < f->chunk ? f->size - at : f->chunk);
	return KPACK_SUCCESS;
}

void kp_chunks_close(struct kp_chunks *c)
{
	tables -= c != NULL;
	free(c);
}

/* Reads that record their answer. */

struct read {
	uint32_t file;
	uint64_t off;
	size_t len, got;
	bool right, failed;
	kpack_error_t code;
	sem_t answered;
};

static void answer(void *token, const void *data, size_t size,
		   const struct kpackx_error *why)
{
	struct read *r = token;

	r->failed = why != NULL;
	r->code = why ? why->code : KPACK_SUCCESS;
	r->got = size;
	r->right = is_right(r->file, data, r->off, size);
	sem_post(&r->answered);
}

static void failure(void *user, struct origin_entry what, const struct kpackx_error *why)
{
	(void)user;
	(void)what;
	assert_true(why->text[0] != 0);
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

static struct content *c;

static void changed(void *user, struct origin *o)
{
	(void)user;
	assert_ptr_equal(o, &origin);
	__atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED);
}

static struct origin_entry entry(uint32_t file)
{
	return (struct origin_entry){&origin, file};
}

static void ask(struct read *r, uint32_t file, uint64_t off, size_t len)
{
	*r = (struct read){.file = file, .off = off, .len = len};
	sem_init(&r->answered, 0, 0);
	content_read(c, entry(file), off, len, r);
}

static bool is_answered(struct read *r)
{
	int n;

	sem_getvalue(&r->answered, &n);
	return n > 0;
}

static void expect_bytes(struct read *r, size_t n)
{
	sem_wait(&r->answered);
	assert_false(r->failed);
	assert_int_equal(r->got, n);
	assert_true(r->right);
}

static void expect_failure(struct read *r, kpack_error_t code)
{
	sem_wait(&r->answered);
	assert_true(r->failed);
	assert_int_equal(r->code, code);
}

/* Read all of FILE, LEN bytes at a time. */
static void read_whole(uint32_t file, size_t len)
{
	for (uint64_t off = 0; off < files[file].size; off += len) {
		uint64_t left = files[file].size - off;
		struct read r;

		ask(&r, file, off, len);
		expect_bytes(&r, left < len ? (size_t)left : len);
	}
}

static struct content_stats stats(void)
{
	struct content_stats s;

	content_stats(c, &s);
	return s;
}

static void make(uint64_t budget, unsigned threads)
{
	struct content_options options = {.budget = budget,
					  .executor = executor_threads(threads),
					  .ahead = ahead,
					  .answer = answer,
					  .failure = failure,
					  .changed = changed};

	assert_int_equal(content_new(&options, &c, NULL), KPACK_SUCCESS);
}

static int setup(void **state)
{
	(void)state;
	memset(files, 0, sizeof(files));
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		files[i] = (struct file){.fails_at = NONE, .window = WIDE};
	file_count = 16;
	running = most_running = failures = changes = 0;
	plain = ahead = false;
	pool = 0;
	pool_after = 0;
	decoder_bytes = 1000;
	atomic_store(&origin.changed, false);
	sem_init(&gate, 0, 0);
	return 0;
}

static void open_gate(unsigned n)
{
	while (n--)
		sem_post(&gate);
}

static void small_file(void **state)
{
	struct read r;

	(void)state;
	files[1].size = 100 * KIB + 1;
	make(MIB, 1);
	read_whole(1, 4 * KIB);
	assert_int_equal(files[1].opened, 1);
	/* All bytes were served, so nothing is kept. */
	assert_int_equal(stats().held, 0);
	assert_int_equal(stats().bytes_served, files[1].size);
	ask(&r, 1, files[1].size, 10);
	expect_bytes(&r, 0);
	ask(&r, 1, files[1].size - 3, 10);
	expect_bytes(&r, 3);
	ask(&r, 1, UINT64_MAX - 1, 10);
	expect_bytes(&r, 0);
	content_free(c);
}

static void first_bytes_before_last(void **state)
{
	struct read head, tail;

	(void)state;
	files[2] = (struct file){.size = 3 * MIB, .fails_at = NONE, .gated = true};
	make(64 * MIB, 1);
	ask(&tail, 2, 3 * MIB - 10, 10);
	ask(&head, 2, 0, 128 * KIB);
	assert_false(is_answered(&head));
	open_gate(1);
	expect_bytes(&head, 128 * KIB);
	assert_false(is_answered(&tail));
	/* Decoded bytes are served at once, by the reading thread. */
	ask(&head, 2, 100, 100);
	assert_true(is_answered(&head));
	open_gate(100);
	expect_bytes(&tail, 10);
	read_whole(2, 128 * KIB);
	assert_int_equal(files[2].opened, 1);
	content_free(c);
}

/* Read the first bytes of a FILE whose checksum covers all of it, as it should be or not. */
static void read_unchecked(struct file file, uint64_t budget)
{
	struct read r;

	file.fails_at = NONE;
	file.whole = true;
	files[1] = files[2] = file;
	files[2].bad = true;
	make(budget, 1);
	for (int i = 0; i < 2; i++) {
		ask(&r, 1, 0, 10 * KIB);
		expect_bytes(&r, 10 * KIB);
		assert_false(files[1].whole);
		ask(&r, 2, 0, 10 * KIB);
		expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
		ask(&r, 2, file.size - 5000, 100);
		expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	}
	read_whole(1, 96 * KIB);
	assert_int_equal(stats().errors, 4);
	content_free(c);
}

/* Held whole, or in chunks, segments and plain pieces, for which all is decoded first. */
static void nothing_comes_before_the_checksum(void **state)
{
	(void)state;
	read_unchecked((struct file){.size = 3 * MIB, .window = WIDE}, 64 * MIB);
	read_unchecked((struct file){.size = 5 * MIB, .window = MIB}, 64 * MIB);
	read_unchecked((struct file){.size = 30 * MIB, .window = MIB}, 16 * MIB);
	read_unchecked((struct file){.size = 3 * MIB, .chunk = 64 * KIB}, 64 * MIB);
	plain = true;
	read_unchecked((struct file){.size = 3 * MIB}, 64 * MIB);
	read_unchecked((struct file){.size = 30 * MIB}, 16 * MIB);
}

static void *reader(void *arg)
{
	read_whole((uint32_t)(uintptr_t)arg, 96 * KIB);
	return NULL;
}

static pthread_barrier_t in_step;

/* All readers begin each read together, so that a slow system delays all or none. */
static void *reader_in_step(void *arg)
{
	uint32_t file = (uint32_t)(uintptr_t)arg;

	for (uint64_t off = 0; off < files[file].size; off += 96 * KIB) {
		uint64_t left = files[file].size - off;
		struct read r;

		pthread_barrier_wait(&in_step);
		ask(&r, file, off, 96 * KIB);
		expect_bytes(&r, left < 96 * KIB ? (size_t)left : 96 * KIB);
	}
	return NULL;
}

static void one_decode_for_many(void **state)
{
	pthread_t threads[8];

	(void)state;
	files[3].size = 20 * MIB + 77;
	make(64 * MIB, 2);
	pthread_barrier_init(&in_step, NULL, 8);
	for (size_t i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, reader_in_step, (void *)(uintptr_t)3);
	for (size_t i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&in_step);
	assert_int_equal(files[3].opened, 1);
	assert_int_equal(stats().decodes, 1);
	content_free(c);
}

static void *ask_one(void *arg)
{
	struct read *r = arg;

	content_read(c, entry(r->file), r->off, r->len, r);
	return NULL;
}

static void small_waits_for_small(void **state)
{
	struct read first, second = {.file = 4, .off = 5, .len = 50};
	pthread_t thread;

	(void)state;
	files[4] = (struct file){.size = 1000, .fails_at = NONE, .gated = true};
	make(MIB, 1);
	sem_init(&second.answered, 0, 0);
	first = second;
	sem_init(&first.answered, 0, 0);
	pthread_create(&thread, NULL, ask_one, &first);
	while (!__atomic_load_n(&files[4].opened, __ATOMIC_ACQUIRE))
		;
	/* Does not block, although the other thread is decoding. */
	content_read(c, entry(4), second.off, second.len, &second);
	assert_false(is_answered(&second));
	open_gate(1);
	expect_bytes(&first, 50);
	expect_bytes(&second, 50);
	pthread_join(thread, NULL);
	assert_int_equal(files[4].opened, 1);
	content_free(c);
}

static void corrupt_file(void **state)
{
	struct read early, late, last;

	(void)state;
	files[5] = (struct file){.size = 3 * MIB, .fails_at = MIB, .gated = true};
	files[6].size = 500;
	make(64 * MIB, 1);
	ask(&early, 5, 0, 4096);
	ask(&late, 5, 2 * MIB, 4096);
	ask(&last, 5, 3 * MIB - 1, 1);
	open_gate(100);
	expect_bytes(&early, 4096);
	expect_failure(&late, KPACK_ERROR_DECOMPRESSION_FAILED);
	expect_failure(&last, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(failures, 1);
	assert_int_equal(stats().errors, 1);
	/*
	 * The failed decode is forgotten, so the next read decodes again.  Other files
	 * still work.
	 */
	ask(&late, 5, 2 * MIB, 4096);
	expect_failure(&late, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(files[5].opened, 2);
	read_whole(6, 500);
	assert_int_equal(stats().held, 0);
	content_free(c);
}

static void corrupt_small_file(void **state)
{
	struct read r;

	(void)state;
	files[5] = (struct file){.size = 100, .fails_at = 0};
	make(MIB, 1);
	ask(&r, 5, 0, 100);
	expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(failures, 1);
	assert_int_equal(stats().held, 0);
	content_free(c);
}

static void budget_queues_decodes(void **state)
{
	struct read r[6];

	(void)state;
	make(10 * MIB, 4);
	for (uint32_t i = 0; i < 6; i++) {
		files[i].size = 4 * MIB;
		files[i].gated = true;
		ask(&r[i], i, 4 * MIB - 100, 100);
	}
	for (unsigned i = 0; i < 6 * 16; i++) {
		open_gate(1);
		assert_true(stats().held <= 10 * MIB);
	}
	for (uint32_t i = 0; i < 6; i++)
		expect_bytes(&r[i], 100);
	assert_in_range(most_running, 1, 2);
	assert_true(stats().held <= 10 * MIB);
	content_free(c);
}

/*
 * Small reads are served until a thread has seen that an earlier request finds no room.
 */
static void small_behind_starved(void **state)
{
	struct timespec tick = {.tv_nsec = 1000 * 1000};
	struct read large, waits, small;

	(void)state;
	files[1] = (struct file){
		.size = 7 * MIB, .fails_at = NONE, .window = WIDE, .gated = true};
	files[2] = (struct file){.size = 6 * MIB, .chunk = 6 * MIB, .fails_at = NONE};
	files[3].size = 100;
	make(8 * MIB, 2);
	ask(&large, 1, 0, 10);
	open_gate(1);
	expect_bytes(&large, 10);
	ask(&waits, 2, 0, 10);
	for (int i = 0; i < 60 * 1000; i++) {
		ask(&small, 3, 0, 100);
		if (!is_answered(&small))
			break;
		nanosleep(&tick, NULL);
	}
	assert_false(is_answered(&waits));
	assert_false(is_answered(&small));
	open_gate(100);
	expect_bytes(&waits, 10);
	expect_bytes(&small, 100);
	content_free(c);
}

static void least_recently_used_goes(void **state)
{
	struct read r;

	(void)state;
	make(8 * MIB, 1);
	for (uint32_t i = 0; i < 3; i++)
		files[i].size = 3200 * KIB;
	for (uint32_t i = 0; i < 3; i++) {
		ask(&r, i, 0, 10);
		expect_bytes(&r, 10);
	}
	ask(&r, 2, 100, 10);
	expect_bytes(&r, 10);
	assert_int_equal(files[2].opened, 1);
	ask(&r, 1, 100, 10);
	expect_bytes(&r, 10);
	assert_int_equal(files[1].opened, 1);
	ask(&r, 0, 100, 10);
	expect_bytes(&r, 10);
	assert_int_equal(files[0].opened, 2);
	content_free(c);
}

static void served_whole_goes_first(void **state)
{
	struct read r;

	(void)state;
	make(8 * MIB, 1);
	for (uint32_t i = 0; i < 3; i++)
		files[i].size = 3200 * KIB;
	ask(&r, 0, 0, 10);
	expect_bytes(&r, 10);
	read_whole(1, 100 * KIB);
	ask(&r, 2, 0, 10);
	expect_bytes(&r, 10);
	ask(&r, 0, 10, 10);
	expect_bytes(&r, 10);
	assert_int_equal(files[0].opened, 1);
	content_free(c);
}

static void memory_is_given_back(void **state)
{
	struct timespec tick = {.tv_nsec = 50 * 1000 * 1000};

	(void)state;
	files[1].size = 4 * MIB;
	make(64 * MIB, 1);
	read_whole(1, 128 * KIB);
	for (int i = 0; i < 2400 && stats().held; i++)
		nanosleep(&tick, NULL);
	assert_int_equal(stats().held, 0);
	content_free(c);
}

static void chunks(void **state)
{
	struct read r;

	(void)state;
	files[7] =
		(struct file){.size = 100 * KIB + 5, .chunk = 16 * KIB, .fails_at = NONE};
	make(MIB, 1);
	/* Spans four chunks, including the last one. */
	ask(&r, 7, 60 * KIB, 100 * KIB);
	expect_bytes(&r, 40 * KIB + 5);
	assert_int_equal(files[7].opened, 4);
	ask(&r, 7, 10, 20);
	expect_bytes(&r, 20);
	assert_int_equal(files[7].opened, 5);
	ask(&r, 7, 0, 100 * KIB + 5);
	expect_bytes(&r, 100 * KIB + 5);
	content_free(c);
}

static void large_chunks(void **state)
{
	(void)state;
	files[7] = (struct file){.size = 5 * MIB + 5, .chunk = MIB, .fails_at = NONE};
	make(2 * MIB, 2);
	read_whole(7, 100 * KIB);
	read_whole(7, 3 * MIB);
	content_free(c);
}

static void large_tables_are_not_kept(void **state)
{
	(void)state;
	make(8 * MIB, 1);
	for (uint32_t f = 1; f < 10; f++) {
		files[f].size = 256 * KIB;
		files[f].chunk = 64 * KIB;
		files[f].rows = 400 * 1000;
		read_whole(f, 64 * KIB);
	}
	assert_int_equal(tables, 2);
	content_free(c);
	assert_int_equal(tables, 0);
}

/* A reader that finishes in an idle archive does not keep its table open. */
static void no_table_of_an_idle_archive_is_kept(void **state)
{
	(void)state;
	make(8 * MIB, 1);
	files[1] = (struct file){.size = 256 * KIB, .chunk = 64 * KIB, .fails_at = NONE};
	read_whole(1, 64 * KIB);
	assert_int_equal(tables, 1);
	origin.idle = true;
	content_forget(c, &origin);
	assert_int_equal(tables, 0);
	files[2] = files[1];
	read_whole(2, 64 * KIB);
	assert_int_equal(tables, 0);
	origin.idle = false;
	content_free(c);
}

static void corrupt_chunk(void **state)
{
	struct read r;

	(void)state;
	files[8] =
		(struct file){.size = 64 * KIB, .chunk = 16 * KIB, .fails_at = 32 * KIB};
	make(MIB, 1);
	ask(&r, 8, 0, 32 * KIB);
	expect_bytes(&r, 32 * KIB);
	ask(&r, 8, 16 * KIB, 32 * KIB);
	expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(failures, 1);
	content_free(c);
}

static void absurd_chunk(void **state)
{
	struct read r;

	(void)state;
	files[8] = (struct file){.size = 64 * KIB, .chunk = 1, .fails_at = NONE};
	make(MIB, 1);
	ask(&r, 8, 0, 10);
	expect_failure(&r, KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(failures, 1);
	content_free(c);
}

static void mixed_load(void **state)
{
	pthread_t threads[12];

	(void)state;
	files[1].size = 3 * MIB + 1;
	files[2].size = 300 * KIB;
	files[3].size = 200 * KIB;
	files[4] =
		(struct file){.size = 2 * MIB + 9, .chunk = 128 * KIB, .fails_at = NONE};
	files[5] =
		(struct file){.size = 4 * MIB + 9, .chunk = 512 * KIB, .fails_at = NONE};
	files[6].size = 1;
	make(4 * MIB, 3);
	for (size_t i = 0; i < 12; i++)
		pthread_create(&threads[i], NULL, reader, (void *)(uintptr_t)(1 + i % 6));
	for (size_t i = 0; i < 12; i++)
		pthread_join(threads[i], NULL);
	content_free(c);
}

static atomic_bool freed;

/* Let a decode go on step by step, each of them too slow for it to end by itself. */
static void *open_gate_slowly(void *arg)
{
	struct timespec tick = {.tv_nsec = 10 * 1000 * 1000};

	while (!freed) {
		nanosleep(&tick, NULL);
		open_gate(1);
	}
	return arg;
}

static void unmount_answers_all(void **state)
{
	struct read r[3];
	pthread_t thread;

	(void)state;
	make(MIB, 1);
	for (uint32_t i = 0; i < 3; i++) {
		files[i].size = 2000 * MIB;
		files[i].window = MIB;
		files[i].gated = i == 0;
		ask(&r[i], i, 2000 * MIB - 1, 1);
	}
	freed = false;
	pthread_create(&thread, NULL, open_gate_slowly, NULL);
	content_free(c);
	freed = true;
	for (size_t i = 0; i < 3; i++)
		expect_failure(&r[i], KPACK_ERROR_IO_ERROR);
	pthread_join(thread, NULL);
	assert_int_equal(failures, 0);
}

/* Entries that are too large to hold. */

/* Room for four windows and the decoded bytes around them. */
#define BUDGET (16 * MIB)

static void large(uint32_t file, uint64_t size)
{
	files[file] = (struct file){.size = size, .fails_at = NONE, .window = 2 * MIB};
}

static void larger_than_the_budget(void **state)
{
	struct read small;

	(void)state;
	large(1, 40 * MIB + 77);
	files[2].size = 1000;
	make(BUDGET, 2);
	read_whole(1, 128 * KIB);
	ask(&small, 2, 0, 1000);
	expect_bytes(&small, 1000);
	assert_int_equal(files[1].opened, 1);
	assert_int_equal(stats().passes, 1);
	assert_int_equal(stats().restarts, 0);
	assert_true(stats().held_most <= BUDGET);
	content_free(c);
}

/* The second file would fit, but not what its decoder holds: it waits for the first. */
static void what_decoders_hold_is_counted(void **state)
{
	struct timespec tick = {.tv_nsec = 10000000};
	struct read a, b;

	(void)state;
	for (int i = 1; i <= 2; i++)
		files[i] = (struct file){.size = 5 * MIB,
					 .decoder = 6 * MIB,
					 .window = WIDE,
					 .fails_at = NONE,
					 .gated = true};
	make(BUDGET, 2);
	ask(&a, 1, 0, 4096);
	ask(&b, 2, 0, 4096);
	/* as long as it takes; only without the counting in vain */
	for (int i = 0; i < 12 * 1000 && stats().held_most < BUDGET; i++)
		nanosleep(&tick, NULL);
	open_gate(2 * 20);
	expect_bytes(&a, 4096);
	expect_bytes(&b, 4096);
	wait_for_rest();
	assert_int_equal(most_running, 1);
	assert_int_equal(stats().held_most, BUDGET);
	assert_int_equal(stats().held, 10 * MIB);
	content_free(c);
}

static void a_pass_does_not_run_ahead(void **state)
{
	struct read r;

	(void)state;
	large(1, 100 * MIB);
	make(BUDGET, 2);
	ask(&r, 1, 0, 128 * KIB);
	expect_bytes(&r, 128 * KIB);
	assert_true(stats().bytes_decoded <= 4 * MIB);
	ask(&r, 1, 10 * MIB, 128 * KIB);
	expect_bytes(&r, 128 * KIB);
	assert_true(stats().bytes_decoded <= 16 * MIB);
	assert_int_equal(files[1].opened, 1);
	content_free(c);
}

static void any_budget_will_do(void **state)
{
	static const uint64_t budgets[] = {0, 1, MIB};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		large(1, 20 * MIB);
		files[1].window = 8 * MIB;
		large(2, 9 * MIB);
		make(budgets[i], 2);
		read_whole(1, 128 * KIB);
		read_whole(2, 100 * KIB);
		assert_int_equal(files[1].opened, 1);
		assert_int_equal(files[2].opened, 1);
		assert_true(stats().held_most <= 14 * MIB);
		content_free(c);
	}
}

/*
 * Like the kernel's read-ahead: several requests at once, handled in any order.  A pass that
 * went on before all of them are known would be past some.
 */
static void requests_out_of_order(void **state)
{
	enum { AT_ONCE = 16 };
	struct read r[AT_ONCE];
	size_t len = 128 * KIB;

	(void)state;
	large(1, 40 * MIB);
	files[1].held = true;
	make(BUDGET, 2);
	for (uint64_t at = 0; at < files[1].size; at += AT_ONCE * len) {
		pthread_mutex_lock(&hold);
		for (size_t i = 0; i < AT_ONCE; i++)
			ask(&r[i], 1, at + (i * 7 + 3) % AT_ONCE * len, len);
		pthread_mutex_unlock(&hold);
		for (size_t i = 0; i < AT_ONCE; i++)
			expect_bytes(&r[i], len);
	}
	assert_int_equal(files[1].opened, 1);
	content_free(c);
}

static void many_readers_of_a_large_file(void **state)
{
	pthread_t threads[4];

	(void)state;
	large(3, 40 * MIB);
	make(BUDGET, 2);
	pthread_barrier_init(&in_step, NULL, 4);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, reader_in_step, (void *)(uintptr_t)3);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&in_step);
	/* A reader that stays far behind would get a pass of its own. */
	assert_true(files[3].opened <= 4);
	assert_true(stats().held_most <= BUDGET);
	content_free(c);
}

static void two_readers_far_apart(void **state)
{
	struct read a, b;
	uint64_t half = 30 * MIB;

	(void)state;
	large(1, 2 * half);
	make(BUDGET, 2);
	for (uint64_t at = 0; at < half; at += 128 * KIB) {
		ask(&a, 1, at, 128 * KIB);
		ask(&b, 1, half + at, 128 * KIB);
		expect_bytes(&a, 128 * KIB);
		expect_bytes(&b, 128 * KIB);
	}
	assert_true(files[1].opened <= 3);
	assert_in_range(stats().restarts, 0, 2);
	content_free(c);
}

/* With room for only one pass, both readers make progress. */
static void one_pass_for_two_readers(void **state)
{
	struct read a, b;

	(void)state;
	large(1, 20 * MIB);
	files[1].window = 8 * MIB;
	make(8 * MIB, 2);
	for (uint64_t at = 0; at < 4 * MIB; at += 128 * KIB) {
		ask(&a, 1, at, 128 * KIB);
		ask(&b, 1, 15 * MIB + at, 128 * KIB);
		expect_bytes(&a, 128 * KIB);
		expect_bytes(&b, 128 * KIB);
	}
	assert_true(stats().held_most <= 14 * MIB);
	content_free(c);
}

static void *random_reader(void *arg)
{
	uint64_t x = (uintptr_t)arg;

	for (int i = 0; i < 40; i++) {
		struct read r;
		uint32_t file = 1 + (uint32_t)(x >> 60) % 3;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		ask(&r, file, (x >> 30) % (files[file].size - 200 * KIB), 200 * KIB);
		expect_bytes(&r, 200 * KIB);
	}
	return NULL;
}

/*
 * Each file alone would be held whole, but three evict each other.  The first one is held
 * whole until there are too many passes next to it.
 */
static void readers_in_turn(void **state)
{
	struct content_stats s;
	struct read r;

	(void)state;
	for (uint32_t f = 1; f < 4; f++) {
		files[f].size = 24 * MIB;
		files[f].window = MIB;
	}
	make(32 * MIB, 2);
	for (uint64_t off = 0; off < files[1].size; off += 512 * KIB)
		for (uint32_t f = 1; f < 4; f++) {
			ask(&r, f, off, 512 * KIB);
			expect_bytes(&r, 512 * KIB);
			wait_for_rest();
		}
	s = stats();
	assert_true(s.bytes_decoded <= 4 * files[1].size);
	assert_int_equal(s.restarts, 0);
	assert_true(s.held_most <= 32 * MIB);
	content_free(c);
}

/* A file that would fit the budget takes a window and a few segments if read in order. */
static void little_memory_in_order(void **state)
{
	(void)state;
	large(1, 200 * MIB + 77);
	make(256 * MIB, 2);
	read_whole(1, 128 * KIB);
	assert_int_equal(files[1].opened, 1);
	assert_int_equal(stats().bytes_decoded, 200 * MIB + 77);
	assert_true(stats().held_most <= 16 * MIB);
	content_free(c);
}

/* A reader that jumps has the file decoded as a whole, once. */
static void a_jump_decodes_the_whole(void **state)
{
	struct read r;

	(void)state;
	large(1, 40 * MIB);
	large(2, 40 * MIB);
	make(256 * MIB, 2);
	ask(&r, 1, 0, 4096);
	expect_bytes(&r, 4096);
	for (uint64_t i = 1; i < 40; i++) {
		ask(&r, 1, i * 27 % 40 * MIB, 4096);
		expect_bytes(&r, 4096);
	}
	assert_int_equal(files[1].opened, 2);
	ask(&r, 2, 20 * MIB, 4096);
	expect_bytes(&r, 4096);
	read_whole(2, 128 * KIB);
	assert_int_equal(files[2].opened, 1);
	content_free(c);
}

/* Passes take no more than a part of the budget, so that they do not end each other. */
static void many_readers_in_order(void **state)
{
	struct read r;

	(void)state;
	for (uint32_t f = 0; f < 16; f++)
		large(f, 8 * MIB);
	make(64 * MIB, 2);
	for (uint64_t off = 0; off < 8 * MIB; off += 512 * KIB)
		for (uint32_t f = 0; f < 16; f++) {
			ask(&r, f, off, 512 * KIB);
			expect_bytes(&r, 512 * KIB);
			wait_for_rest(); /* so that the order is always the same */
		}
	assert_true(stats().bytes_decoded <= 2 * 16 * 8 * MIB);
	assert_true(stats().held_most <= 64 * MIB);
	content_free(c);
}

/* Blocks of shared archives may take memory at any moment. */
static void blocks_take_the_spare_memory(void **state)
{
	struct read r;

	(void)state;
	for (int after = 0; after < 10; after++) {
		files[2] = (struct file){
			.size = 11 * MIB / 2, .fails_at = NONE, .window = WIDE};
		large(1, 20 * MIB);
		files[1].window = 64 * KIB;
		pool = 0;
		make(8 * MIB, 1);
		ask(&r, 2, 11 * MIB / 2 - 1, 1);
		expect_bytes(&r, 1);
		pool_after = after;
		pool = 2 * MIB;
		ask(&r, 1, 0, 10);
		expect_bytes(&r, 10);
		wait_for_rest(); /* the pass decodes ahead */
		content_free(c);
	}
}

static void passes_leave_room_for_blocks(void **state)
{
	struct read r;

	(void)state;
	files[2] = (struct file){.size = 11 * MIB / 2, .fails_at = NONE, .window = WIDE};
	large(1, 20 * MIB);
	files[1].window = 64 * KIB;
	make(8 * MIB, 1);
	pool = 2 * MIB;
	ask(&r, 2, 11 * MIB / 2 - 1, 1);
	expect_bytes(&r, 1);
	ask(&r, 1, 0, 10);
	expect_bytes(&r, 10);
	assert_true(stats().held <= 8 * MIB);
	pool = 7 * MIB;
	assert_true(stats().held > 7 * MIB);
	assert_true(stats().held_most > 7 * MIB);
	wait_for_rest();
	assert_true(stats().held <= stats().held_most);
	content_free(c);
}

static bool tend(void *arg, enum executor_job job)
{
	return job == JOB_TEND && pieces_tend(arg);
}

static unsigned count_open_passes(void)
{
	unsigned n;

	pthread_mutex_lock(&fake_lock);
	n = open_passes;
	pthread_mutex_unlock(&fake_lock);
	return n;
}

/* The decoder of a pass that nobody wants any more is not kept for ever. */
static void what_an_old_pass_leaves_is_freed(void **state)
{
	struct timespec tick = {.tv_nsec = 1000 * 1000};
	static struct pieces ps;
	struct pass *pass;

	(void)state;
	large(1, 8 * MIB);
	pieces_init(&ps, 64 * MIB, executor_threads(1));
	pass = passes_add(&ps.passes, 1, &origin, 64 * KIB);
	assert_non_null(pass);
	ps.held = pass_cost(64 * KIB);
	assert_int_equal(decoders_open(&ps.decoders, entry(1), KP_DECODE_WINDOW, MIB,
				       &pass->decoder, NULL),
			 KPACK_SUCCESS);
	passes_rest(&ps.passes, pass, 0);
	assert_true(ps.executor->start(ps.executor, tend, &ps));
	while (count_open_passes())
		nanosleep(&tick, NULL);
	ps.executor->end(ps.executor, &ps.lock);
	assert_int_equal(ps.decoders.n_kept, 0);
	assert_int_equal(ps.held, 0);
	pieces_fini(&ps);
}

static struct kp_decode *open_decoder(struct decoders *ds, uint64_t most)
{
	struct kp_decode *d = NULL;

	assert_int_equal(decoders_open(ds, entry(1), KP_DECODE_STEPS, most, &d, NULL),
			 KPACK_SUCCESS);
	return d;
}

/* A kept decoder is used for what may hold its memory. */
static void decoders_of_a_size(void **state)
{
	struct kp_decode *more, *less, *d;
	struct decoders ds;

	(void)state;
	decoders_init(&ds, 4 * MIB);
	less = open_decoder(&ds, 0);
	more = open_decoder(&ds, 0);
	decoder_bytes = MIB;
	decoders_close(&ds, less);
	decoder_bytes = 3 * MIB;
	decoders_close(&ds, more);
	decoder_bytes = 5 * MIB;
	d = open_decoder(&ds, MIB - 1);
	assert_ptr_not_equal(d, less);
	assert_ptr_not_equal(d, more);
	decoders_close(&ds, d);
	assert_int_equal(ds.n_kept, 2);
	assert_ptr_equal(open_decoder(&ds, MIB), less);
	assert_ptr_equal(open_decoder(&ds, UINT64_MAX), more);
	assert_int_equal(ds.n_kept, 0);
	decoders_close(&ds, less);
	decoders_close(&ds, more);
	decoders_fini(&ds);
}

static void random_readers_of_large_files(void **state)
{
	pthread_t threads[6];

	(void)state;
	large(1, 20 * MIB);
	large(2, 25 * MIB + 1);
	large(3, 18 * MIB);
	files[3].window = 8 * MIB;
	make(BUDGET, 3);
	for (size_t i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, random_reader, (void *)(i + 1));
	for (size_t i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	assert_true(stats().held_most <= BUDGET + 10 * MIB);
	assert_true(stats().restarts > 0);
	content_free(c);
}

static void corrupt_large_file(void **state)
{
	struct read r;

	(void)state;
	large(1, 40 * MIB);
	files[1].fails_at = 20 * MIB;
	make(BUDGET, 2);
	ask(&r, 1, 19 * MIB, 4096);
	expect_bytes(&r, 4096);
	assert_int_equal(failures, 0);
	ask(&r, 1, 20 * MIB, 4096);
	expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(failures, 1);
	assert_int_equal(stats().faults[CONTENT_CORRUPT], 1);
	ask(&r, 1, 0, 4096);
	expect_bytes(&r, 4096);
	content_free(c);
}

static void windows_that_grow(void **state)
{
	(void)state;
	large(1, 20 * MIB);
	files[1].wide_at = 10 * MIB;
	files[1].wide = 8 * MIB;
	make(8 * MIB, 2);
	read_whole(1, 128 * KIB);
	/* Decoding ahead may reach the wide frame first. */
	assert_in_range(files[1].opened, 2, 3);
	assert_int_equal(failures, 0);
	assert_true(stats().held_most <= 14 * MIB);
	content_free(c);
}

/* No reader that waits for an earlier part fails because of the wide frame. */
static void windows_that_grow_for_many(void **state)
{
	pthread_t threads[4];

	(void)state;
	large(1, 20 * MIB);
	files[1].wide_at = 10 * MIB;
	files[1].wide = 8 * MIB;
	make(8 * MIB, 2);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, reader, (void *)(uintptr_t)1);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
	assert_int_equal(stats().errors, 0);
	content_free(c);
}

static void windows_that_are_too_wide(void **state)
{
	struct read r;

	(void)state;
	large(1, 20 * MIB);
	files[1].window = 8 * MIB + 1;
	large(2, 20 * MIB);
	files[2].wide_at = 10 * MIB;
	files[2].wide = 9 * MIB;
	make(8 * MIB, 2);
	ask(&r, 1, 0, 4096);
	expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(files[1].opened, 0);
	ask(&r, 2, 0, 4096);
	expect_bytes(&r, 4096);
	ask(&r, 2, 11 * MIB, 4096);
	expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(failures, 2);
	content_free(c);
}

static void plain_bytes_are_read_where_they_are(void **state)
{
	struct read r;

	(void)state;
	plain = true;
	large(1, 40 * MIB);
	make(BUDGET, 2);
	ask(&r, 1, 39 * MIB, 4096);
	expect_bytes(&r, 4096);
	assert_int_equal(files[1].opened, 1);
	assert_true(stats().bytes_decoded <= 256 * KIB);
	read_whole(1, 200 * KIB);
	assert_int_equal(stats().passes, 0);
	content_free(c);
}

static void chunks_too_large_to_be_held(void **state)
{
	(void)state;
	large(1, 40 * MIB);
	files[1].chunk = 20 * MIB;
	make(BUDGET, 2);
	read_whole(1, 128 * KIB);
	assert_int_equal(files[1].opened, 1);
	assert_true(stats().held_most <= BUDGET);
	content_free(c);
}

static void *free_later(void *arg)
{
	content_free(c);
	return arg;
}

static void unmount_in_a_pass(void **state)
{
	struct read r[4];
	pthread_t thread;

	(void)state;
	large(1, 40 * MIB);
	files[1].gated = true;
	make(BUDGET, 2);
	for (uint32_t i = 0; i < 4; i++)
		ask(&r[i], 1, (4 + i) * MIB, 100);
	open_gate(2);
	pthread_create(&thread, NULL, free_later, NULL);
	open_gate(200);
	for (size_t i = 0; i < 4; i++)
		sem_wait(&r[i].answered);
	pthread_join(thread, NULL);
	assert_int_equal(failures, 0);
	assert_int_equal(origin.refs, 1);
}

/* Changing archives, memory pressure, counters. */

static void changed_archive(void **state)
{
	struct read r;

	(void)state;
	files[1].size = 3 * MIB;
	files[2].size = 1000;
	large(3, 40 * MIB);
	make(BUDGET, 2);
	ask(&r, 1, 0, 1000);
	expect_bytes(&r, 1000);
	ask(&r, 1, 3 * MIB - 10, 10); /* everything is decoded */
	expect_bytes(&r, 10);
	ask(&r, 3, 0, 10);
	expect_bytes(&r, 10);
	atomic_store(&origin.changed, true);
	ask(&r, 2, 0, 1000);
	expect_failure(&r, KPACK_ERROR_IO_ERROR);
	ask(&r, 3, 30 * MIB, 10);
	expect_failure(&r, KPACK_ERROR_IO_ERROR);
	ask(&r, 1, MIB, 1000);
	expect_bytes(&r, 1000);
	assert_int_equal(changes, 1);
	assert_int_equal(stats().faults[CONTENT_CHANGED], 2);
	content_forget(c, &origin);
	ask(&r, 1, 2 * MIB, 1000);
	expect_bytes(&r, 1000);
	content_free(c);
	assert_int_equal(origin.refs, 1);
}

/* Bytes decoded while the archive changed are not served. */
static void changed_while_it_is_decoded(void **state)
{
	struct read head, tail;

	(void)state;
	files[1] = (struct file){.size = 3 * MIB, .fails_at = NONE, .gated = true};
	make(BUDGET, 1);
	ask(&head, 1, 0, 1000);
	ask(&tail, 1, 2 * MIB, 1000);
	open_gate(1);
	expect_bytes(&head, 1000);
	atomic_store(&origin.changed, true);
	open_gate(100);
	expect_failure(&tail, KPACK_ERROR_IO_ERROR);
	assert_int_equal(changes, 1);
	content_free(c);
}

static void pressure(void **state)
{
	struct timespec tick = {.tv_nsec = 1000 * 1000};
	struct read r;

	(void)state;
	files[1].size = 10 * MIB;
	large(2, 70 * MIB);
	make(64 * MIB, 1);
	ask(&r, 1, 10 * MIB - 1, 1);
	expect_bytes(&r, 1);
	ask(&r, 2, 0, 10);
	expect_bytes(&r, 10);
	assert_true(stats().held >= 10 * MIB);
	content_shrink(c, 50);
	assert_int_equal(stats().budget, 32 * MIB);
	for (int i = 0; i < 60 * 1000 && stats().held; i++) {
		nanosleep(&tick, NULL); /* a pass may still be decoding ahead */
		content_shrink(c, 50);
	}
	assert_int_equal(stats().held, 0);
	content_shrink(c, 0);
	assert_int_equal(stats().budget, 0);
	read_whole(1, 128 * KIB);
	read_whole(2, 128 * KIB);
	content_shrink(c, 100);
	assert_int_equal(stats().budget, 64 * MIB);
	read_whole(1, 128 * KIB);
	content_free(c);
}

static void counts(void **state)
{
	struct content_stats s;
	struct read r;
	uint64_t times = 0;

	(void)state;
	files[1].size = 3 * MIB;
	files[2] = (struct file){.size = 10, .fails_at = 0};
	make(BUDGET, 1);
	ask(&r, 1, 3 * MIB - 1, 1);
	expect_bytes(&r, 1);
	ask(&r, 1, 0, 100);
	expect_bytes(&r, 100);
	ask(&r, 1, MIB, 100);
	expect_bytes(&r, 100);
	ask(&r, 2, 0, 10);
	expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	s = stats();
	assert_int_equal(s.reads, 3);
	assert_int_equal(s.hits, 2);
	assert_int_equal(s.bytes_served, 201);
	assert_int_equal(s.decodes, 1);
	assert_int_equal(s.bytes_decoded, 3 * MIB);
	assert_int_equal(s.errors, 1);
	assert_int_equal(s.faults[CONTENT_CORRUPT], 1);
	for (size_t i = 0; i <= CONTENT_TIMES; i++)
		times += s.decode_times[i];
	assert_int_equal(times, 1);
	assert_true(s.decode_seconds > 0);
	assert_int_equal(s.held, 3 * MIB);
	assert_int_equal(s.held_most, 3 * MIB + 4096);
	content_free(c);
}

static unsigned times_opened(uint32_t file)
{
	return __atomic_load_n(&files[file].opened, __ATOMIC_ACQUIRE);
}

/* All files have BYTES, and a few more; the content has THREADS decoders. */
static void make_row(uint64_t bytes, unsigned threads)
{
	for (uint32_t i = 0; i < file_count; i++)
		files[i].size = bytes + i;
	ahead = true;
	make(64 * MIB, threads);
}

static void read_up_to_3(void)
{
	for (uint32_t i = 1; i <= 3; i++)
		read_whole(i, 128 * KIB);
}

static void the_next_entries_are_decoded_ahead(void **state)
{
	(void)state;
	make_row(900 * KIB, 2);
	read_up_to_3();
	wait_for_rest();
	assert_int_equal(times_opened(0), 0);
	for (uint32_t i = 4; i < 16; i++) {
		assert_int_equal(times_opened(i), 1);
		read_whole(i, 128 * KIB);
		assert_int_equal(times_opened(i), 1);
	}
	content_free(c);
}

/* A few MiB, and no more when the last entry that was read is read again. */
static void not_all_entries_are_decoded_ahead(void **state)
{
	(void)state;
	make_row(3 * MIB, 2);
	read_up_to_3();
	wait_for_rest();
	for (int i = 0; i < 5; i++)
		read_whole(3, 128 * KIB);
	wait_for_rest();
	for (uint32_t i = 4; i < 16; i++)
		assert_int_equal(times_opened(i), i <= 6);
	content_free(c);
}

/* Small entries are decoded ahead, too, although a reader decodes them itself. */
static void small_entries_are_decoded_ahead(void **state)
{
	(void)state;
	make_row(100 * KIB, 2);
	files[5].size = 3 * KIB; /* too small */
	read_up_to_3();
	wait_for_rest();
	for (uint32_t i = 4; i < 16; i++)
		assert_int_equal(times_opened(i), i != 5);
	for (uint32_t i = 4; i < 16; i++)
		read_whole(i, 128 * KIB);
	for (uint32_t i = 1; i < 16; i++)
		assert_int_equal(times_opened(i), 1);
	content_free(c);
}

/* A reader decodes small entries itself while all decoders are busy. */
static void small_entries_do_not_wait_for_decoders(void **state)
{
	struct read r, large;

	(void)state;
	files[15].gated = true;
	make_row(100 * KIB, 1);
	files[15].size = MIB;
	ask(&large, 15, 0, 4096);
	while (!times_opened(15))
		sched_yield();
	read_up_to_3();
	ask(&r, 4, 0, 4096);
	assert_true(is_answered(&r));
	expect_bytes(&r, 4096);
	open_gate(100);
	expect_bytes(&large, 4096);
	wait_for_rest();
	assert_int_equal(times_opened(4), 1);
	content_free(c);
}

/* Readers begin many rows while the only decoder is busy: few entries wait for it. */
static void few_entries_wait(void **state)
{
	struct read r, large;
	unsigned refs;

	(void)state;
	file_count = 512;
	make_row(100 * KIB, 1);
	files[511].gated = true;
	files[511].size = MIB;
	ask(&large, 511, 0, 4096);
	for (uint32_t i = 0; i < 480; i += 32)
		for (uint32_t j = 0; j < 3; j++) {
			ask(&r, i + j, 0, 4096);
			expect_bytes(&r, 4096);
		}
	pthread_mutex_lock(&fake_lock);
	refs = origin.refs; /* each entry that waits has one */
	pthread_mutex_unlock(&fake_lock);
	assert_in_range(refs, 32, 80);
	open_gate(100);
	expect_bytes(&large, 4096);
	wait_for_rest();
	content_free(c);
}

/* Backwards; to the last entry; and bytes in the middle. */
static void nothing_is_decoded_ahead_in_other_orders(void **state)
{
	struct read r;

	(void)state;
	make_row(2 * MIB, 2);
	for (uint32_t i = 12; i > 8; i--)
		read_whole(i, 128 * KIB);
	for (uint32_t i = 1; i < 4; i++) {
		ask(&r, i, 4096, 4096);
		expect_bytes(&r, 4096);
		ask(&r, i, MIB, 4096);
		expect_bytes(&r, 4096);
	}
	wait_for_rest();
	content_free(c);
	make_row(2 * MIB, 2);
	for (uint32_t i = 13; i < 16; i++)
		read_whole(i, 128 * KIB);
	wait_for_rest();
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(times_opened(i),
				 (i >= 9 && i < 16) || (i >= 1 && i < 4));
	content_free(c);
}

/* The only decoder leaves an entry that nobody asked for, and begins it again later. */
static void what_is_asked_for_comes_first(void **state)
{
	struct read r;

	(void)state;
	files[4].gated = true;
	make_row(MIB, 1);
	read_up_to_3();
	while (!times_opened(4))
		sched_yield();
	ask(&r, 8, 0, 4096);
	open_gate(1);
	expect_bytes(&r, 4096);
	open_gate(100);
	wait_for_rest();
	read_whole(4, 128 * KIB);
	assert_int_equal(times_opened(4), 2);
	assert_int_equal(times_opened(8), 1);
	content_free(c);
}

/* The reader comes when the decoder has just left the entry: its bytes are not served. */
static void a_reader_who_comes_when_the_decoder_leaves(void **state)
{
	struct read r, other;

	(void)state;
	files[4].gated = files[4].held_at_end = true;
	make_row(MIB, 1);
	read_up_to_3();
	while (!times_opened(4))
		sched_yield();
	ask(&other, 8, 0, 4096);
	pthread_mutex_lock(&hold);
	open_gate(1);
	while (!__atomic_load_n(&files[4].ends, __ATOMIC_ACQUIRE))
		sched_yield();
	ask(&r, 4, 0, 4096);
	assert_false(is_answered(&r));
	pthread_mutex_unlock(&hold);
	open_gate(100);
	expect_bytes(&other, 4096);
	expect_bytes(&r, 4096);
	wait_for_rest();
	assert_int_equal(times_opened(4), 2);
	content_free(c);
}

/* The reader comes to an entry that is being decoded ahead: it is not begun again. */
static void a_reader_who_comes_meanwhile(void **state)
{
	struct read r, other;

	(void)state;
	files[4].gated = true;
	make_row(MIB, 1);
	read_up_to_3();
	while (!times_opened(4))
		sched_yield();
	ask(&r, 4, 0, 4096);
	ask(&other, 8, 0, 4096);
	open_gate(100);
	expect_bytes(&r, 4096);
	expect_bytes(&other, 4096);
	wait_for_rest();
	assert_int_equal(times_opened(4), 1);
	content_free(c);
}

/* Where half of the memory is taken, nothing is decoded ahead. */
static void nothing_is_decoded_ahead_without_room(void **state)
{
	struct read r;

	(void)state;
	for (uint32_t i = 0; i < 16; i++)
		files[i].size = MIB;
	files[0].size = 31 * MIB;
	ahead = true;
	make(64 * MIB, 2);
	ask(&r, 0, 4096, 4096); /* stays until all of it is read */
	expect_bytes(&r, 4096);
	read_up_to_3();
	wait_for_rest();
	for (uint32_t i = 4; i < 16; i++)
		assert_int_equal(times_opened(i), 0);
	content_free(c);
}

/* An entry whose decoder takes more than half of the memory displaces nothing. */
static void decoders_ahead_take_little_memory(void **state)
{
	(void)state;
	files[4].decoder = 200 * MIB;
	make_row(900 * KIB, 1);
	read_up_to_3();
	wait_for_rest();
	for (uint32_t i = 4; i < 16; i++)
		assert_int_equal(times_opened(i), i != 4);
	assert_true(stats().held_most < 32 * MIB);
	read_whole(4, 128 * KIB);
	assert_int_equal(times_opened(4), 1);
	content_free(c);
}

/* No reader asked for it; one that does gets the error. */
static void damage_found_ahead_is_not_reported(void **state)
{
	struct read r;

	(void)state;
	files[4].fails_at = 0;
	make_row(MIB, 2);
	read_up_to_3();
	wait_for_rest();
	assert_int_equal(times_opened(4), 1);
	assert_int_equal(failures, 0);
	assert_int_equal(stats().errors, 0);
	ask(&r, 4, 0, 4096);
	expect_failure(&r, KPACK_ERROR_DECOMPRESSION_FAILED);
	wait_for_rest();
	assert_int_equal(failures, 1);
	assert_int_equal(stats().errors, 1);
	content_free(c);
}

/* Entries that are read through a window: as much is decoded ahead as of smaller ones. */
static void large_entries_are_begun_ahead(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 16; i++)
		files[i].window = MIB;
	make_row(40 * MIB, 2);
	read_up_to_3();
	wait_for_rest();
	assert_int_equal(times_opened(4), 1);
	assert_int_equal(times_opened(5), 0);
	assert_true(stats().held < 24 * MIB);
	read_whole(4, 128 * KIB);
	assert_int_equal(times_opened(4), 1);
	content_free(c);
}

static void unmount_while_decoding_ahead(void **state)
{
	(void)state;
	files[4].gated = true;
	make_row(MIB, 1);
	read_up_to_3();
	while (!times_opened(4))
		sched_yield();
	open_gate(100);
	content_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(small_file, setup),
		cmocka_unit_test_setup(first_bytes_before_last, setup),
		cmocka_unit_test_setup(one_decode_for_many, setup),
		cmocka_unit_test_setup(small_waits_for_small, setup),
		cmocka_unit_test_setup(corrupt_file, setup),
		cmocka_unit_test_setup(corrupt_small_file, setup),
		cmocka_unit_test_setup(budget_queues_decodes, setup),
		cmocka_unit_test_setup(larger_than_the_budget, setup),
		cmocka_unit_test_setup(nothing_comes_before_the_checksum, setup),
		cmocka_unit_test_setup(small_behind_starved, setup),
		cmocka_unit_test_setup(least_recently_used_goes, setup),
		cmocka_unit_test_setup(served_whole_goes_first, setup),
		cmocka_unit_test_setup(memory_is_given_back, setup),
		cmocka_unit_test_setup(chunks, setup),
		cmocka_unit_test_setup(large_chunks, setup),
		cmocka_unit_test_setup(large_tables_are_not_kept, setup),
		cmocka_unit_test_setup(no_table_of_an_idle_archive_is_kept, setup),
		cmocka_unit_test_setup(corrupt_chunk, setup),
		cmocka_unit_test_setup(absurd_chunk, setup),
		cmocka_unit_test_setup(mixed_load, setup),
		cmocka_unit_test_setup(what_decoders_hold_is_counted, setup),
		cmocka_unit_test_setup(a_pass_does_not_run_ahead, setup),
		cmocka_unit_test_setup(any_budget_will_do, setup),
		cmocka_unit_test_setup(requests_out_of_order, setup),
		cmocka_unit_test_setup(many_readers_of_a_large_file, setup),
		cmocka_unit_test_setup(two_readers_far_apart, setup),
		cmocka_unit_test_setup(one_pass_for_two_readers, setup),
		cmocka_unit_test_setup(readers_in_turn, setup),
		cmocka_unit_test_setup(little_memory_in_order, setup),
		cmocka_unit_test_setup(a_jump_decodes_the_whole, setup),
		cmocka_unit_test_setup(many_readers_in_order, setup),
		cmocka_unit_test_setup(blocks_take_the_spare_memory, setup),
		cmocka_unit_test_setup(passes_leave_room_for_blocks, setup),
		cmocka_unit_test_setup(what_an_old_pass_leaves_is_freed, setup),
		cmocka_unit_test_setup(decoders_of_a_size, setup),
		cmocka_unit_test_setup(random_readers_of_large_files, setup),
		cmocka_unit_test_setup(corrupt_large_file, setup),
		cmocka_unit_test_setup(windows_that_grow, setup),
		cmocka_unit_test_setup(windows_that_grow_for_many, setup),
		cmocka_unit_test_setup(windows_that_are_too_wide, setup),
		cmocka_unit_test_setup(plain_bytes_are_read_where_they_are, setup),
		cmocka_unit_test_setup(chunks_too_large_to_be_held, setup),
		cmocka_unit_test_setup(unmount_in_a_pass, setup),
		cmocka_unit_test_setup(changed_archive, setup),
		cmocka_unit_test_setup(changed_while_it_is_decoded, setup),
		cmocka_unit_test_setup(pressure, setup),
		cmocka_unit_test_setup(counts, setup),
		cmocka_unit_test_setup(unmount_answers_all, setup),
		cmocka_unit_test_setup(the_next_entries_are_decoded_ahead, setup),
		cmocka_unit_test_setup(not_all_entries_are_decoded_ahead, setup),
		cmocka_unit_test_setup(small_entries_are_decoded_ahead, setup),
		cmocka_unit_test_setup(small_entries_do_not_wait_for_decoders, setup),
		cmocka_unit_test_setup(few_entries_wait, setup),
		cmocka_unit_test_setup(nothing_is_decoded_ahead_in_other_orders, setup),
		cmocka_unit_test_setup(what_is_asked_for_comes_first, setup),
		cmocka_unit_test_setup(a_reader_who_comes_when_the_decoder_leaves, setup),
		cmocka_unit_test_setup(a_reader_who_comes_meanwhile, setup),
		cmocka_unit_test_setup(nothing_is_decoded_ahead_without_room, setup),
		cmocka_unit_test_setup(decoders_ahead_take_little_memory, setup),
		cmocka_unit_test_setup(damage_found_ahead_is_not_reported, setup),
		cmocka_unit_test_setup(large_entries_are_begun_ahead, setup),
		cmocka_unit_test_setup(unmount_while_decoding_ahead, setup),
	};

	for (uint32_t i = 0, x = 1; i < PERIOD; i++, x = x * 1664525 + 1013904223)
		pattern[i] = (uint8_t)(x >> 24);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
