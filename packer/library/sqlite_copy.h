/* SPDX-License-Identifier: MIT */
/* Make a database with some rows of another database. */
#ifndef PACKER_LIBRARY_SQLITE_COPY_H
#define PACKER_LIBRARY_SQLITE_COPY_H

#include "sqlite_file.h"

/*
 * Fill TO, an empty file, with a database of FROM's page size, encoding, versions and
 * schema, word for word.  Copy the rows of TABLE whose column COLUMN is the text VALUE,
 * and all rows of other tables; both in their order.  Equal input gives equal bytes.
 * INVALID_FORMAT: FROM is damaged, or has something that cannot be copied; IO_ERROR,
 * whose message begins with CALLED if the failing file is TO.
 */
kpack_error_t sqlite_copy(struct sqlite_file *from, struct kp_outfile *to,
			  const char *called, const char *table, const char *column,
			  const char *value, struct kpackx_error *why);

#endif
