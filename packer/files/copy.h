/* SPDX-License-Identifier: MIT */
/*
 * Copy single files with their attributes (see attributes.h).  An existing TO is replaced
 * atomically; a directory TO is an error.  Nothing is flushed: a copy can be made again.
 */
#ifndef PACKER_FILES_COPY_H
#define PACKER_FILES_COPY_H

#include <stdbool.h>
#include "core/base/errors.h"

/* A regular file; holes stay holes. */
kpack_error_t copy_file(const char *from, const char *to, struct kpackx_error *why);

/*
 * Copy a symbolic link, FIFO, device or socket itself.  IO_ERROR with EPERM: the user may
 * not make such a file, or not there.
 */
kpack_error_t copy_node(const char *from, const char *to, struct kpackx_error *why);

/* Make another hard link to FROM. */
kpack_error_t copy_link(const char *from, const char *to, struct kpackx_error *why);

/* Make the directory TO unless it exists, and make it writable; copies no contents. */
kpack_error_t copy_directory(const char *to, struct kpackx_error *why);

/* Copy the attributes of FROM, a directory; call it when TO's content is complete. */
kpack_error_t copy_directory_attributes(const char *from, const char *to,
					struct kpackx_error *why);

#endif
