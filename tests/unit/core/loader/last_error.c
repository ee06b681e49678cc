/* SPDX-License-Identifier: MIT */
#include "core/loader/api_state.h"
#include "tests/unit/archive_builder.h"
#include "core/base/errors.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack_design.h"
#include "core/rocm_kpack/kpackx.h"
#include <pthread.h>
#include <sys/wait.h>
#include "tests/unit/unit.h"

/* this test calls both AMD's function and the paper's */
#undef kpack_get_kernel
#undef kpack_free_kernel

static kpack_archive_t opened(void)
{
	struct ab a = ab_new(64);
	kpack_archive_t archive = NULL;

	ab_put(&a, "0123", 4);
	ab_toc(&a, "{'gfx_arches': ['x'], 'blobs': [{'offset': 64, 'size': 4}], 'toc': "
		   "{'a#0': {'x': @0}}}");
	assert_int_equal(ab_open(&a, &archive, NULL), KPACK_SUCCESS);
	ab_free(&a);
	return archive;
}

/* --- one thread ----------------------------------------------------------------------- */

TEST(nothing_is_reported_before_a_failure)
{
	kpack_archive_t a = opened(), b = opened();
	size_t n;

	assert_int_equal(kpack_get_binary_count(a, &n), KPACK_SUCCESS);
	assert_string_equal(kpack_get_last_error(a), "");
	assert_int_equal(kpack_get_binary_count(a, NULL), KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(kpack_get_last_error(a), "an argument is NULL");
	assert_int_equal(kpack_get_binary_count(a, &n), KPACK_SUCCESS);
	assert_string_equal(kpack_get_last_error(a), "an argument is NULL");
	assert_string_equal(kpack_get_last_error(b), "");
	assert_int_not_equal(kp_api_errors(a)->number, kp_api_errors(b)->number);
	kpack_close(a);
	kpack_close(b);
	a = opened(); /* possibly at the old handle's address */
	assert_string_equal(kpack_get_last_error(a), "");
	kpack_close(a);
}

/* For an entry that exists but was refused, the message is more than "no entry". */
TEST(what_was_refused_is_reported)
{
	static const struct {
		const char *name, *arch, *text;
	} cases[] = {
		{"a#0", "x", "refused: toc: a#0 x: ordinal 9 of 1 blobs"},
		{"a", "x", "refused: toc: a#0 x: ordinal 9 of 1 blobs"},
		{"b#1", "x", "refused: toc: b#1 x: original_size 5 of 4 stored bytes"},
		{"b", "x", "no entry b for x"},
		{"b#0", "x", "no entry b#0 for x"},
		{"a", "y", "no entry a for y"},
		{"", "x", "no entry  for x"},
	};
	struct ab b = ab_new(64);
	kpack_archive_t a = NULL;
	void *data = NULL;
	size_t n;

	ab_put(&b, "0123", 4);
	ab_toc(&b, "{'gfx_arches': ['x'], 'blobs': [{'offset': 64, 'size': 4}], 'toc': "
		   "{'a#0': {'x': @9, 'xx': @0}, 'b#1': {'x': {'ordinal': 0, "
		   "'original_size': 5}}}}");
	assert_int_equal(ab_open(&b, &a, NULL), KPACK_SUCCESS);
	ab_free(&b);
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(
			kpack_get_kernel(a, cases[i].name, cases[i].arch, &data, &n),
			KPACK_ERROR_KERNEL_NOT_FOUND);
		assert_string_equal(kpack_get_last_error(a), cases[i].text);
	}
	kpack_close(a);
}

