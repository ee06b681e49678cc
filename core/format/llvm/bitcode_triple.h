/* SPDX-License-Identifier: MIT */
#ifndef KP_CORE_FORMAT_LLVM_BITCODE_TRIPLE_H
#define KP_CORE_FORMAT_LLVM_BITCODE_TRIPLE_H

#include "core/base/file.h"

#define KP_TRIPLE_MAX 128

/*
 * The target triple that the first module in the bitcode SRC states, which begins with
 * "BC" C0 DE.  false: none, none that is found, or it is damaged.
 */
bool kp_bitcode_triple(const struct kp_source *src, char out[KP_TRIPLE_MAX]);

#endif
