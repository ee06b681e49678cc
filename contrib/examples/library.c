/* SPDX-License-Identifier: MIT */
/*
 * How a library with a kernel for each problem, such as rocFFT, uses librocm_kpack for
 * its kernels.
 *
 *  - At its start it opens the archives for the device and for the generic target that
 *    covers it, and loads the kernels that are marked as common.
 *  - The kernel of a plan is looked up by its key, for the device, then for the generic
 *    target.  On any error of an archive the kernel's file is read, as without archives:
 *    `kpackfs` shows the contents of archives as such files.
 *  - Loaded kernels are kept; the least recently used one makes room.
 *
 *   cc -std=c11 -D_GNU_SOURCE library.c -o library \
 *      $(pkg-config --cflags --libs rocm_kpack) \
 *      -Wl,-rpath,$(pkg-config --variable=libdir rocm_kpack)
 *   library --device gfx942 --archives /opt/rocm/.kpack --legacy /mnt/kernels \
 *           --cache 2 256/single 512/double 256/single
 *
 * A plan is LENGTH/PRECISION.  Its kernel has the key rocfft/ARCH/LENGTH/PRECISION/kernel
 * in rocfft_ARCH.kpack, or else in any archive; its file is
 * lib/rocfft/ARCH/LENGTH_PRECISION.hsaco below --legacy.  No GPU is used: the program
 * prints what it would load into one.
 */
#include <dirent.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <rocm_kpack/kpack.h>
#include <rocm_kpack/kpackx.h>

#define CACHE_MAX 64
#define NAME_SIZE 64 /* of a plan, or of an architecture */

/* A kernel in the GPU. */
struct kernel {
	char plan[NAME_SIZE]; /* "": this place is free */
	const char *arch;     /* the architecture that it was built for */
	size_t size;
	uint32_t crc;
	unsigned long used; /* number of the plan that used it last */
};

/* An architecture that the device runs. */
struct arch {
	char name[NAME_SIZE];
	kpack_archive_t archive; /* NULL: none was found */
};

/*
 * The state of the library.  Many threads may use an archive at once; the cache would
 * need a lock in a library that many threads call.
 */
struct library {
	const char *archives, *legacy;
	struct arch archs[2]; /* the device's own, and the generic one */
	size_t n_archs;
	struct kernel cache[CACHE_MAX];
	size_t room; /* number of places in CACHE */
	unsigned long n_plans;
};

/* ---- the GPU, and what is in it ---------------------------------------------------- */

/* The same as zlib's, so that results can be compared. */
static uint32_t crc32(const uint8_t *p, size_t n)
{
	uint32_t crc = UINT32_MAX;

	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	}
	return ~crc;
}

static struct kernel *find_loaded(struct library *l, const char *plan)
{
	for (size_t i = 0; i < l->room; i++)
		if (strcmp(l->cache[i].plan, plan) == 0)
			return &l->cache[i];
	return NULL;
}

/* A real library would call hipModuleUnload here. */
static void unload(struct kernel *k, const char *why)
{
	printf("%s: %s\n", k->plan, why);
	*k = (struct kernel){0};
}

/* A free place, or the place of the least recently used kernel. */
static struct kernel *make_room(struct library *l)
{
	struct kernel *oldest = &l->cache[0];

	for (size_t i = 0; i < l->room; i++) {
		if (!l->cache[i].plan[0])
			return &l->cache[i];
		if (l->cache[i].used < oldest->used)
			oldest = &l->cache[i];
	}
	unload(oldest, "evicted");
	return oldest;
}

/*
 * A real library would call hipModuleLoadData here; after that DATA is no longer needed.
 */
static struct kernel *load(struct library *l, const char *plan, const struct arch *a,
			   const void *data, size_t size)
{
	struct kernel *k = make_room(l);

	*k = (struct kernel){.arch = a->name,
			     .size = size,
			     .crc = crc32(data, size),
			     .used = l->n_plans};
	snprintf(k->plan, sizeof(k->plan), "%s", plan);
	return k;
}

