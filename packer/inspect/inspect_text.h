/* SPDX-License-Identifier: MIT */
/* Print the contents of a file for people: the tree, a line for every image. */
#ifndef PACKER_INSPECT_TEXT_H
#define PACKER_INSPECT_TEXT_H

#include "look.h"

/*
 * Read the images of FILE and print it meanwhile.  Kernels are listed if the list is
 * short, else counted; ALL: they are always listed.
 */
kpack_error_t inspect_text_print(struct inspect_file *file, bool all,
				 struct kpackx_error *why);

#endif
