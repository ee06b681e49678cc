/* SPDX-License-Identifier: MIT */
/* Parse --image=key=value,...: it describes an image, or selects images. */
#ifndef PACKER_OFFLOAD_PACKAGER_IMAGE_ARGUMENTS_H
#define PACKER_OFFLOAD_PACKAGER_IMAGE_ARGUMENTS_H

#include "core/format/format.h"
#include "string_map.h"

/*
 * Parse TEXT.  OUT has every key once, with its values joined by commas, in the order of
 * LLVM's table; a part without '=' is a key without a value.  On failure OUT is empty.
 */
kpack_error_t image_arguments_read(const char *text, enum llvm_hash hash,
				   struct kp_pairs *out, struct kpackx_error *why);

#endif
