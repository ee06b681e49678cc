/* SPDX-License-Identifier: MIT */
/*
 * The content cache over made-up archives: each case is a script of the language below, which
 * says what is read, when decoders work, and what must hold then.
 */
#include "fake.h"
#include "fs/content/decoders.h"
#include <ctype.h>

/*
 * The language.  Words are separated by spaces; a number is a sum of products, from left to
 * right, of literals with or without K, M or G (as 3M-10) and of the loops' variables i and
 * j.
 *
 *   file F SIZE, files F L SIZE     the entry F has SIZE bytes; those from F to L have that,
 *                                   and as many more as their number says
 *   window N, fails N, ...          for these entries: a fact of struct file
 *   make BUDGET DECODERS            begin; "ahead" before it: decode ahead
 *   ask F OFF LEN                   a read, which will succeed; ask_bad: will fail; and others
 *   get, bad, io, format            the same, and the decoders work until they have an answer
 *   now F OFF LEN                   a read that is answered at once
 *   all F LEN                       get all of F, LEN bytes at a time
 *   run                             the decoders that are awake work
 *   at F N ( ... )                  what happens before step N of decoding F, or, if N is 0,
 *                                   when a decode of F ends
 *   i A B ( ... ), j A B ( ... )    a loop
 *   NAME = N, NAME <= N, NAME >= N  a number of the list `numbers` must be so; "opened F": how
 *                                   often F was opened for a decode
 *   time N, shrink PERCENT, forget, free, stop
 *                                   N seconds pass; content_shrink, content_forget and
 *                                   content_free; content_free began in another thread
 *   change, idle N, plain, blocks N, entries N, pool AFTER N
 *                                   the archive was written to, or is idle; all is stored
 *                                   without compression, or in blocks of N bytes; how many
 *                                   entries it has; blocks of shared archives take N bytes,
 *                                   AFTER questions later
 */
struct script {
	const char *at;
	char word[32]; /* the next word */
};

static struct read reads[40000];
static size_t n_reads;
static uint64_t i, j;
static bool ahead;
static uint32_t first, last; /* the entries that facts are for */
static struct {
	uint32_t file;
	unsigned step;
	const char *script;
} hooks[4];
static size_t n_hooks;

static void next(struct script *s)
{
	size_t n;

	while (isspace((unsigned char)*s->at))
		s->at++;
	n = strcspn(s->at, " \n\t");
	assert_true(n < sizeof(s->word));
	memcpy(s->word, s->at, n);
	s->word[n] = 0;
	s->at += n;
}

static uint64_t term(const char **p)
{
	uint64_t n = 0;

	if (**p == 'i' || **p == 'j')
		return *(*p)++ == 'i' ? i : j;
	assert_true(isdigit((unsigned char)**p));
	while (isdigit((unsigned char)**p))
		n = n * 10 + (uint64_t)(*(*p)++ - '0');
	switch (**p) {
	case 'G':
		n *= KIB; /* fall through */
	case 'M':
		n *= KIB; /* fall through */
	case 'K':
		n *= KIB;
		(*p)++;
	}
	return n;
}

static uint64_t product(const char **p)
{
	uint64_t n = term(p);

	while (**p == '*' || **p == '%') {
		char op = *(*p)++;
		uint64_t other = term(p);

		n = op == '*' ? n * other : n % other;
	}
	return n;
}

static uint64_t number(struct script *s)
{
	const char *p = s->word;
	uint64_t n = product(&p);

	while (*p == '+' || *p == '-') {
		char op = *p++;
		uint64_t other = product(&p);

		n = op == '+' ? n + other : n - other;
	}
	assert_int_equal(*p, 0);
	next(s);
	return n;
}

/* ---- what is read ---- */

static struct read *ask(uint32_t file, uint64_t off, size_t len, kpack_error_t expected)
{
	struct read *r = &reads[n_reads++];

	assert_true(n_reads < sizeof(reads) / sizeof(*reads));
	*r = (struct read){file, off, len, expected, 0};
	content_read(content, entry(file), off, len, answer, r);
	return r;
}

static const struct {
	const char *ask, *get;
	kpack_error_t expected;
} kinds[] = {
	{"ask", "get", KPACK_SUCCESS},
	{"ask_bad", "bad", KPACK_ERROR_DECOMPRESSION_FAILED},
	{"ask_io", "io", KPACK_ERROR_IO_ERROR},
	{"ask_format", "format", KPACK_ERROR_INVALID_FORMAT},
	{"", "now", KPACK_SUCCESS}, /* no decoder works for it */
};

