/* SPDX-License-Identifier: MIT */
/* Kernel caches: recognised by name, split, and damaged at every place. */
#include "packer/library/rocfft/kernel_cache.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static const char in_tree[] = "lib/rocfft/rocfft_kernel_cache.db";
static struct kpackx_error why;

static const struct {
	const char *path, *arch; /* NULL: not a kernel cache */
} names[] = {
	{"lib/rocfft/rocfft_kernel_cache.db", ""},
	{"rocfft_kernel_cache.db", ""},
	{"rocfft_kernel_cache_gfx90a.db", "gfx90a"},
	{"lib/rocfft_kernel_cache.db", ""},
	{"lib64/rocfft_kernel_cache_gfx12-generic.db", "gfx12-generic"},
	{"bin/rocfft/rocfft_kernel_cache_gfx90a-xnack+.db", "gfx90a:xnack+"},
	{"lib/rocfft/rocfft_kernel_cache_gfx90a:xnack-.db", "gfx90a:xnack-"},
	{"usr/lib/x86_64-linux-gnu/rocfft_kernel_cache.db", ""},
	{"lib/a/b/rocfft_kernel_cache.db", NULL},
	{"share/rocfft_kernel_cache.db", NULL},
	{"mylib/rocfft_kernel_cache.db", NULL},
	{"lib/rocfft_kernel_cache", NULL},
	{"lib/rocfft_kernel_cache.db.txt", NULL},
	{"lib/rocfft_kernel_cachedb", NULL},
	{"lib/rocfft_kernel_cache_.db", NULL},
	{"lib/rocfft_kernel_cache-gfx90a.db", NULL},
	{"lib/rocfft_kernel_cache_backup.db", NULL},
	{"lib/rocfft_kernel_cache_gfx90a:wave64+.db", NULL},
	{"lib/rocfft_kernel_cache_gfx90a+.db", NULL},
	{"lib/my_rocfft_kernel_cache.db", NULL},
	{".db", NULL},
	{"", NULL},
};

TEST(caches_are_known_by_name_and_place)
{
	for (size_t i = 0; i < COUNT(names); i++) {
		char arch[KP_TARGET_TEXT_MAX];

		if (kernel_cache_named(names[i].path, arch) != (names[i].arch != NULL))
			fail_msg("%s", names[i].path);
		if (names[i].arch)
			assert_string_equal(arch, names[i].arch);
	}
}

/* --- databases written by SQLite ------------------------------------------------------ */

#define CACHE(more)                                                                      \
	"PRAGMA page_size=512; CREATE TABLE cache_v1 (kernel_name TEXT NOT NULL, arch "  \
	"TEXT "                                                                          \
	"NOT NULL, hip_version INTEGER NOT NULL, generator_sum BLOB NOT NULL, code "     \
	"BLOB "                                                                          \
	"NOT NULL, timestamp INTEGER NOT NULL, PRIMARY KEY (kernel_name, arch, "         \
	"hip_version, generator_sum))" more

static int setup(void **state)
{
	static char dir[] = "/tmp/kpack-unit-XXXXXX";

	*state = mkdtemp(dir);
	return *state == NULL;
}

/* No temporary file may be left. */
static int teardown(void **state)
{
	return rmdir(*state);
}

#include <sqlite3.h>

static void make(const char *path, const char *sql)
{
	sqlite3 *db;
	char *error = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &error))
		fail_msg("%s: %s", sql, error);
	sqlite3_close(db);
}

static uint8_t *read_whole(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(bytes);
	*size = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

/* Run SQL on a copy of the database that PART is: SQLite finds only files with names. */
static void ask(const struct cache_file *part, const char *sql)
{
	char copy[] = "/tmp/kpack-unit-XXXXXX";
	const int fd = mkstemp(copy);
	size_t size;
	uint8_t *bytes = read_whole(part->disk, &size);
	char *error = NULL;
	sqlite3 *db;

	assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
	assert_int_equal(sqlite3_open_v2(copy, &db, SQLITE_OPEN_READONLY, NULL),
			 SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &error))
		fail_msg("%s: %s", sql, error);
	sqlite3_close(db);
	unlink(copy);
	free(bytes);
}

static char *disk_in(const char *dir)
{
	char *path;

	assert_true(asprintf(&path, "%s/db", dir) > 0);
	return path;
}

/* 20 rows for two arches, with code of zero bytes to several pages. */
#define ROWS                                                                             \
	"; WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < "  \
	"19) "                                                                           \
	"INSERT INTO cache_v1 SELECT 'fft_rtc_fwd_len' || i || '_sp', CASE i % 2 WHEN "  \
	"0 "                                                                             \
	"THEN 'gfx90a' ELSE 'gfx1100' END, i % 3, x'aabb', zeroblob(i * 97), 0 FROM n"

