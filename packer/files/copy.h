/* SPDX-License-Identifier: MIT */
/*
 * Copies of single files, with all that they have besides their bytes: see attributes.h.
 * TO is replaced at once; a directory there is an error.  Nothing is flushed: what was
 * copied can be copied again.
 */
#ifndef PACKER_FILES_COPY_H
#define PACKER_FILES_COPY_H

#include <stdbool.h>
#include "core/base/errors.h"

/* A regular file; holes stay holes. */
kpack_error_t copy_file(const char *from, const char *to, struct kpackx_error *why);

/*
 * A symbolic link, FIFO, device or socket, itself.  An IO_ERROR with EPERM: not everybody may
 * make such a thing, or not there.
 */
kpack_error_t copy_node(const char *from, const char *to, struct kpackx_error *why);

/* Another hard link to FROM. */
kpack_error_t copy_link(const char *from, const char *to, struct kpackx_error *why);

/* A directory without what is in it: that it is there and can be written into. */
kpack_error_t copy_directory(const char *to, struct kpackx_error *why);

/* What FROM, a directory, has besides its content, when that is complete. */
kpack_error_t copy_directory_attributes(const char *from, const char *to,
					struct kpackx_error *why);

#endif
