/* SPDX-License-Identifier: MIT */
/* Finding the archives in a directory. */
#ifndef KP_CORE_ARCHIVE_FIND_H
#define KP_CORE_ARCHIVE_FIND_H

#include <stddef.h>
#include "core/base/errors.h"

/*
 * The archives of a source: SOURCE itself if it is a file, else every archive name in the
 * directory (kp_is_archive_name), sorted bytewise.  The caller frees each string and the
 * array.  A directory without archives is a success.
 */
kpack_error_t kp_archives_find(const char *source, char ***paths, size_t *count,
			       struct kpackx_error *why);
/* As kp_archives_find, for the source open at FD, which stays open. */
kpack_error_t kp_archives_find_at(int fd, const char *source, char ***paths,
				  size_t *count, struct kpackx_error *why);

#endif