TEST(databases_for_each_arch_hold_its_rows)
{
	char *disk = disk_in(*state);
	struct cache_files parts = {0};

	make(disk, CACHE(ROWS));
	if (kernel_cache_split(disk, in_tree, *state, &parts, &why))
		fail_msg("%s", why.text);
	assert_int_equal(parts.count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct library_object *o = parts.items[i].objects;

		assert_string_equal(o->arches[0], i ? "gfx90a" : "gfx1100");
		assert_string_equal(o->path,
				    i ? "lib/rocfft/rocfft_kernel_cache_gfx90a.db"
				      : "lib/rocfft/rocfft_kernel_cache_gfx1100.db");
		assert_true(o->at_random && o->size % 512 == 0);
		ask(&parts.items[i],
		    i ? "CREATE TEMP TABLE ok (i CHECK (i = 10)); INSERT INTO ok SELECT "
			"count(*) FROM cache_v1 WHERE arch = 'gfx90a' AND hip_version < "
			"3"
		      : "CREATE TEMP TABLE ok (i CHECK (i = 10)); INSERT INTO ok SELECT "
			"count(*) FROM cache_v1 WHERE arch = 'gfx1100'");
	}
	cache_files_fini(&parts);
	unlink(disk);
	free(disk);
}

TEST(rows_follow_each_other)
{
	char *disk = disk_in(*state);
	struct cache_files parts = {0};
	uint64_t off = 0;

	make(disk, CACHE(ROWS));
	if (kernel_cache_rows(disk, in_tree, *state, &parts, &why))
		fail_msg("%s", why.text);
	assert_int_equal(parts.count, 1);
	assert_int_equal(parts.items[0].n_objects, 20);
	for (uint64_t i = 0; i < 20; i++) {
		const struct library_object *o = &parts.items[0].objects[i];
		char key[128];

		snprintf(key, sizeof(key), "fft/%s/%d/single/fft_rtc_fwd_len%d_sp",
			 i % 2 ? "gfx1100" : "gfx90a", (int)i, (int)i);
		assert_string_equal(o->keys[0], key);
		assert_null(o->path);
		assert_int_equal(o->offset, off);
		assert_int_equal(o->size, i * 97);
		off += o->size;
	}
	cache_files_fini(&parts);
	unlink(disk);
	free(disk);
}

/* The parts have no names, because a killed program could not remove them. */
TEST(files_have_no_names)
{
	char *disk = disk_in(*state);
	struct cache_files parts = {0};
	int fd = open(*state, O_TMPFILE | O_RDWR, 0600);

	make(disk, CACHE(ROWS));
	if (kernel_cache_rows(disk, in_tree, *state, &parts, &why) ||
	    kernel_cache_split(disk, in_tree, *state, &parts, &why))
		fail_msg("%s", why.text);
	assert_int_equal(parts.count, 3);
	/* if the file system supports O_TMPFILE */
	for (size_t i = 0; i < parts.count; i++)
		assert_true(fd < 0 || !parts.items[i].file.tmp_name);
	unlink(disk);
	assert_true(fd < 0 || close(fd) == 0);
	assert_true(fd < 0 || rmdir(*state) == 0);
	cache_files_fini(&parts);
	assert_true(fd < 0 || mkdir(*state, 0700) == 0);
	free(disk);
}

/* Databases without rows for any GPU, and the message from splitting them; NULL: none. */
static const struct {
	const char *sql, *says;
} odd[] = {
	{"CREATE TABLE other (a)", NULL},
	{CACHE(""), NULL},
	{"CREATE VIEW cache_v1 AS SELECT 1 AS kernel_name, 'gfx90a' AS arch, 1 AS "
	 "hip_version, "
	 "x'' AS generator_sum, x'' AS code, 1 AS timestamp",
	 NULL},
	{"CREATE TABLE cache_v1 (kernel_name, arch, hip_version, generator_sum, "
	 "timestamp, "
	 "code AS (zeroblob(1000000000)))",
	 NULL},
	{CACHE("; INSERT INTO cache_v1 VALUES ('a', 'gfx90a/..', 1, x'', x'', 1)"),
	 "arch of 1 rows is no target ID: gfx90a/.."},
	{CACHE("; INSERT INTO cache_v1 VALUES ('a', 'generic', 1, x'', x'', 1)"),
	 "arch of 1 rows is no target ID: generic"},
	{CACHE("; INSERT INTO cache_v1 VALUES ('a', x'676678393061', 1, x'', x'', 1)"),
	 "arch of 1 rows is no target ID: gfx90a"},
};

