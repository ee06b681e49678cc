/* SPDX-License-Identifier: MIT */
/*
 * Call hipBLASLt as an application does, and print what each call returns.
 *
 *   matmul LIBRARY
 *
 * What hipblaslt.h declares is declared here again, because its structures are C++.
 */
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__
#include <hip/library_types.h>
#include <hipblas-common/hipblas-common.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "call.h"

#define LARGEST 2048 /* of m, n and k */
#define WORKSPACE (32u << 20)
#define CHOICES 3                                /* algorithms that are asked for */
enum { TRANSA, TRANSB, EPILOGUE, BIAS_POINTER }; /* attributes of a description */
enum { MAX_WORKSPACE = 1 };                      /* and of a preference */

struct choice {
	uint8_t algorithm[16];
	size_t most_workspace, workspace;
	int state;
	float waves;
	int reserved[4];
};

static void *handle, *a, *b, *c, *workspace;

static int create(const char *name, void **out, int x, int y)
{
	return ((int (*)(void **, int, int))function(name))(out, x, y);
}

static int destroy(const char *name, void *p)
{
	return ((int (*)(void *))function(name))(p);
}

static void *layout(hipDataType type, uint64_t rows, uint64_t columns)
{
	int (*f)(void **, hipDataType, uint64_t, uint64_t, int64_t) =
		(__typeof__(f))function("hipblasLtMatrixLayoutCreate");
	void *out = NULL;

	if (f(&out, type, rows, columns, (int64_t)rows))
		exit(1);
	return out;
}

static int set(const char *name, void *p, int attribute, const void *value, size_t size)
{
	int (*f)(void *, int, const void *, size_t) = (__typeof__(f))function(name);

	return f(p, attribute, value, size);
}

static const int sizes[][3] = {{1, 1, 1},          {16, 16, 16},  {128, 128, 128},
			       {512, 1024, 256},   {33, 7, 257},  {1000, 3, 64},
			       {2048, 2048, 2048}, {129, 65, 31}, {8, 2048, 16}};
static const struct {
	const char *name;
	hipDataType a, b, out;
	hipblasComputeType_t compute;
	hipDataType scale;
} types[] = {
	{"sss", HIP_R_32F, HIP_R_32F, HIP_R_32F, HIPBLAS_COMPUTE_32F, HIP_R_32F},
	{"hhh", HIP_R_16F, HIP_R_16F, HIP_R_16F, HIPBLAS_COMPUTE_32F, HIP_R_32F},
	{"hhs", HIP_R_16F, HIP_R_16F, HIP_R_32F, HIPBLAS_COMPUTE_32F, HIP_R_32F},
	{"bbb", HIP_R_16BF, HIP_R_16BF, HIP_R_16BF, HIPBLAS_COMPUTE_32F, HIP_R_32F},
	{"bbs", HIP_R_16BF, HIP_R_16BF, HIP_R_32F, HIPBLAS_COMPUTE_32F, HIP_R_32F},
	{"ddd", HIP_R_64F, HIP_R_64F, HIP_R_64F, HIPBLAS_COMPUTE_64F, HIP_R_64F},
	{"iii", HIP_R_8I, HIP_R_8I, HIP_R_32I, HIPBLAS_COMPUTE_32I, HIP_R_32I},
	{"8i8", HIP_R_8I, HIP_R_8I, HIP_R_8I, HIPBLAS_COMPUTE_32I, HIP_R_32F},
	{"f8h", HIP_R_8F_E4M3, HIP_R_8F_E4M3, HIP_R_16F, HIPBLAS_COMPUTE_32F, HIP_R_32F},
	{"f8b", HIP_R_8F_E4M3, HIP_R_8F_E5M2, HIP_R_16BF, HIPBLAS_COMPUTE_32F, HIP_R_32F},
};
/* default, bias, ReLU with bias, GELU with bias */
static const uint32_t epilogues[] = {1, 4, 6, 36};

