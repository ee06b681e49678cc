/* SPDX-License-Identifier: MIT */
/* The variant of a host wheel that AMD's program writes (PEP 817, a draft). */
#ifndef PACKER_WHEEL_METADATA_VARIANT_H
#define PACKER_WHEEL_METADATA_VARIANT_H

#include <stdbool.h>
#include <stddef.h>

/* True if TEXT can be a label; "null" is reserved. */
bool variant_label_ok(const char *text);

/* The text of its variant.json, for N GPUs.  The caller frees it. */
char *variant_host_json(const char *const *gpus, size_t n);

#endif
