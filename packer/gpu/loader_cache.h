/* SPDX-License-Identifier: MIT */
/* The dynamic linker's list of libraries, /etc/ld.so.cache. */
#ifndef PACKER_HIP_LOADER_CACHE_H
#define PACKER_HIP_LOADER_CACHE_H

#include <stdbool.h>
#include "core/base/span.h"

/*
 * Call FN with the name and path of each library in CACHE, the bytes of such a file in the
 * format of glibc 2.2 and later, also after a table in the older format.  Strings are
 * NUL-terminated, borrowed from CACHE.  false: another format.
 */
bool loader_cache_walk(struct kp_span cache,
		       void (*fn)(const char *name, const char *path, void *arg),
		       void *arg);

#endif
