/* SPDX-License-Identifier: MIT */
/*
 * Finds and reads rocBLAS's files as rocBLAS does.
 *
 *   rocblas [--so FILE] [--xnack +|-] [--cus N] [--all] [--children N] [--time]
 *           PROCESSOR
 *
 * The directory is $ROCBLAS_TENSILE_LIBPATH; without the variable it is found from FILE,
 * which is loaded in place of librocblas.so.  --all: load every code object at once, as
 * rocblas_initialize() does.  --children: load only the first N child libraries.
 * --time: print the elapsed time on standard error.
 */
#include <dirent.h>
#include <elf.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include "tensile.h"

#define PIECE ((size_t)512 << 10)

static const char *const suffixes[] = {"", "-xnack-", "-xnack+"};

struct library {
	char *dir;
	struct gpu gpu;
	unsigned long children; /* still to be loaded */
};

static char *find_base(void)
{
	static const char *const tries[] = {"../../Tensile/library", "library",
					    "../rocblas/library"};
	const char *env = getenv("ROCBLAS_TENSILE_LIBPATH");
	char *dir;

	if (env)
		return text("%s", env);
	dir = object_directory("rocblas.");
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		if (is_there(dir, tries[i]))
			return text("%s/%s", dir, tries[i]);
	return text("%s/rocblas/library", dir);
}

/* The directory for this GPU if it exists, else BASE. */
static char *find_directory(char *base, const struct gpu *gpu)
{
	char *names[] = {text("%s-xnack%c", gpu->processor, gpu->xnack),
			 text("%s", gpu->processor)};

	for (size_t i = 0; i < 2; i++)
		if (is_there(base, names[i]))
			return text("%s/%s", base, names[i]);
	return base;
}

static char *find_parent(const struct library *l)
{
	char *names[] = {text("TensileLibrary_lazy_%s.dat", l->gpu.processor),
			 text("TensileLibrary_%s.dat", l->gpu.processor),
			 text("TensileLibrary.dat")};

	for (size_t i = 0; i < 3; i++)
		if (is_there(l->dir, names[i]))
			return names[i];
	return NULL;
}

static bool read_library(const struct library *l, const char *name, struct value *out)
{
	char *path = text("%s/%s", l->dir, name);
	struct bytes bytes;

	if (!read_pieces(AT_FDCWD, path, PIECE, &bytes)) {
		print_absent("read", name);
		return false;
	}
	print_bytes("read", name, bytes.data, bytes.size);
	*out = unpack_all(&bytes);
	free(path);
	return true;
}

/* Whether a GPU with xnack on ('+') or off ('-') accepts the code, unless it is compressed. */
static bool takes_xnack(const struct bytes *b, char mode)
{
	Elf64_Ehdr ehdr;

	if (b->size < sizeof(ehdr) || memcmp(b->data, ELFMAG, SELFMAG) != 0)
		return true;
	memcpy(&ehdr, b->data, sizeof(ehdr));
	return (ehdr.e_flags >> 8 & 3) != (mode == '+' ? 2 : 3);
}

/* Try hipModuleLoadData once. */
static bool load_module(const struct library *l, const char *name, struct bytes *out)
{
	char *path = text("%s/%s", l->dir, name);
	bool there = read_whole(path, out);

	free(path);
	if (!there) {
		print_absent("module", name);
		return false;
	}
	print_bytes("module", name, out->data, out->size);
	if (takes_xnack(out, l->gpu.xnack))
		return true;
	printf("module %s: refused, for the other xnack mode\n", name);
	return false;
}

/* Load the first file of STEM-xnack?.ENDING that can be loaded. */
static bool load_first(const struct library *l, const char *stem, const char *ending,
		       struct bytes *out)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *name = text("%s%s.%s", stem, suffixes[i], ending);
		bool loaded = load_module(l, name, out);

		free(name);
		if (loaded)
			return true;
	}
	printf("no code for %s\n", stem);
	return false;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

/* Load a child library, as on the first use of a problem type. */
static void load_child(void *arg, const char *stem)
{
	struct library *l = arg;
	char *file = text("%s.dat", stem);
	struct value child, solution;
	struct bytes code;
	char *prefix = ends_with(stem, "_fallback")
			       ? text("%s_%s", stem, l->gpu.processor)
			       : text("%s", stem);

	if (!l->children)
		return;
	l->children--;
	if (!read_library(l, file, &child))
		return;
	solution = first_solution(&child);
	if (solution.kind == MAP)
		load_first(l, prefix, from_source(&solution) ? "hsaco" : "co", &code);
	free(prefix);
	free(file);
}

/* ---- loading everything at once ------------------------------------------------------------- */

static bool filtered(const struct library *l, const char *path)
{
	return strstr(path, l->gpu.xnack == '+' ? "xnack-" : "xnack+") ||
	       strstr(path, "Experimental");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void load_all(const struct library *l)
{
	char *pattern = text("%s/*%s*co", l->dir, l->gpu.processor);
	struct bytes code;
	glob_t found;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
		printf("glob: nothing\n");
		return;
	}
	/* sorted for the report only */
	qsort(found.gl_pathv, found.gl_pathc, sizeof(char *), by_text);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *name = strrchr(found.gl_pathv[i], '/') + 1;

		if (filtered(l, found.gl_pathv[i]))
			printf("glob %s: passed over\n", name);
		else
			load_module(l, name, &code);
	}
	globfree(&found);
}

/* Print the listing that rocBLAS prints before it aborts. */
static int abort_with_listing(const struct library *l)
{
	struct dirent **names;
	int n = scandir(l->dir, &names, NULL, alphasort);

	printf("abort: no library in it");
	for (int i = 0; i < n; i++)
		if (names[i]->d_name[0] != '.')
			printf(" %s", names[i]->d_name);
	putchar('\n');
	return 1;
}

static int run(struct library *l, bool all)
{
	char *name, *helper = text("Kernels.so-000-%s", l->gpu.processor);
	struct value parent;
	struct bytes code;

	l->dir = find_directory(find_base(), &l->gpu);
	name = find_parent(l);
	if (!name)
		return abort_with_listing(l);
	if (!read_library(l, name, &parent))
		return 1;
	if (all || !strstr(name, "_lazy_")) {
		load_all(l);
		return 0;
	}
	load_first(l, helper, "hsaco", &code);
	follow_parent(&parent, &l->gpu, load_child, l);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"so", 1, NULL, 's'},
						{"xnack", 1, NULL, 'x'},
						{"cus", 1, NULL, 'c'},
						{"all", 0, NULL, 'a'},
						{"children", 1, NULL, 'n'},
						{"time", 0, NULL, 't'},
						{0}};
	struct library l = {.gpu = {.xnack = '-'}, .children = ULONG_MAX};
	bool all = false, timed = false;
	double start = milliseconds();
	int status;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 's')
			load_library(optarg);
		else if (c == 'x')
			l.gpu.xnack = optarg[0];
		else if (c == 'c')
			l.gpu.cus = strtoul(optarg, NULL, 10);
		else if (c == 'a')
			all = true;
		else if (c == 'n')
			l.children = strtoul(optarg, NULL, 10);
		else if (c == 't')
			timed = true;
		else
			return 2;
	}
	if (optind + 1 != argc)
		die("usage: rocblas [--so FILE] [--xnack +|-] [--cus N] [--all] "
		    "PROCESSOR");
	l.gpu.processor = argv[optind];
	status = run(&l, all);
	if (timed)
		fprintf(stderr, "%.3f ms\n", milliseconds() - start);
	return status;
}
