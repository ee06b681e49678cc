/* SPDX-License-Identifier: MIT */
/* Run every malformed archive and TOC of the fuzz corpus through every public call. */
#include "tests/unit/archive_builder.h"
#include <dirent.h>
#include <sys/stat.h>
#include "tests/unit/unit.h"

#define EVERY_CALL_CHECK(condition) assert_true(condition)
#include "tests/unit/every_call.h"

static unsigned opened, refused;

static void use(const struct ab *a)
{
	kpack_archive_t archive = NULL;
	char path[32];
	int fd = ab_memfd(a->bytes, a->size, path);

	if (kpack_open(path, &archive)) {
		assert_null(archive);
		assert_true(kpack_get_last_error(NULL)[0]);
		refused++;
	} else {
		every_call(archive);
		kpack_close(archive);
		opened++;
	}
	close(fd);
}

static struct ab read_file(const char *dir, const char *name, struct ab a)
{
	char path[4096], buf[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	for (size_t n; (n = fread(buf, 1, sizeof(buf), f)) > 0;)
		ab_put(&a, buf, n);
	fclose(f);
	return a;
}

/*
 * A file in toc/ is a TOC only: add a header, a frame and blob bytes that it can refer
 * to.
 */
static struct ab archive_around(const char *dir, const char *name)
{
	struct ab a = ab_new_zstd();

	ab_frame(&a, "some bytes of a frame", 21);
	while (a.size < 1000)
		ab_put(&a, "", 1);
	kp_put_le64(a.bytes + 8, a.size);
	return read_file(dir, name, a);
}

static void use_all(const char *corpus, bool tables)
{
	const char *source = getenv("KPACK_SRC");
	char dir[2048];
	struct dirent *file;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s", source ? source : ".",
		 corpus);
	d = opendir(dir);
	assert_non_null(d);
	opened = refused = 0;
	while ((file = readdir(d)) != NULL) {
		struct ab a = {0};

		if (file->d_name[0] == '.')
			continue;
		a = tables ? archive_around(dir, file->d_name)
			   : read_file(dir, file->d_name, a);
		use(&a);
		ab_free(&a);
	}
	closedir(d);
	assert_true(opened > 2 && refused > 2);
}

TEST(malformed_archives_do_no_harm)
{
	use_all("archive", false);
}

TEST(malformed_tables_do_no_harm)
{
	use_all("toc", true);
}
