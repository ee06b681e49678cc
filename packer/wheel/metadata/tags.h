/* SPDX-License-Identifier: MIT */
/*
 * The tags of a wheel, which it has twice: in WHEEL, each python-abi-platform on a line of its
 * own, and in the file's name, where "py2.py3-none-any" stands for two.  Installers go by the
 * name, and some, and checks after installing, by WHEEL.
 */
#ifndef PACKER_WHEEL_METADATA_TAGS_H
#define PACKER_WHEEL_METADATA_TAGS_H

#include <stdio.h>
#include "text.h"
#include "name.h"

#define WHEEL_TAGS_FAULT 200

/*
 * The first tag that only one of WHEEL and NAME has, as a sentence in FAULT; "" where they
 * have the same ones, in any order and any case.  OUT_OF_MEMORY.
 */
kpack_error_t wheel_tags_compare(const struct metadata_text *wheel,
				 const struct wheel_name *name,
				 char fault[WHEEL_TAGS_FAULT], struct kpackx_error *why);

/* Lines "Tag: ..." for all of NAME. */
void wheel_tags_print(FILE *f, const struct wheel_name *name);

#endif