static void print_kernel(const struct kernel *k, const char *from)
{
	printf("%s: from %s, for %s: %zu bytes, crc32 %08x\n", k->plan, from, k->arch,
	       k->size, k->crc);
}

/* ---- where kernels come from ------------------------------------------------------- */

static struct kernel *load_archived(struct library *l, const struct arch *a,
				    const char *plan)
{
	struct kpackx_error why = {0};
	struct kernel *k;
	char key[256];
	size_t size;
	void *data;

	if (!a->archive)
		return NULL;
	snprintf(key, sizeof(key), "rocfft/%s/%s/kernel", a->name, plan);
	if (kpackx_get_kernel(a->archive, key, a->name, &data, &size, &why)) {
		/* a missing kernel is not a fault of the archive */
		if (why.code != KPACK_ERROR_KERNEL_NOT_FOUND)
			fprintf(stderr, "library: %s: %s\n", key, why.text);
		return NULL;
	}
	k = load(l, plan, a, data, size);
	kpack_free_kernel(data);
	return k;
}

/* The content of the file, which the caller frees; NULL: it cannot be read. */
static void *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	void *data = NULL;

	if (f && fstat(fileno(f), &st) == 0 && st.st_size > 0)
		data = malloc((size_t)st.st_size);
	if (data && fread(data, (size_t)st.st_size, 1, f) == 1) {
		*size = (size_t)st.st_size;
	} else {
		free(data);
		data = NULL;
	}
	if (f)
		fclose(f);
	return data;
}

static struct kernel *load_file(struct library *l, const struct arch *a, const char *plan)
{
	int length = (int)strcspn(plan, "/");
	struct kernel *k;
	char path[4096];
	size_t size;
	void *data;

	snprintf(path, sizeof(path), "%s/lib/rocfft/%s/%.*s_%s.hsaco", l->legacy, a->name,
		 length, plan, plan + length + 1);
	data = read_file(path, &size);
	if (!data)
		return NULL;
	k = load(l, plan, a, data, size);
	free(data);
	return k;
}

/* ---- start and end ----------------------------------------------------------------- */

/* The keys of A's kernels, borrowed from its archive. */
static size_t list(const struct arch *a, const char ***keys)
{
	char prefix[sizeof("rocfft/") + NAME_SIZE];
	size_t n;

	snprintf(prefix, sizeof(prefix), "rocfft/%s", a->name);
	return kpack_list_kernels(a->archive, prefix, a->name, keys, &n) ? 0 : n;
}

/* Open DIR/FILE if it has kernels of ours for A. */
static bool open_archive(struct arch *a, const char *dir, const char *file)
{
	struct kpackx_error why = {0};
	char path[4096];
	const char **keys;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (kpackx_open(path, &a->archive, &why)) {
		if (why.code != KPACK_ERROR_FILE_NOT_FOUND)
			fprintf(stderr, "library: %s: %s\n", path, why.text);
		return false;
	}
	n = list(a, &keys);
	if (n > 0) {
		printf("%s: %zu kernels for %s\n", path, n, a->name);
		return true;
	}
	kpack_close(a->archive);
	a->archive = NULL;
	return false;
}

static int is_archive(const struct dirent *entry)
{
	return fnmatch("*.kpack", entry->d_name, 0) == 0;
}

