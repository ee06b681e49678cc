/* SPDX-License-Identifier: MIT */
#include "core/writer/writer.h"
#include "tests/unit/archive_builder.h"
#include "core/codec/codec.h"
#include "core/base/file.h"
#include "core/base/bounds.h"
#include <sys/stat.h>
#include "tests/unit/unit.h"
#include "tests/unit/count_names.h"

static char dir[] = "/tmp/kp-writer-XXXXXX";
static struct kpackx_error why;

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

static struct kp_writer *writer(kpack_compression_t scheme)
{
	struct kp_writer_options options = {
		.scheme = scheme,
		.group = "group",
		.family = "family",
	};
	struct kp_writer *w = NULL;

	if (kp_writer_open(dir, "a.kpack", &options, &w, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	return w;
}

static uint32_t add_stored(struct kp_writer *w, const void *data, size_t size)
{
	uint32_t ordinal = UINT32_MAX;

	if (kp_writer_add_stored(w, (struct kp_span){data, size}, &ordinal, &why))
		fail_msg("%s", why.text);
	return ordinal;
}

static kpack_error_t add(struct kp_writer *w, const char *key, const char *arch,
			 uint32_t ordinal, uint64_t size)
{
	struct kp_writer_entry e = {kp_span_str("hsaco"), ordinal, size, {NULL, 0}, {0}};

	return kp_writer_add_entry(w, kp_span_str(key), kp_span_str(arch), &e, &why);
}

/* Finish and publish; returns the bytes and removes the file. */
static struct ab published(struct kp_writer *w)
{
	struct ab a = {0};
	char path[64];
	struct stat st;
	int fd;

	if (kp_writer_finish(w, &why) || kp_writer_publish(w, &why))
		fail_msg("%s", why.text);
	kp_writer_close(w);
	assert_int_equal(count_names(dir), 1);
	snprintf(path, sizeof(path), "%s/a.kpack", dir);
	assert_int_equal(kp_file_open(path, &fd, &st, &why), KPACK_SUCCESS);
	a.size = (size_t)st.st_size;
	a.bytes = malloc(a.size + 1);
	assert_non_null(a.bytes);
	assert_int_equal(kp_file_pread(fd, 0, a.bytes, a.size, &why), KPACK_SUCCESS);
	close(fd);
	unlink(path);
	return a;
}

static struct kpack_archive *opened(const struct ab *a)
{
	struct kpack_archive *archive = NULL;
	size_t kept, counted;

	if (ab_open(a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	(void)kp_archive_faults(archive, &kept, &counted);
	assert_int_equal(counted, 0);
	return archive;
}

/*
 * With equal ordinals the later entry counts; with other ordinals it is refused at once.
 */
TEST(a_name_is_there_once)
{
	static const kpack_error_t want[] = {KPACK_ERROR_INVALID_ARGUMENT, KPACK_SUCCESS,
					     KPACK_ERROR_INVALID_ARGUMENT};
	struct kp_writer *w = writer(KPACK_COMPRESSION_NOOP);
	struct kp_writer_entry again = {kp_span_str("co"), 1, 1, {NULL, 0}, {0}};
	struct kpack_archive *archive;
	struct kp_entry_info info;
	struct ab a;

	for (int i = 0; i < 3; i++)
		add_stored(w, &"012"[i], 1);
	assert_int_equal(add(w, "z", "gfx900", 0, 1), KPACK_SUCCESS);
	assert_int_equal(add(w, "a", "gfx900", 1, 1), KPACK_SUCCESS);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(add(w, "a", "gfx900", i, 1), want[i]);
	assert_has(why.text, "a gfx900");
	assert_int_equal(kp_writer_add_entry(w, kp_span_str("a"), kp_span_str("gfx900"),
					     &again, &why),
			 KPACK_SUCCESS);
	assert_int_equal(add(w, "a", "gfx90", 0, 1), KPACK_SUCCESS);
	assert_int_equal(add(w, "agfx90", "0", 2, 1), KPACK_SUCCESS);
	a = published(w);
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 4);
	kp_archive_entry(archive, 1, &info);
	assert_true(kp_span_is(info.arch, "gfx900") && kp_span_is(info.type, "co"));
	assert_int_equal(info.ordinal, 1);
	kp_archive_close(archive);
	ab_free(&a);
}

static void assert_checked(const struct kp_writer *w, const char *key, const char *arch,
			   const char *type, kpack_error_t want)
{
	struct kp_writer_entry e = {kp_span_str(type), 0, 1, {NULL, 0}, {0}};

	assert_int_equal(
		kp_writer_check_entry(w, kp_span_str(key), kp_span_str(arch), &e, &why),
		want);
}

/*
 * As many different names as an archive can have, which then opens; one more is refused.
 */
TEST(architectures_and_types_have_a_limit)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_NOOP);
	struct kpack_archive *archive;
	char arch[32];
	struct ab a;

	add_stored(w, "0", 1);
	for (unsigned i = 0; i < KP_STRINGS_MAX; i++) {
		kpack_error_t want = i < KP_STRINGS_MAX - 1
					     ? KPACK_SUCCESS
					     : KPACK_ERROR_INVALID_ARGUMENT;

		snprintf(arch, sizeof(arch), "gfx%u", i);
		assert_checked(w, "a", arch, "hsaco", want);
		if (i == KP_STRINGS_MAX - 2) { /* room for one name, not for two */
			assert_checked(w, "a", arch, arch, KPACK_SUCCESS);
			assert_checked(w, "a", arch, "co", KPACK_ERROR_INVALID_ARGUMENT);
		}
		assert_int_equal(add(w, "a", arch, 0, 1), want);
	}
	/* needs no new name */
	assert_checked(w, "b", "gfx0", "hsaco", KPACK_SUCCESS);
	assert_checked(w, "b", "gfx0", "gfx1", KPACK_SUCCESS);
	assert_checked(w, "b", "gfx0", "co", KPACK_ERROR_INVALID_ARGUMENT);
	a = published(w);
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), KP_STRINGS_MAX - 1);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(a_blob_has_at_most_so_many_frames)
{
	struct kp_writer *w = writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
	struct kp_span none = {(const uint8_t *)"", 0};
	struct kpack_archive *archive;
	uint32_t ordinal;
	struct ab a;

	for (uint32_t i = 0; i < KP_FRAMES_MAX; i++)
		assert_int_equal(kp_writer_add_stored(w, none, &ordinal, &why),
				 KPACK_SUCCESS);
	assert_int_equal(kp_writer_add_stored(w, none, &ordinal, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kp_writer_frame_count(w), KP_FRAMES_MAX);
	assert_int_equal(kp_writer_blob_size(w), 4 + 4 * (uint64_t)KP_FRAMES_MAX);
	a = published(w);
	archive = opened(&a);
	assert_int_equal(kp_archive_ordinal_count(archive), KP_FRAMES_MAX);
	kp_archive_close(archive);
	ab_free(&a);
}

SUITE(make_dir, remove_dir);
