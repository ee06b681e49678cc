/* SPDX-License-Identifier: MIT */
/* The archives of a mount's sources, opened. */
#ifndef FS_SOURCES_H
#define FS_SOURCES_H

#include "edition.h"

/*
 * Open all archives of the N sources, absolute paths, in order.  An archive that cannot
 * be opened is kept among the refused.  A source that cannot be read is an error, and so
 * is a failure of all archives; what went wrong has been logged.  The caller ends H in
 * either case.
 */
bool sources_open(struct holdings *h, char *const *paths, size_t n);

#endif
