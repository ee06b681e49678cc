/* SPDX-License-Identifier: MIT */
/*
 * Finds, reads and maps hipBLASLt's files as hipBLASLt does.
 *
 *   hipblaslt [--sparse] [--so FILE] [--variant NAME] [--xnack +|-] [--cus N]
 *             [--all] [--hold] PROCESSOR
 *
 * The directory is $HIPBLASLT_TENSILE_LIBPATH, used without subdirectories for GPUs;
 * without the variable it is found from FILE, which is loaded in place of
 * libhipblaslt.so.
 * --sparse: behave as hipSPARSELt, with $ROCSPARSELT_TENSILE_LIBPATH.
 * --variant: use the directory of a stepping, e.g. gfx1250-strict.
 * --all: map every code object.
 * --hold: print "held N", wait for a line on standard input, drop the pages and check
 * every mapping again.
 */
#include <getopt.h>
#include <glob.h>
#include <sys/mman.h>
#include <zlib.h>
#include "code_object.h"
#include "tensile.h"

#define PIECE ((size_t)8191) /* buffer size of libstdc++'s ifstream */

static const char *const suffixes[] = {"", "-xnack-", "-xnack+"};
static const double problem[4] = {1000, 900, 1, 256};

/* A module that stays open: its descriptor and its mapping. */
struct module {
	char *name;
	int fd;
	struct bytes bytes;
};

static struct module *modules;
static size_t n_modules;

struct library {
	const char *name, *env, *extop_env, *loaded; /* loaded: in the path of its .so */
	char *dir;
	const char *variant;
	struct gpu gpu;
	bool by_env;
};

/* ---- hipModuleLoad ------------------------------------------------------------------------ */

static const struct bytes *map_module(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct module *m;
	struct stat st;

	if (fd < 0) {
		print_absent("module", name);
		return NULL;
	}
	if (fstat(fd, &st) != 0)
		die("%s: fstat: %s", path, strerror(errno));
	if (st.st_size == 0) {
		printf("module %s: an invalid image\n", name);
		close(fd);
		return NULL;
	}
	modules = grow(modules, (n_modules + 1) * sizeof(*modules));
	m = &modules[n_modules++];
	*m = (struct module){text("%s", name), fd, {NULL, (size_t)st.st_size}};
	m->bytes.data = mmap(NULL, m->bytes.size, PROT_READ, MAP_SHARED, fd, 0);
	if (m->bytes.data == MAP_FAILED)
		die("%s: mmap: %s", path, strerror(errno));
	print_bytes("module", name, m->bytes.data, m->bytes.size);
	return &m->bytes;
}

static const struct bytes *load_module(const struct library *l, const char *name)
{
	char *path = text("%s/%s", l->dir, name);
	const struct bytes *module = map_module(path, name);

	free(path);
	return module;
}

static void drop_pages(void)
{
	for (size_t i = 0; i < n_modules; i++) {
		if (madvise(modules[i].bytes.data, modules[i].bytes.size,
			    MADV_DONTNEED) != 0)
			die("madvise: %s", strerror(errno));
		posix_fadvise(modules[i].fd, 0, 0, POSIX_FADV_DONTNEED);
	}
}

static void print_modules(void)
{
	for (size_t i = 0; i < n_modules; i++)
		print_bytes("still", modules[i].name, modules[i].bytes.data,
			    modules[i].bytes.size);
}

static void hold(void)
{
	char line[80];

	printf("held %zu\n", n_modules);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		drop_pages();
		print_modules();
		printf("held %zu\n", n_modules);
		fflush(stdout);
	}
}

/* ---- where things are ----------------------------------------------------------------------- */

static char *directory_name(const struct library *l)
{
	return text("%s", l->variant ? l->variant : l->gpu.processor);
}

