/* SPDX-License-Identifier: MIT */
/* Names of libraries that several options and operands give, as one list with commas. */
#ifndef PACKER_WHEEL_METADATA_LIBRARY_NAMES_H
#define PACKER_WHEEL_METADATA_LIBRARY_NAMES_H

#include <stdbool.h>

/*
 * Add NAMES, which have commas between them, to *LIST, on the heap or NULL; what it has
 * already is not added again.  false: out of memory, *LIST is as it was or has some of them.
 */
bool library_names_add(char **list, const char *names);

#endif
