/* SPDX-License-Identifier: MIT */
/*
 * The tags of a wheel, which it has twice: in WHEEL, with one python-abi-platform per
 * line, and in the file name, where "py2.py3-none-any" stands for two.  Installers use
 * the file name; some installers, and checks after installing, use WHEEL.
 */
#ifndef PACKER_WHEEL_METADATA_TAGS_H
#define PACKER_WHEEL_METADATA_TAGS_H

#include <stdio.h>
#include "metadata_text.h"
#include "wheel_name.h"

#define WHEEL_TAGS_FAULT 200

/*
 * Describe in FAULT the first tag that only one of WHEEL and NAME has; "" if both have
 * the same tags, in any order and case.
 */
void wheel_tags_compare(const struct metadata_text *wheel, const struct wheel_name *name,
			char fault[WHEEL_TAGS_FAULT]);

/* Print a line "Tag: ..." for each tag of NAME. */
void wheel_tags_print(FILE *f, const struct wheel_name *name);

#endif
