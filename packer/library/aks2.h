/* SPDX-License-Identifier: MIT */
/*
 * AOTriton's container of kernels, "AKS2", little-endian:
 *
 *   "AKS2", u32 decoded size, u32 number of kernels, u32 size of the directory
 *   one xz stream (or older LZMA), which decodes to the directory and the images
 *
 * A directory record has five u32 and a NUL-terminated name.  The functions here read
 * only the header, and check whether the stream seems whole.
 */
#ifndef PACKER_LIBRARY_AOTRITON_AKS2_H
#define PACKER_LIBRARY_AOTRITON_AKS2_H

#include "core/base/file.h"

struct aks2 {
	uint32_t decoded_size;
	uint32_t kernel_count;
	uint32_t directory_size;
};

/*
 * Read the header of SOURCE.  INVALID_FORMAT: not an AKS2 container, its numbers
 * contradict each other, or its stream is cut short.  IO_ERROR.
 */
kpack_error_t aks2_read(const struct kp_source *source, struct aks2 *out,
			struct kpackx_error *why);

#endif
