/* SPDX-License-Identifier: MIT */
/*
 * Paths as text: no call here looks at a file.
 */
#ifndef KP_CORE_BASE_PATH_H
#define KP_CORE_BASE_PATH_H

#include <string.h>
#include "span.h"

/* What follows the last '/' of PATH; all of it, if it has none. */
static inline const char *kp_path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What is before the last '/' of PATH; empty, if it has none. */
static inline struct kp_span kp_path_directory(const char *path)
{
	const char *slash = strrchr(path, '/');

	return (struct kp_span){(const uint8_t *)path,
				slash ? (size_t)(slash - path) : 0};
}

/* What follows "DIR/" in PATH; NULL: PATH is not below DIR. */
static inline const char *kp_path_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/*
 * Whether PATH is the directory DIR, or below it.  Inline: the length of a constant DIR is
 * then constant, too.
 */
static inline bool kp_path_within(struct kp_span path, const char *dir)
{
	size_t n = strlen(dir);

	return kp_span_starts(path, dir, n) && (path.size == n || path.data[n] == '/');
}

#endif
