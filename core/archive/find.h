/* SPDX-License-Identifier: MIT */
/* The archives of a directory. */
#ifndef KP_CORE_ARCHIVE_FIND_H
#define KP_CORE_ARCHIVE_FIND_H

#include <stddef.h>
#include "core/base/errors.h"

/*
 * Archives of a source: SOURCE itself when it is a file, else every *.kpack of the directory,
 * sorted by name.  The caller frees each string and the array.  An empty
 * directory is a success with no archives.
 */
kpack_error_t kp_archives_find(const char *source, char ***paths, size_t *count,
			       struct kpackx_error *why);

#endif
