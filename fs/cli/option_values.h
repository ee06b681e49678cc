/* SPDX-License-Identifier: MIT */
/*
 * The values of mount options.  OPTION is all of one, "NAME=VALUE".  What is wrong has been
 * logged when false is returned.
 */
#ifndef FS_CLI_OPTION_VALUES_H
#define FS_CLI_OPTION_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* Logs TEXT about OPTION; false. */
bool option_wrong(const char *option, const char *text);

/* What is empty would be taken for a path or a name by whoever gets it. */
bool option_has_value(const char *option);

/* A number in BASE with an optional suffix out of SUFFIXES, each 1024 times the last. */
bool option_number(const char *option, int base, const char *suffixes, uint64_t min,
		   uint64_t max, uint64_t *out);
bool option_unsigned(const char *option, int base, uint64_t min, uint64_t max,
		     unsigned *out);

/* A time of s, m or h; seconds where none is said. */
bool option_seconds(const char *option, unsigned *out);

#endif
