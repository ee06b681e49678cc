/* SPDX-License-Identifier: MIT */
/*
 * Collect names of libraries from several options and operands in one list with commas.
 */
#ifndef PACKER_WHEEL_METADATA_LIBRARY_NAMES_H
#define PACKER_WHEEL_METADATA_LIBRARY_NAMES_H

#include <stdbool.h>

/*
 * Add NAMES, separated by commas, to *LIST, which is NULL or on the heap, except for
 * names that it already has.  Returns true.
 */
bool library_names_add(char **list, const char *names);

#endif
