/* SPDX-License-Identifier: MIT */
/* The calls of kpack_design.h, under the names that its macros stand for. */
#include <stdlib.h>
#include "core/rocm_kpack/kpack_design.h"

/* Here AMD's names mean the functions, as in code that does not include the header. */
#undef kpack_get_kernel
#undef kpack_free_kernel

kpack_error_t kpackx_design_get_kernel(kpack_archive_t archive, const char *binary_name,
				       const char *arch, const void **kernel_data,
				       size_t *kernel_size)
{
	void *data = NULL;
	kpack_error_t err = kpack_get_kernel(archive, binary_name, arch,
					     kernel_data ? &data : NULL, kernel_size);

	if (!err)
		*kernel_data = data;
	return err;
}

void kpackx_design_free_kernel(kpack_archive_t archive, const void *kernel_data)
{
	(void)archive;
	kpack_free_kernel((void *)kernel_data);
}
