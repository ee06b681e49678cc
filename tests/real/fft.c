/* SPDX-License-Identifier: MIT */
/*
 * Call rocFFT as an application does, and print what each call returns.
 *
 *   fft LIBRARY [COMMAND]
 *
 * COMMAND is run by the shell when half of the calls are done.
 */
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <rocfft/rocfft.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "call.h"

#define BYTES (64u << 20) /* of the largest transform */

static void *in, *out, *work;

/* powers of primes that have kernels of their own, others, and several dimensions */
static const size_t lengths[][3] = {
	{8},       {64},         {336},        {1000},        {4096},      {8192},
	{100000},  {1 << 20},    {17},         {1009},        {64, 64},    {256, 100},
	{336, 56}, {1024, 1024}, {32, 32, 32}, {100, 50, 20}, {64, 64, 52}};

static void transform(const size_t *length, rocfft_transform_type type,
		      rocfft_precision precision, bool in_place)
{
	size_t dimensions = 1, bytes = 0;
	rocfft_execution_info info = NULL;
	rocfft_plan plan = NULL;
	rocfft_status status;

	while (dimensions < 3 && length[dimensions])
		dimensions++;
	status = CALL(rocfft_plan_create)(
		&plan, in_place ? rocfft_placement_inplace : rocfft_placement_notinplace,
		type, precision, dimensions, length, 2, NULL);
	printf("%zux%zux%zu %d %d %d: %d", length[0], length[1], length[2], (int)type,
	       (int)precision, in_place, (int)status);
	if (status == rocfft_status_success) {
		CALL(rocfft_plan_get_work_buffer_size)(plan, &bytes);
		CALL(rocfft_execution_info_create)(&info);
		if (bytes && bytes <= 2 * BYTES)
			CALL(rocfft_execution_info_set_work_buffer)(info, work, bytes);
		printf(", %zu, %d", bytes,
		       (int)CALL(rocfft_execute)(plan, &in, in_place ? NULL : &out,
						 info));
		CALL(rocfft_execution_info_destroy)(info);
		CALL(rocfft_plan_destroy)(plan);
	}
	putchar('\n');
}

static void transforms(rocfft_precision precision)
{
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		transform(lengths[i], rocfft_transform_type_complex_forward, precision,
			  true);
		transform(lengths[i],
			  i % 2 ? rocfft_transform_type_real_forward
				: rocfft_transform_type_real_inverse,
			  precision, false);
	}
}

int main(int argc, char **argv)
{
	open_library(argc, argv, RTLD_LOCAL);
	in = calloc(1, BYTES);
	out = calloc(1, BYTES);
	work = calloc(1, 2 * BYTES);
	printf("setup: %d\n", (int)CALL(rocfft_setup)());
	transforms(rocfft_precision_single);
	if (argc > 2 && system(argv[2]) != 0)
		return fprintf(stderr, "%s failed\n", argv[2]), 1;
	transforms(rocfft_precision_double);
	printf("cleanup: %d\n", (int)CALL(rocfft_cleanup)());
	return 0;
}
