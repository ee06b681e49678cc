/* SPDX-License-Identifier: MIT */
#include "packer/merge/merge.h"
#include "core/base/bounds.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static char dir[] = "/tmp/kp-merge-XXXXXX";
static struct kpackx_error why;

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

struct object {
	const char *key, *arch;
	const char *bytes;
};

/* An archive of scheme none that stores the objects' contents. */
static struct kpack_archive *archive(const struct object *objects, size_t n)
{
	struct kp_writer_options options = {
		.scheme = KPACK_COMPRESSION_NOOP,
		.group = "g",
		.family = "f",
		.lazy = true,
	};
	struct kpack_archive *a = NULL;
	struct kp_writer *w = NULL;
	char path[64];

	assert_int_equal(kp_writer_open(dir, "a", &options, &w, &why), KPACK_SUCCESS);
	for (size_t i = 0; i < n; i++) {
		struct kp_span bytes = kp_span_str(objects[i].bytes);
		struct kp_writer_entry e = {
			kp_span_str("hsaco"), 0, bytes.size, {0}, {0}};

		assert_int_equal(kp_writer_add_stored(w, bytes, &e.ordinal, &why), 0);
		assert_int_equal(kp_writer_add_entry(w, kp_span_str(objects[i].key),
						     kp_span_str(objects[i].arch), &e,
						     &why),
				 KPACK_SUCCESS);
	}
	assert_int_equal(kp_writer_finish(w, &why), KPACK_SUCCESS);
	assert_int_equal(kp_writer_publish(w, &why), KPACK_SUCCESS);
	kp_writer_close(w);
	snprintf(path, sizeof(path), "%s/a", dir);
	assert_int_equal(kp_archive_open(path, &a, &why), KPACK_SUCCESS);
	unlink(path);
	return a;
}

static bool only_y(const void *arg, size_t source, const struct kp_entry_info *entry)
{
	(void)arg, (void)source;
	return kp_span_is(entry->arch, "y");
}

static void count_clash(void *arg, const struct merge_clash *clash)
{
	++*(int *)arg;
}

/* Check the stored bytes of all objects in order. */
static void assert_stored(struct merge_plan *plan, const char *want)
{
	struct kp_writer *w = NULL;
	char got[256] = "";
	size_t n = 0;

	assert_int_equal(merge_plan_write(plan, dir, "m", &w, &why), KPACK_SUCCESS);
	for (uint32_t i = 0; i < kp_writer_frame_count(w); i++) {
		assert_int_equal(kp_writer_read_stored(w, i, got + n, &why), 0);
		n += kp_writer_stored_size(w, i);
	}
	assert_string_equal(got, want);
	kp_writer_close(w);
	merge_plan_free(plan);
}

TEST(equal_objects_are_stored_once)
{
	static const struct object one[] = {{"a", "x", "A"}, {"b", "x", "same"}};
	static const struct object two[] = {
		{"a", "x", "A"}, {"b", "y", "same"}, {"c", "y", "C"}};
	struct merge_source s[] = {{archive(one, 2), 0}, {archive(two, 3), 0}};
	struct merge_options options = {0};
	struct merge_plan *plan = NULL;
	struct merge_stats stats;

	assert_int_equal(merge_plan_new(s, 2, &options, &plan, &why), KPACK_SUCCESS);
	merge_plan_stats(plan, &stats);
	assert_int_equal(stats.entries, 4);
	assert_int_equal(stats.frames, 3);
	assert_int_equal(stats.duplicates, 1);
	assert_int_equal(stats.shared, 1);
	assert_int_equal(stats.bytes, 6);
	assert_stored(plan, "AsameC");
	kp_archive_close((struct kpack_archive *)s[0].archive);
	kp_archive_close((struct kpack_archive *)s[1].archive);
}

TEST(clashes_are_counted_and_settled)
{
	static const struct object one[] = {{"a", "x", "A"}, {"b", "x", "B"}};
	static const struct object two[] = {{"a", "x", "a"}, {"b", "x", "b"}};
	struct merge_source s[] = {{archive(one, 2), 0}, {archive(two, 2), 0}};
	int reported = 0;
	struct merge_options options = {.clash = count_clash, .arg = &reported};
	struct merge_plan *plan = NULL;
	struct merge_stats stats;

	assert_int_equal(merge_plan_new(s, 2, &options, &plan, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(reported, 2);
	s[1].prefer = 1;
	assert_int_equal(merge_plan_new(s, 2, &options, &plan, &why), KPACK_SUCCESS);
	merge_plan_stats(plan, &stats);
	assert_int_equal(stats.settled, 2);
	assert_int_equal(reported, 2);
	assert_stored(plan, "ab");
	kp_archive_close((struct kpack_archive *)s[0].archive);
	kp_archive_close((struct kpack_archive *)s[1].archive);
}

/*
 * "same" is stored where x's archive has it; y, written alone, would store it between its
 * own objects.
 */
TEST(a_shared_object_goes_back_to_its_place)
{
	static const struct object sorted[] = {
		{"b", "x", "same"}, {"a", "y", "A"}, {"c", "y", "C"}};
	static const struct object other[] = {
		{"b", "x", "same"}, {"c", "y", "C"}, {"a", "y", "A"}};
	const struct object more = {"b", "y", "same"};
	const struct object *both[] = {sorted, other};
	static const char *const want[] = {"AsameC", "sameCA"};

	for (int i = 0; i < 2; i++) {
		struct object all[4] = {both[i][0], more, both[i][1], both[i][2]};
		struct merge_source first = {archive(all, 4), 0}, joined;
		struct merge_options options = {.group = "g"};
		struct merge_plan *plan = NULL;
		struct kp_writer *w = NULL;
		struct kpack_archive *a = NULL;
		char path[64];

		assert_int_equal(merge_plan_new(&first, 1, &options, &plan, &why), 0);
		assert_int_equal(merge_plan_write(plan, dir, "j", &w, &why), 0);
		assert_int_equal(kp_writer_publish(w, &why), 0);
		kp_writer_close(w);
		merge_plan_free(plan);
		snprintf(path, sizeof(path), "%s/j", dir);
		assert_int_equal(kp_archive_open(path, &a, &why), 0);
		unlink(path);
		joined = (struct merge_source){a, 0};
		options.takes = only_y;
		assert_int_equal(merge_plan_new(&joined, 1, &options, &plan, &why), 0);
		assert_stored(plan, want[i]);
		kp_archive_close(a);
		kp_archive_close((struct kpack_archive *)first.archive);
	}
}

TEST(nothing_to_join_is_an_error)
{
	struct merge_options options = {0};
	struct merge_plan *plan = NULL;

	assert_int_equal(merge_plan_new(NULL, 0, &options, &plan, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_null(plan);
	merge_plan_free(NULL);
}

SUITE(make_dir, remove_dir);
