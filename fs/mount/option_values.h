/* SPDX-License-Identifier: MIT */
/*
 * The values of mount options.  OPTION is a whole option, "NAME=VALUE".  Calls that
 * return false have logged what is wrong with it.
 */
#ifndef FS_CLI_OPTION_VALUES_H
#define FS_CLI_OPTION_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* Log TEXT about OPTION.  Returns false. */
bool option_wrong(const char *option, const char *text);

/*
 * True if the value is not empty: the code that uses it would take "" for a path or a
 * name.
 */
bool option_has_value(const char *option);

/*
 * Parse a number in BASE with an optional suffix from SUFFIXES, each of which means 1024
 * times the one before.
 */
bool option_number(const char *option, int base, const char *suffixes, uint64_t min,
		   uint64_t max, uint64_t *out);
bool option_unsigned(const char *option, int base, uint64_t min, uint64_t max,
		     unsigned *out);

/* Parse a time with a unit s, m or h; seconds without a unit. */
bool option_seconds(const char *option, unsigned *out);

#endif
