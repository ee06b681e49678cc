/* SPDX-License-Identifier: MIT */
/* What was found in a file, for people: the tree, a line for every image. */
#ifndef PACKER_INSPECT_TEXT_H
#define PACKER_INSPECT_TEXT_H

#include "look.h"

/*
 * Print FILE while it is looked at.  The kernels of objects are listed where that is short,
 * else counted; ALL: they are listed.
 */
kpack_error_t inspect_text_print(struct inspect_file *file, bool all,
				 struct kpackx_error *why);

#endif
