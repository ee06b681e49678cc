/* SPDX-License-Identifier: MIT */
/*
 * The content cache in random worlds: entries of all kinds, some of them damaged, readers that
 * go on in order or jump, little memory, archives that change, time that passes; and decoders
 * that work between all of that, and while other decoders are in the middle of something.
 * Whatever happens, each read has one answer, with the right bytes or an error that is true.
 * CONTENT_SEED=N plays only the world N.
 */
#include "fake.h"
#include "fs/content/internal.h"

enum { FILES = 12, READERS = 6, STEPS = 60, DEPTH = 3, SEGMENT_SIZE = 512 * KIB };
enum { SEEDS = UNIT_ASAN || UNIT_TSAN ? 2000 : 20000 };

static uint64_t dice;

static uint64_t below(uint64_t n)
{
	dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (dice >> 33) % n;
}

static bool one_in(uint64_t n)
{
	return below(n) == 0;
}

static uint64_t one_of(const uint64_t *list, size_t n)
{
	return list[below(n)];
}
#define ONE_OF(...)                                                                      \
	one_of((const uint64_t[]){__VA_ARGS__},                                          \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* ---- the world ---- */

static uint64_t most_budget;   /* without memory pressure */
static uint64_t least_budget;  /* since the world began */
static uint64_t largest_piece; /* with what its decoder holds */
static unsigned depth;         /* of steps inside of steps */
static unsigned forgets;
static struct read reads[2000];
static unsigned n_reads;
static struct {
	uint32_t file;
	uint64_t at;
} readers[READERS];

/* The most bytes that are held at once with this budget. */
static uint64_t fair(uint64_t budget)
{
	return budget < 2 * MIB ? MIB : budget - budget / 8;
}

/* True if F is decoded in segments and no other way. */
static bool is_cut(const struct file *f)
{
	const struct kpack_archive *a = &archives[f->origin];

	return (!f->chunk || f->chunk > fair(most_budget)) &&
	       f->size > fair(most_budget) && !a->plain && !a->blocks;
}

static void make_file(struct file *f)
{
	uint64_t size = ONE_OF(1, 500, 4 * KIB, 40 * KIB, 100 * KIB, 256 * KIB, 300 * KIB,
			       MIB, 3 * MIB / 2, 5 * MIB);

	*f = (struct file){
		.size = size + below(3) * 777, .fails = NONE, .window = 64 * MIB};
	f->origin = below(2) ? 0 : below(ORIGINS);
	f->window = ONE_OF(64 * KIB, MIB, 8 * MIB);
	if (one_in(3))
		f->chunk = ONE_OF(16 * KIB, 64 * KIB, 512 * KIB, 2 * MIB);
	if (one_in(50))
		f->chunk = 1;
	if (archives[f->origin].plain || archives[f->origin].blocks)
		f->chunk = 0; /* chunks are frames */
	if (one_in(5))
		f->fails = below(f->size);
	if (one_in(8)) {
		f->wide_at = below(f->size);
		f->wide = ONE_OF(MIB, 8 * MIB, 100 * MIB);
	}
	if (one_in(8)) {
		f->whole = 1;
		f->bad = below(2);
	}
	if (one_in(4))
		f->decoder = below(2 * MIB);
	f->rows = one_in(10) ? 1 << 20 : 10;
}

static void note_sizes(void)
{
	largest_piece = MIB;
	for (uint32_t i = 0; i < FILES; i++) {
		const struct file *f = &files[i];
		uint64_t piece = f->chunk > 1 && f->chunk < f->size ? f->chunk : f->size;
		uint64_t beside = f->decoder > piece ? f->decoder : piece;

		if (!is_cut(f) && piece + beside > largest_piece)
			largest_piece = piece + beside + 4 * KIB;
	}
}

static void checked(const struct read *r, kpack_error_t code);
static void maybe_step(uint32_t file, unsigned number);

static void make_world(uint64_t seed)
{
	dice = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	below(1);
	reset_files();
	archives[1].plain = true;
	archives[2].blocks = ONE_OF(32 * KIB, 256 * KIB);
	for (uint32_t i = 0; i < ORIGINS; i++)
		archives[i].entries = FILES;
	for (uint32_t i = 0; i < FILES; i++)
		make_file(&files[i]);
	if (one_in(4)) /* a row, to be decoded ahead */
		for (uint32_t i = 1; i < FILES; i++)
			files[i] = (struct file){
				.size = ONE_OF(40 * KIB, 300 * KIB, 5 * MIB),
				.fails = i == 7 ? 20 * KIB : NONE,
				.window = MIB};
	most_budget = ONE_OF(0, MIB, 2 * MIB, 3 * MIB, 8 * MIB, 64 * MIB);
	least_budget = most_budget;
	note_sizes();
	n_reads = depth = forgets = 0;
	for (uint32_t i = 0; i < READERS; i++)
		readers[i].file = (uint32_t)below(FILES), readers[i].at = 0;
	make(most_budget, 1 + (unsigned)below(3), one_in(2));
	check = checked;
	between = maybe_step;
}

/* ---- what may be answered ---- */

static bool fits(const struct read *r, const struct file *f, uint64_t unit)
{
	return (r->off + r->len - 1) / unit < f->fails / unit ||
	       r->off / unit > f->fails / unit;
}

/* True if R must fail: it wants damaged bytes, or such that are known only with those. */
static bool must_fail(const struct read *r, const struct file *f)
{
	uint64_t end = r->off + r->len < f->size ? r->off + r->len : f->size;

	if (r->off >= f->size || r->len == 0)
		return false;
	return f->bad || f->chunk == 1 || (r->off <= f->fails && f->fails < end);
}

/* True if R may not fail although its entry is damaged: it wants no damaged piece. */
static bool must_succeed(const struct read *r, const struct file *f)
{
	if (f->bad || f->chunk == 1 || r->off >= f->size ||
	    (f->wide && f->size > INLINE_MAX))
		return false;
	if (f->fails == NONE)
		return true;
	if (f->whole)
		return false;
	if (f->chunk && f->chunk <= fair(least_budget))
		return fits(r, f, f->chunk);
	return is_cut(f) &&
	       (r->off + r->len - 1) / SEGMENT_SIZE < f->fails / SEGMENT_SIZE;
}

static void checked(const struct read *r, kpack_error_t code)
{
	const struct file *f = &files[r->file];
	const struct origin *o = &origins[f->origin];

	if (code == KPACK_SUCCESS)
		assert_false(must_fail(r, f));
	else if (code == KPACK_ERROR_IO_ERROR)
		assert_true(o->changed || runner.executor.stopped);
	else if (f->chunk == 1)
		assert_int_equal(code, KPACK_ERROR_INVALID_FORMAT);
	else
		assert_int_equal(code, KPACK_ERROR_DECOMPRESSION_FAILED);
	if (code == KPACK_ERROR_DECOMPRESSION_FAILED) {
		assert_true(f->fails != NONE || f->bad || f->wide);
		assert_false(must_succeed(r, f));
	}
}

/* ---- what happens ---- */

static void read_next(void)
{
	unsigned k = (unsigned)below(READERS);
	struct read *r = &reads[n_reads];
	uint64_t len = ONE_OF(1, STAMP, GRID, 2 * GRID, 4 * GRID, 8 * GRID);

	if (n_reads == sizeof(reads) / sizeof(*reads))
		return;
	if (readers[k].at >= files[readers[k].file].size) {
		readers[k].file = one_in(3) ? (uint32_t)below(FILES)
					    : (readers[k].file + 1) % FILES;
		readers[k].at = 0;
	} else if (one_in(12)) {
		readers[k].at = below(files[readers[k].file].size / GRID + 1) * GRID;
	}
	*r = (struct read){.file = readers[k].file, .off = readers[k].at, .len = len};
	n_reads++;
	readers[k].at += len < GRID ? GRID : len;
	content_read(content, entry(r->file), r->off, r->len, answer, r);
}

static void forget(void)
{
	struct origin *o = &origins[below(ORIGINS)];

	o->idle = below(2);
	content_forget(content, o);
	forgets++;
}

static void shrink(uint64_t percent)
{
	content_shrink(content, (unsigned)percent);
	if (most_budget * percent / 100 < least_budget)
		least_budget = most_budget * percent / 100;
}

static void do_step(void)
{
	uint64_t what = below(100);

	if (what < 60)
		read_next();
	else if (what < 84)
		run_one();
	else if (what < 88)
		run_all();
	else if (what < 91)
		pass_time(ONE_OF(1, 3, 61));
	else if (what < 93)
		forget();
	else if (what < 95)
		shrink(ONE_OF(0, 50, 100, 100));
	else if (what < 96)
		pool = ONE_OF(0, 0, MIB, 8 * MIB);
	else if (what < 97 && one_in(4))
		origins[below(ORIGINS)].changed = true;
	else if (what < 98 && one_in(8))
		runner.executor.stopped = true;
}

static void maybe_step(uint32_t file, unsigned number)
{
	(void)file, (void)number;
	assert_unlocked();
	if (depth == 0 || depth >= DEPTH || !one_in(4))
		return;
	depth++;
	do_step();
	depth--;
}

/* ---- what holds between two steps ---- */

/* Passes may take 14 MB more. */
static uint64_t held_bound(void)
{
	uint64_t bound = most_budget > largest_piece ? most_budget : largest_piece;

	for (uint32_t i = 0; i < FILES; i++)
		if (files[i].size >= 4 * MIB || files[i].size > fair(least_budget))
			return bound + 14 * MIB;
	return bound;
}

static void check_numbers(void)
{
	struct content_stats s = stats();
	uint64_t faults = 0, times = 0;

	for (int i = 0; i < CONTENT_FAULTS; i++)
		faults += s.faults[i];
	for (int i = 0; i <= CONTENT_TIMES; i++)
		times += s.decode_times[i];
	assert_int_equal(faults, s.errors);
	assert_int_equal(times, s.decodes);
	assert_int_equal(s.reads, n_right);
	assert_true(s.hits <= s.reads);
	if (!runner.executor.stopped)
		assert_int_equal(failures, s.errors);
	assert_true(changes <= ORIGINS + forgets);
	if (s.held - pool > held_bound())
		fail_msg("holds %llu bytes, budget %llu, bound %llu",
			 (unsigned long long)s.held, (unsigned long long)most_budget,
			 (unsigned long long)held_bound());
}

/* No decoder has anything to do: so nobody may wait, and all memory can be freed. */
static void check_rest(void)
{
	run_all();
	between = NULL;
	if (runner.executor.stopped)
		return;
	assert_int_equal(n_answered, n_reads);
	for (int i = 0; i < 3; i++)
		pass_time(61);
	pool = 0;
	assert_int_equal(stats().held, 0);
	assert_int_equal(open_decoders + open_passes, 0);
	for (int i = 0; i < ORIGINS; i++) {
		content_forget(content, &origins[i]);
		assert_int_equal(origins[i].refs, 1);
	}
	assert_int_equal(open_tables, 0);
}

static void play(uint64_t seed)
{
	make_world(seed);
	for (int i = 0; i < STEPS && !runner.executor.stopped; i++) {
		depth = 1;
		do_step();
		depth = 0;
		check_numbers();
	}
	depth = one_in(2);
	check_rest();
	content_free(content);
	for (unsigned i = 0; i < n_reads; i++)
		assert_int_equal(reads[i].answered, 1);
	for (int i = 0; i < ORIGINS; i++)
		assert_int_equal(origins[i].refs, 1);
	assert_int_equal(open_decoders + open_tables, 0);
}

static uint64_t seed; /* that is played */

static int say_seed(void **state)
{
	if (seed)
		print_error("CONTENT_SEED=%llu plays it alone\n",
			    (unsigned long long)seed);
	return 0;
}

TEST(every_seed, NULL, say_seed)
{
	const char *only = getenv("CONTENT_SEED");
	uint64_t last = only ? strtoull(only, NULL, 10) : SEEDS;

	for (seed = only ? last : 1; seed <= last; seed++)
		play(seed);
	seed = 0;
}
