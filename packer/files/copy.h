/* SPDX-License-Identifier: MIT */
/*
 * Copy single files with their attributes (see attributes.h).  An existing TO is replaced
 * atomically; a directory TO is an error.  Nothing is flushed: a copy can be made again.
 */
#ifndef PACKER_FILES_COPY_H
#define PACKER_FILES_COPY_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "identity.h"

/* A regular file; holes stay holes. */
kpack_error_t copy_file(const char *from, const char *to, struct kpackx_error *why);

/*
 * Copy the file SEEN at FROM: as copy_file, or a symbolic link, FIFO, device or socket
 * itself.  IO_ERROR also: FROM is another file now, or was changed.  IO_ERROR with EPERM:
 * the user may not make such a file, or not there.
 */
kpack_error_t copy_seen(const char *from, const struct file_identity *seen,
			const char *to, struct kpackx_error *why);

/*
 * Make TO another hard link to FIRST, which was made of SEEN's file.  If that is not
 * possible, or FIRST is another user's file now, copy FROM as copy_seen.  FROM is NULL if
 * FIRST has other bytes than SEEN's file: then copy FIRST; IO_ERROR also: it is another
 * user's file now.
 */
kpack_error_t copy_link(const char *first, const char *from,
			const struct file_identity *seen, const char *to,
			struct kpackx_error *why);

/*
 * Make the directory TO unless it exists, and make it writable; copies no contents.  MADE
 * gets its identity.
 */
kpack_error_t copy_directory(const char *to, struct file_identity *made,
			     struct kpackx_error *why);

/*
 * Copy the attributes of FROM, a directory; call it when TO's content is complete.  IO_ERROR also: TO is not the directory MADE any more.
 */
kpack_error_t copy_directory_attributes(const char *from, const char *to,
					const struct file_identity *made,
					struct kpackx_error *why);

#endif
