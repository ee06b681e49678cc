/* SPDX-License-Identifier: MIT */
/*
 * Opens rocFFT's kernel cache and looks kernels up in it as rocFFT does.
 *
 *   rocfft [--so FILE] [--new] [--check] [--time] ARCH <names
 *
 * The database is $ROCFFT_RTC_SYS_CACHE_PATH, else a file next to FILE, which is loaded
 * in place of librocfft.so; --new: the file for ARCH.  The kernel names come from
 * standard input.
 * --check: run an integrity check first.  --time: print the time for opening and the
 * look-ups on standard error.
 */
#include <getopt.h>
#include <sqlite3.h>
#include "loader.h"

#define QUERY                                                                            \
	"SELECT code, timestamp FROM cache_v1 WHERE kernel_name = ?1 AND arch = ?2 "     \
	"AND hip_version = ?3 AND generator_sum = ?4"

struct cache {
	sqlite3 *db;
	sqlite3_stmt *get;
	const char *arch;
	uint8_t generator[32];
	char **names;
	size_t n_names;
};

/* ---- the candidates --------------------------------------------------------------------------- */

static bool open_database(struct cache *c, const char *path, const char *name)
{
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX;

	if (sqlite3_open_v2(path, &c->db, flags, NULL) != SQLITE_OK) {
		printf("open %s: %s\n", name, sqlite3_errmsg(c->db));
		sqlite3_close(c->db);
		c->db = NULL;
		return false;
	}
	sqlite3_busy_timeout(c->db, 5000);
	printf("open %s: it is this one\n", name);
	return true;
}

static void find_database(struct cache *c, bool per_arch)
{
	const char *env = getenv("ROCFFT_RTC_SYS_CACHE_PATH");
	const char *suffix = per_arch ? text("_%s", c->arch) : "";
	char *dir, *names[] = {text("rocfft_kernel_cache%s.db", suffix),
			       text("rocfft/rocfft_kernel_cache%s.db", suffix)};

	if (env) {
		open_database(c, env, strrchr(env, '/') + 1);
		return;
	}
	dir = object_directory("librocfft");
	for (size_t i = 0; i < 2 && !c->db; i++)
		open_database(c, text("%s/%s", dir, names[i]), names[i]);
}

/* Drops a database that opens but cannot be queried; tries no other one. */
static void prepare(struct cache *c)
{
	if (!c->db || sqlite3_prepare_v2(c->db, QUERY, -1, &c->get, NULL) == SQLITE_OK)
		return;
	printf("dropped: %s\n", sqlite3_errmsg(c->db));
	sqlite3_close(c->db);
	c->db = NULL;
}

static void check_integrity(struct cache *c)
{
	sqlite3_stmt *s;

	if (!c->db || sqlite3_prepare_v2(c->db, "PRAGMA integrity_check", -1, &s, NULL) !=
			      SQLITE_OK)
		return;
	while (sqlite3_step(s) == SQLITE_ROW)
		printf("integrity: %s\n", sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
}

/* ---- look-ups --------------------------------------------------------------------------------- */

static void ask(struct cache *c, const char *name)
{
	if (!c->db) {
		printf("compile %s\n", name);
		return;
	}
	sqlite3_reset(c->get);
	sqlite3_bind_text(c->get, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_text(c->get, 2, c->arch, -1, SQLITE_STATIC);
	sqlite3_bind_int64(c->get, 3, 60342134);
	sqlite3_bind_blob(c->get, 4, c->generator, sizeof(c->generator), SQLITE_STATIC);
	switch (sqlite3_step(c->get)) {
	case SQLITE_ROW:
		print_bytes("code", name, sqlite3_column_blob(c->get, 0),
			    (size_t)sqlite3_column_bytes(c->get, 0));
		break;
	case SQLITE_DONE:
		printf("compile %s\n", name);
		break;
	default:
		printf("error %s: %s\n", name, sqlite3_errmsg(c->db));
	}
	sqlite3_reset(c->get);
}

static void read_names(struct cache *c)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		c->names = grow(c->names, (c->n_names + 1) * sizeof(char *));
		c->names[c->n_names++] = text("%s", line);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"so", 1, NULL, 's'},
						{"new", 0, NULL, 'n'},
						{"check", 0, NULL, 'c'},
						{"time", 0, NULL, 't'},
						{0}};
	struct cache c = {0};
	bool per_arch = false, check = false, timed = false;
	double start;

	/* the fixtures' generator */
	SHA256((const uint8_t *)"rocFFT's generator", 18, c.generator);
	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (o == 's')
			load_library(optarg);
		else if (o == 'n')
			per_arch = true;
		else if (o == 'c')
			check = true;
		else if (o == 't')
			timed = true;
		else
			return 2;
	}
	if (optind + 1 != argc)
		die("usage: rocfft [--so FILE] [--new] [--check] [--time] ARCH <names");
	c.arch = argv[optind];
	read_names(&c);
	start = milliseconds();
	find_database(&c, per_arch);
	if (check)
		check_integrity(&c);
	prepare(&c);
	for (size_t i = 0; i < c.n_names; i++)
		ask(&c, c.names[i]);
	if (timed)
		fprintf(stderr, "%.3f ms\n", milliseconds() - start);
	return 0;
}