/* The message names the entry, because an archive can have a million entries. */
TEST(the_entry_that_cannot_be_read_is_named)
{
	static const char want[] = "a x: frame: ";
	struct kpackx_error why = {0};
	struct ab stored = {0};
	kpack_archive_t archive;
	uint8_t buf[8];
	void *data;
	size_t n;

	ab_put(&stored, "damaged", 7);
	archive = ab_entry(false, &stored, 8, "{}");
	assert_int_equal(kpack_get_kernel(archive, "a", "x", &data, &n),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_memory_equal(kpack_get_last_error(archive), want, strlen(want));
	assert_int_equal(kpackx_read_entry(archive, 0, buf, 8, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_memory_equal(why.text, want, strlen(want));
	assert_int_equal(kpackx_read_range(archive, 0, 1, buf, 2, &n, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_memory_equal(kpack_get_last_error(archive), want, strlen(want));
	kpack_close(archive);
}

TEST(opening_has_a_reason_of_its_own)
{
	kpack_archive_t a = opened(), none = NULL;
	struct kpackx_error why;

	assert_int_equal(kpack_open("/nonexistent.kpack", &none),
			 KPACK_ERROR_FILE_NOT_FOUND);
	assert_string_equal(kpack_get_last_error(NULL),
			    "cannot open: No such file or directory");
	assert_int_equal(kpackx_open("/dev/null", &none, &why), KPACK_ERROR_IO_ERROR);
	assert_string_equal(kpack_get_last_error(NULL), why.text);
	assert_int_equal(kpack_open(NULL, &none), KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(kpack_get_last_error(NULL), "path or archive is NULL");
	assert_string_equal(kpack_get_last_error(a), "");
	kpack_close(a);
}

/* --- every call ----------------------------------------------------------------------- */

static kpack_archive_t archive;
static const char *text;
static const char **texts;
static const void *bytes;
static struct kpackx_entry entry;
static uint8_t buf[8];
static void *data;
static size_t count;

static void check_kept(kpack_error_t err, const char *want, const char *call)
{
	if (err != KPACK_ERROR_INVALID_ARGUMENT && err != KPACK_ERROR_KERNEL_NOT_FOUND)
		fail_msg("%s: %d", call, (int)err);
	if (strcmp(kpack_get_last_error(archive), want) != 0)
		fail_msg("%s: %s", call, kpack_get_last_error(archive));
	/* the next failing call must replace the message */
	assert_int_equal(kpack_get_architecture(archive, 77, &text),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(kpack_get_last_error(archive), "architecture 77 of 1");
}

#define NULL_ARGUMENT "an argument is NULL"
#define KEPT(want, call) check_kept(call, want, #call)

TEST(every_call_keeps_its_reason)
{
	archive = opened();
	KEPT(NULL_ARGUMENT, kpack_get_architecture_count(archive, NULL));
	KEPT(NULL_ARGUMENT, kpack_get_architecture(archive, 0, NULL));
	KEPT("architecture 1 of 1", kpack_get_architecture(archive, 1, &text));
	KEPT(NULL_ARGUMENT, kpack_get_binary_count(archive, NULL));
	KEPT(NULL_ARGUMENT, kpack_get_binary(archive, 0, NULL));
	KEPT("binary 3 of 1", kpack_get_binary(archive, 3, &text));
	KEPT(NULL_ARGUMENT, kpack_get_architectures(archive, NULL, &count));
	KEPT(NULL_ARGUMENT, kpack_get_architectures(archive, &texts, NULL));
	KEPT(NULL_ARGUMENT, kpackx_get_group(archive, NULL, &text));
	KEPT(NULL_ARGUMENT, kpackx_get_group(archive, &text, NULL));
	KEPT(NULL_ARGUMENT, kpack_get_kernel(archive, NULL, "x", &data, &count));
	KEPT("no entry a#1 for x", kpack_get_kernel(archive, "a#1", "x", &data, &count));
	KEPT(NULL_ARGUMENT, kpackx_get_kernel(archive, "a", "x", NULL, &count, NULL));
	KEPT(NULL_ARGUMENT, kpack_list_kernels(archive, NULL, "x", &texts, &count));
	KEPT(NULL_ARGUMENT, kpack_list_kernels(archive, "a", NULL, &texts, &count));
	KEPT(NULL_ARGUMENT, kpack_list_kernels(archive, "a", "x", NULL, &count));
	KEPT(NULL_ARGUMENT, kpack_list_kernels(archive, "a", "x", &texts, NULL));
	KEPT(NULL_ARGUMENT, kpack_get_kernel_metadata(archive, NULL, "x", &text, &count));
	KEPT(NULL_ARGUMENT, kpack_get_kernel_metadata(archive, "a", "x", NULL, &count));
	KEPT(NULL_ARGUMENT, kpack_get_kernel_metadata(archive, "a", "x", &text, NULL));
	KEPT("no entry a for y",
	     kpack_get_kernel_metadata(archive, "a", "y", &text, &count));
	KEPT(NULL_ARGUMENT, kpackx_get_entry_count(archive, NULL));
	KEPT(NULL_ARGUMENT, kpackx_get_entry(archive, 0, NULL));
	KEPT("entry 1 of 1", kpackx_get_entry(archive, 1, &entry));
	KEPT(NULL_ARGUMENT, kpackx_find_entry(archive, "a", NULL, &count));
	KEPT("no entry  for x", kpackx_find_entry(archive, "", "x", &count));
	KEPT(NULL_ARGUMENT, kpackx_read_entry(archive, 0, NULL, 4, NULL));
	KEPT("entry 2 of 1", kpackx_read_entry(archive, 2, buf, 4, NULL));
	KEPT("entry 0 has 4 bytes, the buffer 3",
	     kpackx_read_entry(archive, 0, buf, 3, NULL));
	KEPT(NULL_ARGUMENT, kpackx_read_range(archive, 0, 0, NULL, 4, &count, NULL));
	KEPT(NULL_ARGUMENT, kpackx_read_range(archive, 0, 0, buf, 4, NULL, NULL));
	KEPT("entry 9 of 1", kpackx_read_range(archive, 9, 0, buf, 4, &count, NULL));
	KEPT(NULL_ARGUMENT, kpackx_design_get_kernel(archive, "a", "x", NULL, &count));
	KEPT("no entry b for x",
	     kpackx_design_get_kernel(archive, "b", "x", &bytes, &count));
	kpack_close(archive);
}

/* --- texts ---------------------------------------------------------------------------- */

TEST(every_code_has_words)
{
	for (int i = 0; i <= KPACK_ERROR_ARCH_NOT_FOUND; i++) {
		const char *words = kpack_error_string((kpack_error_t)i);

		assert_true(words[0] >= 'a' && words[0] <= 'z');
		for (int k = 0; k < i; k++)
			assert_string_not_equal(words,
						kpack_error_string((kpack_error_t)k));
	}
	assert_string_equal(kpack_error_string(KPACK_ERROR_FILE_NOT_FOUND),
			    "no such file");
	assert_string_equal(kpackx_error_name(KPACK_ERROR_ARCH_NOT_FOUND),
			    "KPACK_ERROR_ARCH_NOT_FOUND");
	assert_string_equal(kpack_error_string((kpack_error_t)15), "unknown error");
	assert_string_equal(kpack_error_string((kpack_error_t)-1), "unknown error");
	assert_string_equal(kpackx_error_name((kpack_error_t)15), "KPACK_ERROR_?");
}

/* A text that is too long is cut between characters; the outer prefixes and the reason stay. */
TEST(long_reasons_are_cut_at_a_character)
{
	static const char *const characters[] = {"a", "\xc3\xa4", "\xe2\x82\xac",
						 "\xf0\x9f\x98\x80"};
	struct kpackx_error why;

	for (size_t i = 0; i < 4 * COUNT(characters); i++) {
		size_t n = i / 4 + 1, shift = i % 4;
		char long_text[1000] = "";

		for (size_t at = 0; at + n < sizeof(long_text); at += n)
			memcpy(long_text + at, characters[i / 4], n + 1);
		kp_fail(&why, KPACK_ERROR_IO_ERROR, "%.*s%s", (int)shift, "xyz",
			long_text);
		assert_int_equal(strlen(why.text),
				 (sizeof(why.text) - 1 - shift) / n * n + shift);
	}
	kp_fail(&why, KPACK_ERROR_INVALID_FORMAT, "too deep");
	for (int i = 0; i < 100; i++)
		kp_fail_prefix(&why, KPACK_ERROR_INVALID_FORMAT, "item %d", i);
	assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
	assert_memory_equal(why.text, "item 99: ...", 12);
	assert_has(why.text, ": item 0: too deep");
}

/* --- threads -------------------------------------------------------------------------- */

struct one {
	struct kp_last_errors *errors;
	const char *want;
	bool right;
};

static void *fail_once(void *arg)
{
	struct one *o = arg;

	o->right = kp_last_errors_text(o->errors)[0] == '\0';
	kp_last_errors_note(o->errors, "it failed");
	o->right &= strcmp(kp_last_errors_text(o->errors), o->want) == 0;
	return NULL;
}

/* Runs threads one after another: each gets the ID and the stack of the previous one. */
TEST(only_so_many_threads_are_remembered)
{
	struct kp_last_errors errors = {0}, other = {0}, third = {0};

	kp_last_errors_init(&errors);
	kp_last_errors_init(&other);
	kp_last_errors_init(&third);
	for (unsigned i = 0; i < KP_ERROR_THREADS_MAX + 20; i++) {
		struct one o = {&errors, "it failed", false};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, fail_once, &o), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		if (!o.right)
			fail_msg("thread %u", i);
	}
	assert_int_equal(atomic_load(&errors.count), KP_ERROR_THREADS_MAX);
	atomic_store(&third.count, KP_ERROR_THREADS_MAX);
	kp_last_errors_note(&errors, "here");
	assert_string_equal(kp_last_errors_text(&errors), "here");
	assert_string_equal(kp_last_errors_text(&other), "");
	kp_last_errors_note(&other, "kept");
	assert_string_equal(kp_last_errors_text(&other), "kept");
	assert_string_equal(kp_last_errors_text(&errors), "here");
	/*
	 * a handle without room for this thread also replaces the thread's current
	 * message
	 */
	kp_last_errors_note(&third, "there");
	assert_string_equal(kp_last_errors_text(&third), "there");
	assert_string_equal(kp_last_errors_text(&errors), "");
	assert_string_equal(kp_last_errors_text(&other), "kept");
	kp_last_errors_fini(&errors);
	kp_last_errors_fini(&other);
	kp_last_errors_fini(&third);
}

TEST(children_of_a_fork_go_on)
{
	kpack_archive_t a = opened();
	int status;
	pid_t child;

	assert_int_equal(kpack_get_binary(a, 5, &text), KPACK_ERROR_INVALID_ARGUMENT);
	child = fork();
	if (child == 0) {
		bool ok = strcmp(kpack_get_last_error(a), "binary 5 of 1") == 0;

		ok &= kpack_get_binary(a, 6, &text) == KPACK_ERROR_INVALID_ARGUMENT;
		ok &= strcmp(kpack_get_last_error(a), "binary 6 of 1") == 0;
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_string_equal(kpack_get_last_error(a), "binary 5 of 1");
	kpack_close(a);
}
