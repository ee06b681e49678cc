/* SPDX-License-Identifier: MIT */
/*
 * Print the contents of a file: for people, as a tree with a line for every image, or as one
 * JSON object.  Both read the images of FILE and print it meanwhile.
 */
#ifndef PACKER_INSPECT_INSPECT_PRINT_H
#define PACKER_INSPECT_INSPECT_PRINT_H

#include "inspect_file.h"

/* Kernels are listed if the list is short, else counted; ALL: they are always listed. */
kpack_error_t inspect_text_print(struct inspect_file *file, bool all,
				 struct kpackx_error *why);
kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why);

#endif