/* Returns PATH if it is readable; else frees it and returns NULL. */
static char *readable(char *path)
{
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/*
 * Search for FILE ("": the directory itself) from the library's object; ignores
 * variables.
 */
static char *search(const struct library *l, const char *file)
{
	char *dir = object_directory(l->loaded), *found;

	found = readable(text("%s/../Tensile/library/%s", dir, file));
	if (!found) /* the missing slash is as in hipBLASLt */
		found = readable(text("%slibrary/%s", dir, file));
	if (!found)
		found = readable(text("%s/%s/library/%s", dir, l->name, file));
	free(dir);
	return found;
}

static void find_directory(struct library *l)
{
	char *sub = directory_name(l);
	const char *env = getenv(l->env);

	l->by_env = env != NULL;
	l->dir = env ? text("%s", env) : search(l, "");
	if (!l->dir)
		die("there is no directory");
	if (!env && is_there(l->dir, sub))
		l->dir = text("%s/%s", l->dir, sub);
	free(sub);
}

/* Read a file; inflate it if its name says so. */
static struct value unpack_file(const char *name, const char *path)
{
	struct bytes bytes, plain = {0};
	z_stream z = {0};
	int status = Z_OK;

	if (!read_pieces(AT_FDCWD, path, PIECE, &bytes))
		die("%s: %s", path, strerror(errno));
	print_bytes("read", name, bytes.data, bytes.size);
	if (strlen(name) < 5 || strcmp(name + strlen(name) - 5, ".zlib") != 0)
		return unpack_all(&bytes);
	z.next_in = bytes.data;
	z.avail_in = (unsigned)bytes.size;
	if (inflateInit(&z) != Z_OK)
		die("inflateInit");
	while (status == Z_OK) {
		plain.data = grow(plain.data, plain.size + (1 << 20));
		z.next_out = plain.data + plain.size;
		z.avail_out = 1 << 20;
		status = inflate(&z, Z_NO_FLUSH);
		plain.size = z.total_out;
	}
	if (status != Z_STREAM_END)
		die("%s: inflate: %d", name, status);
	inflateEnd(&z);
	print_bytes("inflated", name, plain.data, plain.size);
	return unpack_all(&plain);
}

/* NAME.zlib, else NAME. */
static bool read_dat(const struct library *l, const char *name, struct value *out)
{
	char *names[] = {text("%s.zlib", name), text("%s", name)};

	for (size_t i = 0; i < 2; i++) {
		if (!is_there(l->dir, names[i]))
			continue;
		*out = unpack_file(names[i], text("%s/%s", l->dir, names[i]));
		return true;
	}
	return false;
}

/* ---- files that are loaded ------------------------------------------------------------------ */

static void load_helpers(const struct library *l, const char *processor)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *name = text("Kernels.so-000-%s%s.hsaco", processor, suffixes[i]);
		const struct bytes *module = load_module(l, name);

		free(name);
		if (module && takes_xnack(module, l->gpu.xnack))
			return;
	}
}

/* Look up the function of each type of each operation for this GPU in its code object. */
static void load_extops(const struct library *l, const struct value *index)
{
	const struct value *ops = value_of(index, l->gpu.processor);
	const struct bytes *module = NULL;

	for (uint64_t i = 0; ops && i < ops->n; i++)
		for (uint64_t j = 0; j < ops->items[2 * i + 1].n; j++) {
			const struct value *row = &ops->items[2 * i + 1].items[2 * j + 1];
			char *file = value_text(value_of(&row->items[0], "co_path"));

			if (!module)
				module = load_module(l, file);
			if (module)
				print_kernel(module, value_text(value_of(&row->items[0],
									 "func_name")));
			free(file);
		}
}

/*
 * Open the file from the variable or the search; in directories for GPUs its name has the
 * GPU.
 */
static void open_extops(const struct library *l)
{
	char *names[] = {text("hipblasltExtOpLibrary_%s.dat", l->gpu.processor),
			 text("%sExtOpLibrary.dat", l->name)};
	char *env = getenv(l->extop_env), *path = env;
	struct value index;

	if (!env && !l->by_env) {
		for (size_t i = 0; i < 2; i++)
			if (read_dat(l, names[i], &index)) {
				load_extops(l, &index);
				return;
			}
		path = search(l, names[1]);
	}
	if (!path)
		path = readable(text("/opt/rocm/lib/hipblaslt/library/%s", names[1]));
	if (path) {
		index = unpack_file(strrchr(path, '/') + 1, path);
		load_extops(l, &index);
	} else {
		printf("no extended operations\n");
	}
}

/* No variable names this file. */
static void open_transform(const struct library *l)
{
	char *name = text("hipblasltTransform_%s.hsaco", l->gpu.processor), *path = NULL;
	const struct bytes *module = NULL;

	if (!l->by_env && is_there(l->dir, name)) {
		module = load_module(l, name);
	} else {
		if (!l->by_env)
			path = search(l, "hipblasltTransform.hsaco");
		if (!path)
			path = text("/opt/rocm/lib/hipblaslt/library/"
				    "hipblasltTransform.hsaco");
		module = map_module(path, "hipblasltTransform.hsaco");
	}
	if (module)
		printf("transform: %s\n", container_of(module));
	load_helpers(l, "");
}

