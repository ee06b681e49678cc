/* SPDX-License-Identifier: MIT */
/*
 * Call a rocSPARSE as an application does: vectors, conversions, products.  Print what each call returns.
 *
 *   rocsparse LIBRARY
 *
 * All memory is zero, and so is the number of elements in each row.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "call.h"

enum { M = 64, NNZ = 256, PLACES = 1 << 16 };
enum { BASE_ZERO = 0, ROWS = 0, NO_TRANSPOSE = 111 };

#define PRINT(name, types, args)                                                         \
	printf(name ": %d\n", ((int(*) types)function("" name))args)

typedef void *P;

int main(int argc, char **argv)
{
	P out = NULL, handle = NULL, matrix = NULL;
	P x, y, value, row, column;
	const float one = 1, zero = 0;
	const double one_d = 1;
	float result = 0;

	open_library(argc, argv, RTLD_GLOBAL);
	PRINT("hipInit", (unsigned), (0));
	PRINT("hipMalloc", (P *, size_t), (&out, 5 * PLACES));
	x = out;
	y = (char *)out + PLACES;
	value = (char *)out + 2 * PLACES;
	row = (char *)out + 3 * PLACES;
	column = (char *)out + 4 * PLACES;
	PRINT("rocsparse_create_handle", (P *), (&handle));
	PRINT("rocsparse_create_mat_descr", (P *), (&matrix));
	PRINT("rocsparse_saxpyi", (P, int, const float *, P, P, P, int),
	      (handle, NNZ, &one, value, column, y, BASE_ZERO));
	PRINT("rocsparse_daxpyi", (P, int, const double *, P, P, P, int),
	      (handle, NNZ, &one_d, value, column, y, BASE_ZERO));
	PRINT("rocsparse_sdoti", (P, int, P, P, P, float *, int),
	      (handle, NNZ, value, column, y, &result, BASE_ZERO));
	PRINT("rocsparse_sgthr", (P, int, P, P, P, int),
	      (handle, NNZ, y, value, column, BASE_ZERO));
	PRINT("rocsparse_sgthrz", (P, int, P, P, P, int),
	      (handle, NNZ, y, value, column, BASE_ZERO));
	PRINT("rocsparse_ssctr", (P, int, P, P, P, int),
	      (handle, NNZ, value, column, y, BASE_ZERO));
	PRINT("rocsparse_sroti", (P, int, P, P, P, const float *, const float *, int),
	      (handle, NNZ, value, column, y, &one, &zero, BASE_ZERO));
	PRINT("rocsparse_create_identity_permutation", (P, int, P),
	      (handle, NNZ, column));
	PRINT("rocsparse_csr2coo", (P, P, int, int, P, int),
	      (handle, row, NNZ, M, column, BASE_ZERO));
	PRINT("rocsparse_coo2csr", (P, P, int, int, P, int),
	      (handle, column, NNZ, M, row, BASE_ZERO));
	PRINT("rocsparse_scsrmv",
	      (P, int, int, int, int, const float *, P, P, P, P, P, P, const float *, P),
	      (handle, NO_TRANSPOSE, M, M, NNZ, &one, matrix, value, row, column, NULL, x,
	       &zero, y));
	PRINT("rocsparse_scoomv",
	      (P, int, int, int, int, const float *, P, P, P, P, P, const float *, P),
	      (handle, NO_TRANSPOSE, M, M, NNZ, &one, matrix, value, column, column, x,
	       &zero, y));
	PRINT("rocsparse_sellmv",
	      (P, int, int, int, const float *, P, P, P, int, P, const float *, P),
	      (handle, NO_TRANSPOSE, M, M, &one, matrix, value, column, 4, x, &zero, y));
	PRINT("rocsparse_snnz", (P, int, int, int, P, P, int, P, P),
	      (handle, ROWS, M, M, matrix, x, M, row, &argc));
	PRINT("rocsparse_scsr2dense", (P, int, int, P, P, P, P, P, int),
	      (handle, M, M, matrix, value, row, column, y, M));
	PRINT("rocsparse_destroy_handle", (P), (handle));
	PRINT("hipDeviceSynchronize", (void), ());
	return 0;
}