/* Open the archive named for A, or else the first archive that has A's kernels. */
static void find_archive(struct arch *a, const char *dir)
{
	char name[sizeof("rocfft_.kpack") + NAME_SIZE];
	struct dirent **entries;
	int n;

	snprintf(name, sizeof(name), "rocfft_%s.kpack", a->name);
	if (open_archive(a, dir, name))
		return;
	n = scandir(dir, &entries, is_archive, alphasort);
	for (int i = 0; i < n; i++) {
		if (!a->archive && strcmp(entries[i]->d_name, name) != 0)
			open_archive(a, dir, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static bool is_plan(const char *s)
{
	const char *slash = strchr(s, '/');

	return slash && slash != s && slash[1] && !strchr(slash + 1, '/') &&
	       strlen(s) < NAME_SIZE;
}

/* The plan of "rocfft/ARCH/PLAN/kernel". */
static bool plan_of(const char *key, const struct arch *a, char plan[NAME_SIZE])
{
	static const char end[] = "/kernel";
	size_t front = strlen("rocfft//") + strlen(a->name), n = strlen(key);

	if (n < front + strlen(end) || strcmp(key + n - strlen(end), end) != 0)
		return false;
	snprintf(plan, NAME_SIZE, "%.*s", (int)(n - front - strlen(end)), key + front);
	return is_plan(plan);
}

/*
 * Searching for the text {"role":"common"} is enough here; a real library parses the
 * JSON.
 */
static bool is_common(const struct arch *a, const char *key)
{
	const char *json;
	size_t size;

	return !kpack_get_kernel_metadata(a->archive, key, a->name, &json, &size) &&
	       strstr(json, "\"role\":\"common\"");
}

/* Load the common kernels, as far as there is room. */
static void preload(struct library *l, const struct arch *a)
{
	const char **keys;
	size_t n = list(a, &keys);

	for (size_t i = 0; i < n && !l->cache[l->room - 1].plan[0]; i++) {
		char plan[NAME_SIZE];
		struct kernel *k;

		if (!plan_of(keys[i], a, plan) || find_loaded(l, plan) ||
		    !is_common(a, keys[i]))
			continue;
		k = load_archived(l, a, plan);
		if (k)
			print_kernel(k, "archive beforehand");
	}
}

static void initialise(struct library *l, const char *device)
{
	struct arch *own = &l->archs[0], *generic = &l->archs[1];

	/* these kernels are the same with and without XNACK: only the processor counts */
	snprintf(own->name, sizeof(own->name), "%.*s", (int)strcspn(device, ":"), device);
	l->n_archs = 1;
	if (!kpackx_generic_target(own->name, generic->name, sizeof(generic->name)))
		l->n_archs = 2;
	for (size_t i = 0; i < l->n_archs; i++)
		find_archive(&l->archs[i], l->archives);
	/* no generic kernels if the device may have its own */
	if (own->archive || generic->archive)
		preload(l, own->archive ? own : generic);
}

static void clean_up(struct library *l)
{
	for (size_t i = 0; i < l->room; i++)
		if (l->cache[i].plan[0])
			unload(&l->cache[i], "unloaded");
	for (size_t i = 0; i < l->n_archs; i++)
		kpack_close(l->archs[i].archive);
}

/* ---- plans ------------------------------------------------------------------------- */

static bool execute(struct library *l, const char *plan)
{
	struct kernel *k;

	if (!is_plan(plan)) {
		fprintf(stderr, "library: %s: is not LENGTH/PRECISION\n", plan);
		return false;
	}
	l->n_plans++;
	k = find_loaded(l, plan);
	if (k)
		print_kernel(k, "cache");
	for (size_t i = 0; !k && i < l->n_archs; i++) {
		const struct arch *a = &l->archs[i];

		k = load_archived(l, a, plan);
		if (k)
			print_kernel(k, "archive");
		else if ((k = load_file(l, a, plan)))
			print_kernel(k, "file");
	}
	if (k)
		k->used = l->n_plans;
	else
		fprintf(stderr, "library: %s: no kernel for %s\n", plan,
			l->archs[0].name);
	return k;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"device", 1, NULL, 'd'},
						{"archives", 1, NULL, 'a'},
						{"legacy", 1, NULL, 'l'},
						{"cache", 1, NULL, 'c'},
						{0}};
	struct library l = {.archives = ".", .legacy = ".", .room = 8};
	const char *device = "gfx942";
	bool ok = true;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'd')
			device = optarg;
		else if (c == 'a')
			l.archives = optarg;
		else if (c == 'l')
			l.legacy = optarg;
		else if (c == 'c')
			l.room = strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (l.room < 1 || l.room > CACHE_MAX) {
		fprintf(stderr, "library: --cache: 1 to %d\n", CACHE_MAX);
		return 2;
	}
	initialise(&l, device);
	for (int i = optind; i < argc; i++)
		ok &= execute(&l, argv[i]);
	clean_up(&l);
	return ok ? 0 : 1;
}
