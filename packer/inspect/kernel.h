/* SPDX-License-Identifier: MIT */
/* The numbers of a kernel (registers, memory, ...) and their names. */
#ifndef PACKER_INSPECT_KERNEL_H
#define PACKER_INSPECT_KERNEL_H

#include "core/format/format.h"

extern const size_t inspect_kernel_numbers;

/* Number I of KERNEL, or KP_NOT_STATED; its label for people; its JSON key. */
int64_t inspect_kernel_number(const struct kp_kernel *kernel, size_t i);
const char *inspect_kernel_label(size_t i);
const char *inspect_kernel_key(size_t i);

#endif
