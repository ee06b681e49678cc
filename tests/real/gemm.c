/* SPDX-License-Identifier: MIT */
/*
 * Call a rocBLAS as an application does, and print what each call returns.
 *
 *   gemm LIBRARY
 *
 * glob() sorts here: rocBLAS asks it not to, and the order of a directory would decide
 * between kernels that are equally good.
 */
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__
#include <glob.h>
#include <rocblas/rocblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "call.h"

#define LARGEST 2048 /* of m, n and k */

static rocblas_handle handle;
static void *a, *b, *c;

__attribute__((visibility("default"))) int
glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *out)
{
	int (*real)(const char *, int, int (*)(const char *, int), glob_t *);

	real = (int (*)(const char *, int, int (*)(const char *, int), glob_t *))dlsym(
		RTLD_NEXT, "glob");
	return real(pattern, flags & ~GLOB_NOSORT, failed, out);
}

static const rocblas_operation ops[] = {rocblas_operation_none,
					rocblas_operation_transpose,
					rocblas_operation_conjugate_transpose};
static const int sizes[][3] = {{1, 1, 1},       {16, 16, 16},       {33, 7, 257},
			       {128, 128, 128}, {1000, 3, 64},      {512, 1024, 256},
			       {129, 65, 31},   {2048, 2048, 2048}, {4, 2048, 16}};
static const struct {
	const char *name;
	rocblas_datatype in, out, compute;
} types[] = {
	{"sgemm", rocblas_datatype_f32_r, rocblas_datatype_f32_r, rocblas_datatype_f32_r},
	{"dgemm", rocblas_datatype_f64_r, rocblas_datatype_f64_r, rocblas_datatype_f64_r},
	{"hgemm", rocblas_datatype_f16_r, rocblas_datatype_f16_r, rocblas_datatype_f16_r},
	{"hpa", rocblas_datatype_f16_r, rocblas_datatype_f16_r, rocblas_datatype_f32_r},
	{"hss", rocblas_datatype_f16_r, rocblas_datatype_f32_r, rocblas_datatype_f32_r},
	{"bf16", rocblas_datatype_bf16_r, rocblas_datatype_bf16_r,
	 rocblas_datatype_f32_r},
	{"int8", rocblas_datatype_i8_r, rocblas_datatype_i32_r, rocblas_datatype_i32_r},
	{"cgemm", rocblas_datatype_f32_c, rocblas_datatype_f32_c, rocblas_datatype_f32_c},
	{"zgemm", rocblas_datatype_f64_c, rocblas_datatype_f64_c, rocblas_datatype_f64_c},
};

static void gemm_ex(size_t type, const int *s, rocblas_operation x, rocblas_operation y)
{
	static const double one[2] = {1, 0}, zero[2] = {0, 0};
	static const float onef[2] = {1, 0}, zerof[2] = {0, 0};
	static const int32_t onei = 1, zeroi = 0;
	static const uint16_t oneh = 0x3c00, zeroh = 0;
	const void *alpha = onef, *beta = zerof;

	switch ((int)types[type].compute) {
	case rocblas_datatype_f64_r:
	case rocblas_datatype_f64_c:
		alpha = one, beta = zero;
		break;
	case rocblas_datatype_i32_r:
		alpha = &onei, beta = &zeroi;
		break;
	case rocblas_datatype_f16_r:
		alpha = &oneh, beta = &zeroh;
		break;
	}
	printf("%s %d %d %d %d %d: %d\n", types[type].name, (int)x, (int)y, s[0], s[1],
	       s[2],
	       (int)CALL(rocblas_gemm_ex)(
		       handle, x, y, s[0], s[1], s[2], alpha, a, types[type].in,
		       x == rocblas_operation_none ? s[0] : s[2], b, types[type].in,
		       y == rocblas_operation_none ? s[2] : s[1], beta, c,
		       types[type].out, s[0], c, types[type].out, s[0],
		       types[type].compute, rocblas_gemm_algo_standard, 0, 0));
}

static void gemms(size_t n)
{
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (unsigned op = 0; op < 9; op++)
				if (i % 3 == 0 || op % 4 == 0)
					gemm_ex(t, sizes[i], ops[op / 3], ops[op % 3]);
}

#define PRINT(call) printf("%s: %d\n", #call, (int)(call))

static void others(void)
{
	const float one = 1;
	const double oned = 1;
	float result = 0;

	PRINT(CALL(rocblas_saxpy)(handle, 1000, &one, a, 1, b, 1));
	PRINT(CALL(rocblas_sdot)(handle, 100000, a, 1, b, 1, &result));
	PRINT(CALL(rocblas_dnrm2)(handle, 777, a, 1, (double *)c));
	PRINT(CALL(rocblas_isamax)(handle, 777, a, 1, (rocblas_int *)c));
	PRINT(CALL(rocblas_sscal)(handle, 1000, &one, a, 1));
	PRINT(CALL(rocblas_sgemv)(handle, ops[0], 500, 300, &one, a, 500, b, 1, &one, c,
				  1));
	PRINT(CALL(rocblas_dger)(handle, 100, 100, &oned, a, 1, b, 1, c, 100));
	PRINT(CALL(rocblas_ssyrk)(handle, rocblas_fill_upper, ops[0], 200, 100, &one, a,
				  200, &one, c, 200));
	PRINT(CALL(rocblas_strsm)(handle, rocblas_side_left, rocblas_fill_upper, ops[0],
				  rocblas_diagonal_non_unit, 300, 200, &one, a, 300, c,
				  300));
	PRINT(CALL(rocblas_strmm)(handle, rocblas_side_right, rocblas_fill_lower, ops[1],
				  rocblas_diagonal_unit, 64, 64, &one, a, 64, b, 64, c,
				  64));
	PRINT(CALL(rocblas_sgemm_strided_batched)(handle, ops[0], ops[1], 64, 64, 64,
						  &one, a, 64, 4096, b, 64, 4096, &one, c,
						  64, 4096, 12));
	PRINT(CALL(rocblas_dgemm)(handle, ops[1], ops[0], 64, 64, 64, &oned, a, 64, b, 64,
				  &oned, c, 64));
}

int main(int argc, char **argv)
{
	const size_t bytes = (size_t)LARGEST * LARGEST * 16;

	open_library(argc, argv, RTLD_LOCAL);
	a = calloc(1, bytes);
	b = calloc(1, bytes);
	c = calloc(1, bytes);
	PRINT(CALL(rocblas_create_handle)(&handle));
	others();
	gemms(sizeof(types) / sizeof(types[0]));
	PRINT(((int (*)(void))function("hipDeviceSynchronize"))());
	PRINT(CALL(rocblas_destroy_handle)(handle));
	return 0;
}
