/* SPDX-License-Identifier: MIT */
/*
 * first ARCH LIBRARY...: load what the first launch from each converted library needs, the code object of its
 * first wrapper for ARCH, as a HIP runtime does, and print the milliseconds and the CPU milliseconds; then those
 * of zstd for the same objects: each compressed at level 3 in memory is decoded into new memory.  Opening the
 * libraries is not measured.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zstd.h>
#include "core/rocm_kpack/kpack.h"

struct wrapper {
	uint32_t magic, version;
	const void *data;
	uint64_t index;
};

struct library {
	const struct wrapper *wrapper;
	void *object;
	size_t size;
	void *frame;
	size_t frame_size;
};

static void die(const char *what)
{
	fprintf(stderr, "first: %s\n", what);
	exit(1);
}

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void load_object(kpack_cache_t cache, const char *arch, struct library *l)
{
	const struct wrapper *w = l->wrapper;
	char path[PATH_MAX];

	if (kpack_discover_binary_path(w, path, sizeof(path), NULL) ||
	    kpack_load_code_object(cache, w->data, path, (uint32_t)w->index, &arch, 1,
				   &l->object, &l->size))
		die("a code object cannot be loaded");
}

static void compress_object(struct library *l)
{
	size_t room = ZSTD_compressBound(l->size);

	l->frame = malloc(room);
	if (!l->frame)
		die("out of memory");
	l->frame_size = ZSTD_compress(l->frame, room, l->object, l->size, 3);
	if (ZSTD_isError(l->frame_size))
		die("a code object cannot be compressed");
}

static void decode_object(struct library *l)
{
	l->object = malloc(l->size ? l->size : 1);
	if (!l->object ||
	    ZSTD_decompress(l->object, l->size, l->frame, l->frame_size) != l->size)
		die("a frame does not decode");
}

int main(int argc, char **argv)
{
	int n = argc - 2;
	struct library *libraries;
	kpack_cache_t cache;
	double wall, cpu;

	if (n < 1) {
		fputs("usage: first ARCH LIBRARY...\n", stderr);
		return 2;
	}
	libraries = calloc((size_t)n, sizeof(*libraries));
	if (!libraries)
		die("out of memory");
	for (int i = 0; i < n; i++) {
		void *handle = dlopen(argv[i + 2], RTLD_NOW | RTLD_LOCAL);

		libraries[i].wrapper = handle ? dlsym(handle, "wrappers") : NULL;
		if (!libraries[i].wrapper)
			die(dlerror());
	}
	wall = now_ms(CLOCK_MONOTONIC);
	cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	if (kpack_cache_create(&cache))
		die("no cache");
	for (int i = 0; i < n; i++)
		load_object(cache, argv[1], &libraries[i]);
	printf("%.3f %.3f", now_ms(CLOCK_MONOTONIC) - wall,
	       now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	for (int i = 0; i < n; i++) {
		compress_object(&libraries[i]);
		kpack_free_code_object(libraries[i].object);
	}
	kpack_cache_destroy(cache);
	wall = now_ms(CLOCK_MONOTONIC);
	cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < n; i++)
		decode_object(&libraries[i]);
	printf(" %.3f %.3f", now_ms(CLOCK_MONOTONIC) - wall,
	       now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	size_t bytes = 0;
	for (int i = 0; i < n; i++) {
		bytes += libraries[i].size;
		free(libraries[i].object);
		free(libraries[i].frame);
	}
	free(libraries);
	printf(" %zu\n", bytes);
	return 0;
}