static void multiply(size_t type, const int *s, int x, int y, uint32_t epilogue)
{
	static const double one_d = 1, zero_d = 0;
	static const float one_f = 1, zero_f = 0;
	static const int32_t one_i = 1, zero_i = 0;
	const void *one = &one_f, *zero = &zero_f;
	const int32_t ops[] = {x ? HIPBLAS_OP_T : HIPBLAS_OP_N,
			       y ? HIPBLAS_OP_T : HIPBLAS_OP_N};
	uint64_t m = (uint64_t)s[0], n = (uint64_t)s[1], k = (uint64_t)s[2],
		 most = WORKSPACE;
	void *how = NULL, *preference = NULL;
	void *la = layout(types[type].a, x ? k : m, x ? m : k);
	void *lb = layout(types[type].b, y ? n : k, y ? k : n);
	void *lc = layout(types[type].out, m, n);
	struct choice choices[CHOICES];
	int found = 0, status;
	int (*choose)(void *, void *, void *, void *, void *, void *, void *, int,
		      struct choice *, int *) =
		(__typeof__(choose))function("hipblasLtMatmulAlgoGetHeuristic");
	int (*run)(void *, void *, const void *, const void *, void *, const void *,
		   void *, const void *, const void *, void *, void *, void *,
		   const void *, void *, size_t, void *) =
		(__typeof__(run))function("hipblasLtMatmul");

	if (types[type].scale == HIP_R_64F)
		one = &one_d, zero = &zero_d;
	if (types[type].scale == HIP_R_32I)
		one = &one_i, zero = &zero_i;
	memset(choices, 0, sizeof(choices));
	status = create("hipblasLtMatmulDescCreate", &how, types[type].compute,
			types[type].scale);
	status |= set("hipblasLtMatmulDescSetAttribute", how, TRANSA, &ops[0], 4);
	status |= set("hipblasLtMatmulDescSetAttribute", how, TRANSB, &ops[1], 4);
	status |= set("hipblasLtMatmulDescSetAttribute", how, EPILOGUE, &epilogue, 4);
	if (epilogue & 4)
		status |= set("hipblasLtMatmulDescSetAttribute", how, BIAS_POINTER, &c,
			      sizeof(c));
	status |= ((int (*)(void **))function("hipblasLtMatmulPreferenceCreate"))(
		&preference);
	status |= set("hipblasLtMatmulPreferenceSetAttribute", preference, MAX_WORKSPACE,
		      &most, sizeof(most));
	printf("%s %d %d %d %d %d %u: set %d", types[type].name, x, y, s[0], s[1], s[2],
	       epilogue, status);
	status =
		choose(handle, how, la, lb, lc, lc, preference, CHOICES, choices, &found);
	printf(", chosen %d %d", status, found);
	for (int i = 0; i < found && i < CHOICES; i++)
		printf(", %d %zu: %d", choices[i].state, choices[i].workspace,
		       run(handle, how, one, a, la, b, lb, zero, c, lc, c, lc,
			   choices[i].algorithm, workspace, WORKSPACE, NULL));
	putchar('\n');
	destroy("hipblasLtMatmulPreferenceDestroy", preference);
	destroy("hipblasLtMatmulDescDestroy", how);
	destroy("hipblasLtMatrixLayoutDestroy", la);
	destroy("hipblasLtMatrixLayoutDestroy", lb);
	destroy("hipblasLtMatrixLayoutDestroy", lc);
}

static void multiplications(size_t n)
{
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int op = 0; op < 4; op++)
				if (i % 3 == 0 || op == (int)i % 4)
					multiply(t, sizes[i], op / 2, op % 2,
						 epilogues[(i + (size_t)op) % 4]);
}

/* The operations whose kernels have a library of their own. */
static void others(void)
{
	int (*softmax)(hipDataType, uint32_t, uint32_t, uint32_t, void *, void *,
		       void *) = (__typeof__(softmax))function("hipblasltExtSoftmax");
	int (*norm)(hipDataType, void *, void *, void *, void *, uint32_t, uint32_t,
		    float, void *, void *, void *) =
		(__typeof__(norm))function("hipblasltExtLayerNorm");
	int (*amax)(hipDataType, hipDataType, void *, void *, uint32_t, uint32_t,
		    void *) = (__typeof__(amax))function("hipblasltExtAMax");

	for (uint32_t n = 4; n <= 256; n *= 4)
		printf("softmax %u: %d\n", n, softmax(HIP_R_32F, 64, n, 1, c, a, NULL));
	printf("norm: %d\n", norm(HIP_R_32F, c, b, b, a, 64, 300, 1e-5f, a, a, NULL));
	printf("amax: %d\n", amax(HIP_R_32F, HIP_R_32F, c, a, 64, 300, NULL));
	printf("amax: %d\n", amax(HIP_R_16F, HIP_R_32F, c, a, 64, 300, NULL));
}

int main(int argc, char **argv)
{
	const size_t bytes = (size_t)LARGEST * LARGEST * 8;

	open_library(argc, argv, RTLD_LOCAL);
	a = calloc(1, bytes);
	b = calloc(1, bytes);
	c = calloc(1, bytes);
	workspace = calloc(1, WORKSPACE);
	printf("create: %d\n", ((int (*)(void **))function("hipblasLtCreate"))(&handle));
	others();
	multiplications(sizeof(types) / sizeof(types[0]));
	printf("end: %d\n", ((int (*)(void))function("hipDeviceSynchronize"))());
	printf("destroy: %d\n", destroy("hipblasLtDestroy", handle));
	return 0;
}
