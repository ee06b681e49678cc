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

/* As copy_file, if FROM is still the file WAS; IO_ERROR also: it was changed. */
kpack_error_t copy_same_file(const char *from, const struct file_identity *was,
			     const char *to, struct kpackx_error *why);

/*
 * Copy a symbolic link, FIFO, device or socket itself, if FROM is still the file WAS.
 * IO_ERROR with EPERM: the user may not make such a file, or not there.
 */
kpack_error_t copy_node(const char *from, const struct file_identity *was, const char *to,
			struct kpackx_error *why);

/*
 * Copy FROM, of which SEEN is the stat: as copy_file, or as copy_node.  IO_ERROR also: it
 * is another file now, or was changed.
 */
kpack_error_t copy_seen(const char *from, const struct stat *seen, const char *to,
			struct kpackx_error *why);

/*
 * Make TO another hard link to FIRST, which is a copy of FROM's file.  If that is not
 * possible, or FIRST is another user's file now, copy FROM as copy_seen.
 */
kpack_error_t copy_link_or_seen(const char *first, const char *from,
				const struct stat *seen, const char *to,
				struct kpackx_error *why);

/*
 * As copy_link_or_seen, where FIRST was made of SEEN's file but has other bytes: then it is
 * copied itself.  IO_ERROR also: it is another user's file now.
 */
kpack_error_t copy_link(const char *first, const struct stat *seen, const char *to,
			struct kpackx_error *why);

/* Make the directory TO unless it exists, and make it writable; copies no contents. */
kpack_error_t copy_directory(const char *to, struct kpackx_error *why);

/* Copy the attributes of FROM, a directory; call it when TO's content is complete. */
kpack_error_t copy_directory_attributes(const char *from, const char *to,
					struct kpackx_error *why);

/* What a directory gets in place of FROM's; NULL: nothing. */
struct directory_state {
	mode_t mode;
	struct timespec mtime;
};
kpack_error_t copy_directory_attributes_as(const char *from, const char *to,
					   const struct directory_state *state,
					   struct kpackx_error *why);

#endif
