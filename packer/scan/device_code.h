/* SPDX-License-Identifier: MIT */
/* Decide which images of a file are device code to pack, and for which architecture. */
#ifndef PACKER_PACK_SCAN_DEVICE_CODE_H
#define PACKER_PACK_SCAN_DEVICE_CODE_H

#include "core/elf/host_fatbin.h"
#include "packer/library/library.h"

/*
 * Set PACKED, a flag per image of FAT, and the architecture of each packed image: the one
 * that its container states, else the one that it states itself, else that of the
 * image around it, else, for target-neutral code, KP_ARCH_GENERIC.  PTX is "compute_NN"
 * whatever its container calls it.
 * The host's entries, images that hold containers, and members and sections that are no
 * device code are not packed.  Containers of kind NESTED without an image to pack get no
 * index.
 * NAME is the file's name.  IN_TREE: only images that surely are code are packed, as
 * device_code.c describes.
 * NOT_IMPLEMENTED: nothing states the architecture of an image, or it gives no file name.
 */
kpack_error_t device_code_settle(struct kp_fatbin *fat, const char *name, bool in_tree,
				 bool *packed, struct kpackx_error *why);

#endif
