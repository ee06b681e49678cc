/* SPDX-License-Identifier: MIT */
/* Lines for people that have parts from elsewhere. */
#ifndef FS_BASE_PRINTABLE_H
#define FS_BASE_PRINTABLE_H

#include <stddef.h>

/*
 * Copy LINE to OUT, as kp_text_escape does, but leave backslashes alone: parts of LINE may
 * be escaped already.  Writes at most CAP bytes with the NUL, and returns OUT.
 */
char *printable_line(const char *line, char *out, size_t cap);

#endif
