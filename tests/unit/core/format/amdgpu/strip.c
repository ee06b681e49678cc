/* SPDX-License-Identifier: MIT */
/* Stripped code objects: the hashes of what LLVM 22's tools make of the same objects. */
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <openssl/evp.h>
#include "core/format/amdgpu/strip.h"

static struct kpackx_error why;

static const struct {
	const char *name;
	enum kp_strip how;
	const char *sha256;
} samples[] = {
	{"good-build-id", KP_STRIP_DEBUG,
	 "7f8905818601b640852f01c683a4cdd76348b8d1a4bc553c787f5a97cafc03b2"},
	{"good-build-id", KP_STRIP_KEEP_DEBUG,
	 "db1a1a17fcb67dd238255bba33705f49005661c15afcf7c3e8f7755d01ff55c5"},
	{"good-compressed", KP_STRIP_DEBUG,
	 "f1e35cf997c93dad26f821be2ed19dd19e21332379b9310ff3e58b1fa0d47f3c"},
	{"good-compressed", KP_STRIP_KEEP_DEBUG,
	 "620ea966be66c6f9780730aee189499d90c7ffe550d641f47d1c40ff4df055a5"},
};

static struct kp_source open_sample(const char *name)
{
	const char *root = getenv("KPACK_SRC");
	char path[4096];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/strip/%s", root ? root : ".",
		 name);
	if (kp_file_open(path, &fd, &st, &why))
		fail_msg("%s: %s", path, why.text);
	return kp_source_fd(fd, 0, (uint64_t)st.st_size);
}

static void check_sha256(const uint8_t *data, size_t size, const char *want)
{
	uint8_t sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	char text[65];

	assert_int_equal(EVP_Digest(data, size, sum, &n, EVP_sha256(), NULL), 1);
	assert_int_equal(n, 32);
	for (unsigned i = 0; i < n; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", sum[i]);
	assert_string_equal(text, want);
}

/* The result to memory. */
static uint8_t *strip(const struct kp_source *src, enum kp_strip how, size_t *size)
{
	struct kp_stripped out;
	uint8_t *bytes;

	if (kp_strip_plan(src, how, &out, &why))
		fail_msg("%s", why.text);
	*size = (size_t)out.size;
	bytes = malloc(*size);
	assert_non_null(bytes);
	if (kp_stripped_read(&out, src, bytes, &why))
		fail_msg("%s", why.text);
	kp_stripped_fini(&out);
	return bytes;
}

TEST(same_as_llvm)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct kp_source src = open_sample(samples[i].name);
		size_t size;
		uint8_t *bytes = strip(&src, samples[i].how, &size);

		check_sha256(bytes, size, samples[i].sha256);
		free(bytes);
		close(src.fd);
	}
}

TEST(writes_the_same_to_a_file)
{
	struct kp_source src = open_sample("good-build-id"), file;
	struct kp_outfile out;
	struct kp_stripped plan;
	uint8_t *bytes;
	size_t size;

	bytes = strip(&src, KP_STRIP_DEBUG, &size);
	assert_int_equal(kp_outfile_open(&out, "/tmp", "stripped", 0600, &why), 0);
	kp_outfile_unname(&out);
	assert_int_equal(kp_strip_plan(&src, KP_STRIP_DEBUG, &plan, &why), 0);
	assert_int_equal(kp_stripped_write(&plan, &src, &out, 100, &why), 0);
	file = kp_source_fd(out.fd, 100, size);
	assert_int_equal(lseek(out.fd, 0, SEEK_END), 100 + size);
	src = kp_source_memory(bytes, size);
	assert_true(kp_source_same(&file, &src));
	kp_stripped_fini(&plan);
	kp_outfile_close(&out);
	free(bytes);
}

TEST(refuses_what_it_cannot_strip)
{
	struct kp_source src = open_sample("bad-relocations"), good, again;
	struct kp_stripped out;
	uint8_t *bytes;
	size_t size;

	assert_int_equal(kp_strip_plan(&src, KP_STRIP_DEBUG, &out, &why),
			 KPACK_ERROR_NOT_IMPLEMENTED);
	assert_has(why.text, "relocations");
	assert_null(out.work);
	close(src.fd);
	/* nothing is left to remove */
	good = open_sample("good-build-id");
	bytes = strip(&good, KP_STRIP_DEBUG, &size);
	again = kp_source_memory(bytes, size);
	assert_int_equal(kp_strip_plan(&again, KP_STRIP_DEBUG, &out, &why),
			 KPACK_ERROR_NOT_IMPLEMENTED);
	assert_has(why.text, "smaller");
	/* every shorter file is refused, and none is read past its end */
	for (size_t n = 0; n < size; n += 7) {
		uint8_t *copy = malloc(n + 1);

		assert_non_null(copy);
		memcpy(copy, bytes, n);
		again = kp_source_memory(copy, n);
		assert_int_not_equal(kp_strip_plan(&again, KP_STRIP_DEBUG, &out, &why),
				     0);
		free(copy);
	}
	free(bytes);
	close(good.fd);
}

TEST(reads_build_ids)
{
	struct kp_source with = open_sample("good-build-id"),
			 without = open_sample("good-compressed");
	char id[KP_BUILD_ID_TEXT];

	assert_int_equal(kp_strip_build_id(&with, id, &why), 0);
	assert_string_equal(id, "dd98d74722e4ddf5dca453da67b26d83df9b4285");
	assert_int_equal(kp_strip_build_id(&without, id, &why), 0);
	assert_string_equal(id, "");
	close(with.fd);
	close(without.fd);
}
