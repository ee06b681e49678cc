/* SPDX-License-Identifier: MIT */
/*
 * Call a rocRAND as an application does: every generator, and what it gives.  Print what each call returns.
 *
 *   rocrand LIBRARY [TYPE]
 *
 * TYPE is a generator that is left out.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

/* The library's function NAME.  Ends the program if the library has none. */
static void *function(const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return f;
}

/* The values of rocrand_rng_type; a version that does not have one returns an error. */
static const int types[] = {401, 402, 403, 404, 405, 406, 407, 408,
			    409, 410, 411, 501, 502, 504, 505};

#define FUNCTION(name, ...) ((int (*)(__VA_ARGS__))function(name))
#define PRINT(name, ...) printf("%d " name ": %d\n", type, FUNCTION(name, __VA_ARGS__)

static void generate(int type, void *out, size_t n)
{
	void *g = NULL;

	PRINT("rocrand_create_generator", void **, int)(&g, type));
	if (!g)
		return;
	PRINT("rocrand_generate", void *, void *, size_t)(g, out, n));
	PRINT("rocrand_generate_long_long", void *, void *, size_t)(g, out, n));
	PRINT("rocrand_generate_uniform", void *, void *, size_t)(g, out, n));
	PRINT("rocrand_generate_uniform_double", void *, void *, size_t)(g, out, n));
	PRINT("rocrand_generate_normal", void *, void *, size_t, float, float)(g, out, n, 0, 1));
	PRINT("rocrand_generate_log_normal_double", void *, void *, size_t, double, double)(g, out, n, 0, 1));
	PRINT("rocrand_generate_poisson", void *, void *, size_t, double)(g, out, n, 10));
	PRINT("hipDeviceSynchronize", void)());
	PRINT("rocrand_destroy_generator", void *)(g));
}

int main(int argc, char **argv)
{
	const size_t n = 1 << 16;
	void *out = NULL;
	int type = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (!library) {
		fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no library");
		return 1;
	}
	PRINT("hipInit", unsigned)(0));
	PRINT("hipMalloc", void **, size_t)(&out, n * 8));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (argc < 3 || types[i] != atoi(argv[2]))
			generate(types[i], out, n);
	PRINT("hipDeviceSynchronize", void)());
	return 0;
}