TEST(what_is_no_cache_is_left_or_refused)
{
	char *disk = disk_in(*state);

	for (size_t i = 0; i < COUNT(odd); i++) {
		struct cache_files parts = {0};
		kpack_error_t wanted =
			odd[i].says ? KPACK_ERROR_INVALID_FORMAT : KPACK_SUCCESS;

		make(disk, odd[i].sql);
		assert_int_equal(kernel_cache_split(disk, in_tree, *state, &parts, &why),
				 wanted);
		assert_int_equal(kernel_cache_rows(disk, in_tree, *state, &parts, &why),
				 wanted);
		if (odd[i].says && !strstr(why.text, odd[i].says))
			fail_msg("no '%s': %s", odd[i].says, why.text);
		assert_int_equal(parts.count, 0);
		cache_files_fini(&parts);
		unlink(disk);
	}
	free(disk);
}

/* The schema has code that would run when rows are written, or when it is read. */
TEST(schemas_do_nothing)
{
	char *disk = disk_in(*state);
	struct cache_files parts = {0};

	make(disk,
	     CACHE(ROWS) "; CREATE TABLE log (a); CREATE TRIGGER t AFTER INSERT ON "
			 "cache_v1 "
			 "BEGIN INSERT INTO log VALUES (1); END; CREATE VIEW v AS SELECT "
			 "load_extension('x') FROM cache_v1");
	if (kernel_cache_split(disk, in_tree, *state, &parts, &why))
		fail_msg("%s", why.text);
	assert_int_equal(parts.count, 2);
	ask(&parts.items[0], "CREATE TEMP TABLE ok (i CHECK (i = 0)); INSERT INTO ok "
			     "SELECT count(*) FROM log");
	ask(&parts.items[0], "CREATE TEMP TABLE ok (i CHECK (i = 2)); INSERT INTO ok "
			     "SELECT count(*) FROM sqlite_master WHERE name IN "
			     "('t', 'v')");
	cache_files_fini(&parts);
	unlink(disk);
	free(disk);
}

static void try_damaged(const char *dir, const char *disk, const uint8_t *bytes,
			size_t size)
{
	struct cache_files parts = {0};
	FILE *f = fopen(disk, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
	why.text[0] = 0;
	if (kernel_cache_split(disk, in_tree, dir, &parts, &why))
		assert_true(why.text[0]);
	cache_files_fini(&parts);
	if (kernel_cache_rows(disk, in_tree, dir, &parts, &why))
		assert_true(why.text[0]);
	cache_files_fini(&parts);
}

TEST(damage_anywhere_ends_well)
{
	char *disk = disk_in(*state);
	size_t size;
	uint8_t *bytes;

	make(disk,
	     CACHE("; INSERT INTO cache_v1 VALUES ('fft_len8_sp', 'gfx90a', 1, x'aa', "
		   "zeroblob(700), 0), ('b', 'gfx1100', 1, x'aa', x'bb', 0)"));
	bytes = read_whole(disk, &size);
	for (size_t i = 0; i < size; i += i < 1024 ? 3 : 7)
		for (unsigned flip = 1; flip < 256; flip *= 16) {
			bytes[i] ^= (uint8_t)flip;
			try_damaged(*state, disk, bytes, size);
			bytes[i] ^= (uint8_t)flip;
		}
	for (size_t cut = 0; cut < size; cut += 100) {
		struct cache_files parts = {0};

		try_damaged(*state, disk, bytes, cut);
		assert_int_equal(kernel_cache_rows(disk, in_tree, *state, &parts, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		cache_files_fini(&parts);
	}
	unlink(disk);
	free(bytes);
	free(disk);
}

TEST(a_missing_directory_is_reported)
{
	char *disk = disk_in(*state);
	struct cache_files parts = {0};

	make(disk, CACHE(ROWS));
	assert_int_equal(kernel_cache_split(disk, in_tree, "/nonexistent", &parts, &why),
			 KPACK_ERROR_FILE_NOT_FOUND);
	assert_has(why.text, "a temporary file in /nonexistent");
	cache_files_fini(&parts);
	unlink(disk);
	free(disk);
	assert_int_equal(kernel_cache_rows("/nonexistent", in_tree, *state, &parts, &why),
			 KPACK_ERROR_FILE_NOT_FOUND);
}

SUITE(setup, teardown);