static void open_mapping(const struct library *l)
{
	char *names[] = {text("TensileLiteLibrary_lazy_%s_Mapping.dat", l->gpu.processor),
			 text("TensileLiteLibrary_lazy_Mapping.dat")};
	struct value map;

	for (size_t i = 0; i < 2; i++) {
		if (!read_dat(l, names[i], &map))
			continue;
		for (uint64_t j = 0; j < map.n; j++)
			printf("from %ju: %s\n", (uintmax_t)map.items[2 * j].n,
			       value_text(&map.items[2 * j + 1]));
		return;
	}
}

static void load_child(void *arg, const char *stem)
{
	const struct library *l = arg;
	char *dat = text("%s.dat", stem), *co = text("%s.co", stem);
	const struct bytes *module;
	struct value child, solutions;

	if (!read_dat(l, dat, &child))
		return;
	solutions = solutions_of(&child);
	printf("solutions %ju, chosen %ju\n", (uintmax_t)solutions.n,
	       (uintmax_t)choose_solution(&child, problem));
	module = load_module(l, co);
	for (uint64_t i = 0; module && i < solutions.n; i++)
		print_kernel(module, value_text(value_of(&solutions.items[i], "name")));
	free(dat);
	free(co);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Map every code object, whatever its xnack mode. */
static void load_all(const struct library *l)
{
	char *pattern = text("%s/*%s*co", l->dir, l->gpu.processor);
	glob_t found;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	/* sorted for the report only */
	qsort(found.gl_pathv, found.gl_pathc, sizeof(char *), by_text);
	for (size_t i = 0; i < found.gl_pathc; i++)
		map_module(found.gl_pathv[i], strrchr(found.gl_pathv[i], '/') + 1);
	globfree(&found);
}

static void run(struct library *l, bool all, bool held)
{
	char *name = text("TensileLibrary_lazy_%s.dat", l->gpu.processor);
	struct value parent;

	find_directory(l);
	open_extops(l);
	if (strcmp(l->name, "hipblaslt") == 0) {
		open_transform(l);
		open_mapping(l);
	}
	load_helpers(l, l->gpu.processor);
	if (!read_dat(l, name, &parent))
		printf("no library for %s\n", l->gpu.processor);
	else if (!all)
		follow_parent(&parent, &l->gpu, load_child, l);
	if (all)
		load_all(l);
	if (held)
		hold();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"so", 1, NULL, 's'},     {"xnack", 1, NULL, 'x'},
		{"cus", 1, NULL, 'c'},    {"variant", 1, NULL, 'v'},
		{"sparse", 0, NULL, 'S'}, {"all", 0, NULL, 'a'},
		{"hold", 0, NULL, 'h'},   {0}};
	struct library l = {.name = "hipblaslt",
			    .env = "HIPBLASLT_TENSILE_LIBPATH",
			    .extop_env = "HIPBLASLT_EXT_OP_LIBRARY_PATH",
			    .loaded = "libhipblaslt",
			    .gpu = {.xnack = '-'}};
	bool all = false, held = false;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 's')
			load_library(optarg);
		else if (c == 'x')
			l.gpu.xnack = optarg[0];
		else if (c == 'c')
			l.gpu.cus = strtoul(optarg, NULL, 10);
		else if (c == 'v')
			l.variant = optarg;
		else if (c == 'a')
			all = true;
		else if (c == 'h')
			held = true;
		else if (c == 'S')
			l = (struct library){.name = "hipsparselt",
					     .env = "ROCSPARSELT_TENSILE_LIBPATH",
					     .extop_env = "ROCSPARSELT_SPMM_LIBPATH",
					     .loaded = "libhipsparselt",
					     .gpu = {.xnack = '-'}};
		else
			return 2;
	}
	if (optind + 1 != argc)
		die("usage: hipblaslt [--sparse] [--so FILE] [--variant NAME] "
		    "[--xnack +|-] [--cus N] [--all] [--hold] PROCESSOR");
	l.gpu.processor = argv[optind];
	run(&l, all, held);
	return 0;
}
