/* SPDX-License-Identifier: MIT */
#ifndef KP_CORE_FORMAT_LLVM_BITCODE_TRIPLE_H
#define KP_CORE_FORMAT_LLVM_BITCODE_TRIPLE_H

#include "core/base/file.h"

#define KP_TRIPLE_MAX 128

/*
 * Read the target triple of the first module in SRC, bitcode that begins with "BC" C0 DE.
 * false: the triple is missing, not found, or damaged.
 */
bool kp_bitcode_triple(const struct kp_source *src, char out[KP_TRIPLE_MAX]);

#endif