static bool read_some(struct script *s, const char *word)
{
	size_t k = 0, len;
	struct read *r;
	uint32_t file;
	uint64_t off;

	while (k < 5 && strcmp(word, kinds[k].ask) != 0 &&
	       strcmp(word, kinds[k].get) != 0)
		k++;
	if (k == 5)
		return false;
	file = (uint32_t)number(s);
	off = number(s);
	len = number(s);
	r = ask(file, off, len, kinds[k].expected);
	if (strcmp(word, "now") != 0 && strcmp(word, kinds[k].get) == 0)
		run_all();
	assert_true(r->answered || strcmp(word, kinds[k].ask) == 0);
	return true;
}

static void read_all(struct script *s)
{
	uint32_t file = (uint32_t)number(s);
	uint64_t len = number(s);

	for (uint64_t off = 0; off < files[file].size; off += len) {
		ask(file, off, len, KPACK_SUCCESS);
		run_all();
	}
}

/* ---- numbers that are compared ---- */

#define STAT(field)                                                                      \
	{                                                                                \
#field, offsetof(struct content_stats, field), NULL                      \
	}
#define COUNT_OF(name)                                                                   \
	{                                                                                \
#name, 0, &(name)                                                        \
	}
static const struct {
	const char *name;
	size_t offset;
	const unsigned *count;
} numbers[] = {
	STAT(reads),
	STAT(bytes_served),
	STAT(hits),
	STAT(decodes),
	STAT(bytes_decoded),
	STAT(crowded_out),
	STAT(expired),
	STAT(passes),
	STAT(restarts),
	STAT(errors),
	{"unreadable", offsetof(struct content_stats, faults[CONTENT_UNREADABLE]), NULL},
	{"corrupt", offsetof(struct content_stats, faults[CONTENT_CORRUPT]), NULL},
	{"changed", offsetof(struct content_stats, faults[CONTENT_CHANGED]), NULL},
	STAT(held),
	STAT(held_most),
	STAT(budget),
	COUNT_OF(failures),
	COUNT_OF(changes),
	{"answered", 0, &n_answered},
	{"most_running", 0, (const unsigned *)&most_running},
	{"open_passes", 0, (const unsigned *)&open_passes},
	{"open_tables", 0, (const unsigned *)&open_tables},
	{"open_decoders", 0, (const unsigned *)&open_decoders},
	{"refs", 0, (const unsigned *)&origins[0].refs},
};

static bool value_of(struct script *s, const char *name, uint64_t *out)
{
	struct content_stats now = content ? stats() : (struct content_stats){0};

	if (strcmp(name, "opened") == 0) {
		*out = files[number(s)].opened;
		return true;
	}
	for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++)
		if (strcmp(name, numbers[k].name) == 0) {
			*out = numbers[k].count ? *numbers[k].count
						: *(const uint64_t *)((const char *)&now +
								      numbers[k].offset);
			return true;
		}
	return false;
}

static bool compare(struct script *s, const char *name)
{
	uint64_t value, wanted;
	char op[3] = "";

	if (!value_of(s, name, &value))
		return false;
	memcpy(op, s->word, 2);
	next(s);
	wanted = number(s);
	if (op[0] == '='   ? value == wanted
	    : op[0] == '<' ? value <= wanted
			   : value >= wanted)
		return true;
	fail_msg("%s is %llu, not %s %llu, before: %s", name, (unsigned long long)value,
		 op, (unsigned long long)wanted, s->at);
	return true;
}

/* ---- facts, and what else there is ---- */

static const struct {
	const char *name;
	size_t offset;
} facts[] = {
	{"chunk", offsetof(struct file, chunk)},
	{"fails", offsetof(struct file, fails)},
	{"window", offsetof(struct file, window)},
	{"decoder", offsetof(struct file, decoder)},
	{"wide_at", offsetof(struct file, wide_at)},
	{"wide", offsetof(struct file, wide)},
	{"rows", offsetof(struct file, rows)},
	{"bad_sum", offsetof(struct file, bad)},
	{"whole", offsetof(struct file, whole)},
};

static bool set_fact(struct script *s, const char *name)
{
	for (size_t k = 0; k < sizeof(facts) / sizeof(*facts); k++)
		if (strcmp(name, facts[k].name) == 0) {
			uint64_t n = number(s);

			for (uint32_t f = first; f <= last; f++)
				*(uint64_t *)((char *)&files[f] + facts[k].offset) = n;
			return true;
		}
	return false;
}

static void set_files(struct script *s, bool several)
{
	uint64_t size;

	last = first = (uint32_t)number(s);
	if (several)
		last = (uint32_t)number(s);
	size = number(s);
	for (uint32_t f = first; f <= last; f++)
		files[f] = (struct file){.size = size + (several ? f : 0),
					 .fails = NONE,
					 .window = 64 * MIB};
}

