/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the part of rocBLAS that MIOpen imports, with tests/real/hip.c.  It computes
 * nothing; its functions have only the first parameters of rocBLAS's.  Logged is
 *
 *   gemm FUNCTION TRANSPOSED-A TRANSPOSED-B M N K
 */
#define API __attribute__((visibility("default")))

/* of tests/real/hip.c */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

#define GEMM(name)                                                                       \
	API int name(void *handle, int a, int b, int m, int n, int k);                   \
	int name(void *handle, int a, int b, int m, int n, int k)                        \
	{                                                                                \
		note("gemm %s %d %d %d %d %d", #name, a, b, m, n, k);                    \
		return !handle;                                                          \
	}

GEMM(rocblas_gemm_ex)
GEMM(rocblas_gemm_strided_batched_ex)

API int rocblas_create_handle(void **handle);
API int rocblas_destroy_handle(void *handle);
API int rocblas_set_stream(void *handle, void *stream);
API int rocblas_get_atomics_mode(void *handle, int *mode);
API int rocblas_set_atomics_mode(void *handle, int mode);
API int rocblas_sgemv(void *handle, int a, int m, int n);

int rocblas_create_handle(void **handle)
{
	static int one;

	*handle = &one;
	return 0;
}

int rocblas_destroy_handle(void *handle)
{
	return !handle;
}

int rocblas_set_stream(void *handle, void *stream)
{
	(void)stream;
	return !handle;
}

int rocblas_get_atomics_mode(void *handle, int *mode)
{
	*mode = 1;
	return !handle;
}

int rocblas_set_atomics_mode(void *handle, int mode)
{
	(void)mode;
	return !handle;
}

int rocblas_sgemv(void *handle, int a, int m, int n)
{
	note("gemv %d %d %d", a, m, n);
	return !handle;
}
