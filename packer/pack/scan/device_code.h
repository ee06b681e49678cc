/* SPDX-License-Identifier: MIT */
/* Which images of a file are device code that is packed, and for which architecture. */
#ifndef PACKER_PACK_SCAN_DEVICE_CODE_H
#define PACKER_PACK_SCAN_DEVICE_CODE_H

#include "core/binary/fatbin.h"
#include "packer/library/library.h"

/*
 * Set PACKED, one per image of FAT, and the architecture of each that is packed: what its
 * container says, else what it says of itself, else what is said around it, else, for
 * neutral code, KP_ARCH_GENERIC; PTX is "compute_NN" whatever the container calls it.
 * Not packed are the host's entries, what holds containers, and members and sections that
 * are no device code.  Containers of kind NESTED without an image to pack get no index.
 * NAME is the file's; IN_TREE: only what surely is code is taken, as device_code.c tells.
 * INVALID_FORMAT: nothing says for which architecture an image is, or no file can be named
 * after it.
 */
kpack_error_t device_code_settle(struct kp_fatbin *fat, const char *name, bool in_tree,
				 bool *packed, struct kpackx_error *why);

#endif
