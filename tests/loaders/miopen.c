/* SPDX-License-Identifier: MIT */
/*
 * Finds and reads MIOpen's databases as MIOpen does.
 *
 *   miopen [--so FILE] [--kernel NAME ARGUMENTS]... DBID CUS
 *
 * The directory is $MIOPEN_SYSTEM_DB_PATH, else share/miopen/db next to the directory of
 * FILE's canonical path; FILE is loaded in place of libMIOpen.so.  --kernel: look the
 * kernel up in the kernel database.
 */
#include <dirent.h>
#include <getopt.h>
#include <sqlite3.h>
#include <sys/statfs.h>
#include "loader.h"

struct databases {
	char *dir;
	const char *id; /* e.g. gfx90a */
	unsigned cus;
};

static char *find_directory(void)
{
	const char *env = getenv("MIOPEN_SYSTEM_DB_PATH");
	char *dir, *canonical;

	if (env)
		return text("%s", env);
	dir = object_directory("libMIOpen.");
	canonical = realpath(dir, NULL);
	if (!canonical || !strrchr(canonical, '/'))
		die("%s: %s", dir, strerror(errno));
	*strrchr(canonical, '/') = 0;
	return text("%s/share/miopen/db", canonical);
}

/* Up to 64 compute units are written in decimal. */
static char *base_name(const struct databases *d)
{
	return d->cus <= 64 ? text("%s_%u", d->id, d->cus) : text("%s%x", d->id, d->cus);
}

static bool is_file(const struct databases *d, const char *name)
{
	char *path = text("%s/%s", d->dir, name);
	struct stat st;
	bool regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);

	free(path);
	return regular;
}

/* ---- text databases --------------------------------------------------------------------------- */

/* The compute units in NAME if it is DBID, compute units, ENDING; else 0. */
static unsigned cus_of(const struct databases *d, const char *name, const char *ending)
{
	size_t n = strlen(name), id = strlen(d->id), m = strlen(ending);
	char *digits, *end;
	unsigned cus;

	if (n <= id + m || strncmp(name, d->id, id) != 0 ||
	    strcmp(name + n - m, ending) != 0)
		return 0;
	digits = text("%.*s", (int)(n - id - m), name + id);
	cus = digits[0] == '_' ? (unsigned)strtoul(digits + 1, &end, 10)
			       : (unsigned)strtoul(digits, &end, 16);
	if (*end)
		cus = 0;
	free(digits);
	return cus;
}

/* Look at every directory entry; choose the nearest number of compute units. */
static char *nearest(const struct databases *d, const char *ending)
{
	DIR *dir = opendir(d->dir);
	unsigned files = 0, best = UINT32_MAX;
	struct dirent *e;
	char *found = NULL;

	if (!dir)
		die("%s: %s", d->dir, strerror(errno));
	while ((e = readdir(dir))) {
		unsigned cus, distance;

		if (!is_file(d, e->d_name))
			continue;
		files++;
		cus = cus_of(d, e->d_name, ending);
		if (!cus)
			continue;
		distance = cus > d->cus ? cus - d->cus : d->cus - cus;
		if (distance < best ||
		    (distance == best && strcmp(e->d_name, found) < 0)) {
			best = distance;
			free(found);
			found = text("%s", e->d_name);
		}
	}
	closedir(dir);
	printf("scan for %s: %u files, %s\n", ending, files, found ? found : "none");
	return found;
}

static void open_text(const struct databases *d, const char *ending)
{
	char *name = text("%s%s", base_name(d), ending);
	struct bytes lines;

	if (is_file(d, name))
		printf("exact %s\n", name);
	else
		name = nearest(d, ending);
	if (name && read_whole(text("%s/%s", d->dir, name), &lines))
		print_bytes("read", name, lines.data, lines.size);
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static void ask(sqlite3 *db, const char *name, const char *arguments)
{
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(db,
			       "SELECT kernel_blob FROM kern_db "
			       "WHERE kernel_name = ? AND kernel_args = ?",
			       -1, &s, NULL) != SQLITE_OK)
		die("prepare: %s", sqlite3_errmsg(db));
	sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, arguments, -1, SQLITE_STATIC);
	if (sqlite3_step(s) == SQLITE_ROW)
		print_bytes("kernel", name, sqlite3_column_blob(s, 0),
			    (size_t)sqlite3_column_bytes(s, 0));
	else
		printf("kernel %s: compile\n", name);
	sqlite3_finalize(s);
}

static sqlite3 *open_kernels(const struct databases *d)
{
	char *names[] = {text("%s.kdb", base_name(d)), text("%s.kdb", d->id)};

	for (size_t i = 0; i < 2; i++) {
		char *path = text("%s/%s", d->dir, names[i]);
		struct stat st;
		sqlite3 *db;

		if (stat(path, &st) != 0) {
			print_absent("stat", names[i]);
			continue;
		}
		printf("kdb %s: %jd bytes\n", names[i], (intmax_t)st.st_size);
		if (st.st_size < 512)
			return NULL;
		if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
			die("%s: %s", path, sqlite3_errmsg(db));
		return db;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"so", 1, NULL, 's'}, {"kernel", 1, NULL, 'k'}, {0}};
	const char *kernels[64][2];
	struct databases d = {0};
	size_t n_kernels = 0;
	struct statfs fs;
	sqlite3 *db;

	for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
		if (c == 's') {
			load_library(optarg);
		} else if (c == 'k' && n_kernels < 64 && optind < argc) {
			kernels[n_kernels][0] = optarg;
			kernels[n_kernels++][1] = argv[optind++];
		} else {
			return 2;
		}
	}
	if (optind + 2 != argc)
		die("usage: miopen [--so FILE] [--kernel NAME ARGUMENTS]... DBID CUS");
	d.id = argv[optind];
	d.cus = (unsigned)strtoul(argv[optind + 1], NULL, 10);
	d.dir = find_directory();
	if (statfs(d.dir, &fs) != 0)
		die("%s: statfs: %s", d.dir, strerror(errno));
	open_text(&d, ".db.txt");
	open_text(&d, ".HIP.fdb.txt");
	db = open_kernels(&d);
	if (!db)
		return 0;
	for (size_t i = 0; i < n_kernels; i++)
		ask(db, kernels[i][0], kernels[i][1]);
	sqlite3_close(db);
	return 0;
}