static void play(const char *text);

static const char *block(struct script *s)
{
	const char *begin = s->at;
	int depth = 1;

	assert_string_equal(s->word, "(");
	while (depth) {
		next(s);
		assert_true(s->word[0]);
		depth += (strcmp(s->word, "(") == 0) - (strcmp(s->word, ")") == 0);
	}
	next(s);
	return begin;
}

static void loop(struct script *s, uint64_t *variable)
{
	uint64_t from = number(s), to = number(s);
	const char *body = block(s);

	for (*variable = from; *variable <= to; ++*variable)
		play(body);
}

static void play_hook(uint32_t file, unsigned step)
{
	for (size_t k = 0; k < n_hooks; k++)
		if (hooks[k].file == file && hooks[k].step == step && hooks[k].script) {
			const char *script = hooks[k].script;

			hooks[k].script = NULL;
			assert_unlocked();
			play(script);
		}
}

static void add_hook(struct script *s)
{
	hooks[n_hooks].file = (uint32_t)number(s);
	hooks[n_hooks].step = (unsigned)number(s);
	hooks[n_hooks++].script = block(s);
	between = play_hook;
}

static void end(void)
{
	content_free(content);
	content = NULL;
}

static void set_pool(struct script *s)
{
	pool_after = (int)number(s);
	pool = number(s);
}

static void do_word(struct script *s, const char *word)
{
#define WORD(name) (strcmp(word, name) == 0)
	if (WORD("file") || WORD("files")) {
		set_files(s, WORD("files"));
	} else if (WORD("ahead")) {
		ahead = true;
	} else if (WORD("plain")) {
		archives[0].plain = true;
	} else if (WORD("blocks")) {
		archives[0].blocks = number(s);
	} else if (WORD("entries")) {
		archives[0].entries = number(s);
	} else if (WORD("make")) {
		uint64_t budget = number(s);

		make(budget, (unsigned)number(s), ahead);
	} else if (WORD("all")) {
		read_all(s);
	} else if (WORD("run")) {
		run_all();
	} else if (WORD("at")) {
		add_hook(s);
	} else if (WORD("i") || WORD("j")) {
		loop(s, WORD("i") ? &i : &j);
	} else if (WORD("time")) {
		pass_time(number(s));
	} else if (WORD("shrink")) {
		content_shrink(content, (unsigned)number(s));
	} else if (WORD("forget")) {
		content_forget(content, &origins[0]);
	} else if (WORD("idle")) {
		origins[0].idle = number(s);
	} else if (WORD("change")) {
		origins[0].changed = true;
	} else if (WORD("pool")) {
		set_pool(s);
	} else if (WORD("stop")) {
		runner.executor.stopped = true;
	} else if (WORD("free")) {
		end();
	} else if (!read_some(s, word) && !set_fact(s, word) && !compare(s, word)) {
		fail_msg("no such word: %s", word);
	}
}

static void play(const char *text)
{
	struct script s = {.at = text};
	char word[sizeof(s.word)];

	next(&s);
	while (s.word[0] && strcmp(s.word, ")") != 0) {
		memcpy(word, s.word, sizeof(word));
		next(&s);
		do_word(&s, word);
	}
}

/* ---- the cases ---- */

#include "cases.h"

static const char *playing; /* the name of a case */

static int say_case(void **state)
{
	if (playing)
		print_error("in the case \"%s\"\n", playing);
	return 0;
}

static void play_case(const char *script)
{
	reset_files();
	n_reads = n_hooks = 0;
	ahead = false;
	play(script);
	if (content) {
		run_all();
		end();
	}
	for (size_t r = 0; r < n_reads; r++)
		assert_int_equal(reads[r].answered, 1);
	assert_int_equal(origins[0].refs, 1);
	assert_int_equal(open_tables + open_decoders, 0);
}

TEST(cases_hold, NULL, say_case)
{
	for (size_t k = 0; k < COUNT(cases); k++) {
		playing = cases[k].name;
		play_case(cases[k].script);
	}
	playing = NULL;
}

/* ---- decoders ---- */

static struct kp_reader *open_decoder(struct decoders *ds, uint64_t most)
{
	struct kp_reader *d = NULL;

	assert_int_equal(decoders_open(ds, entry(1), KP_READ_STEPS, most, &d, NULL),
			 KPACK_SUCCESS);
	return d;
}

/* A kept decoder is used for what may hold its memory. */
TEST(decoders_of_a_size)
{
	struct kp_reader *more, *less, *d;
	struct decoders ds;

	reset_files();
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
