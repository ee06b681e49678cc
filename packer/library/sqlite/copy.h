/* SPDX-License-Identifier: MIT */
/* A new database with some rows of another one. */
#ifndef PACKER_LIBRARY_SQLITE_COPY_H
#define PACKER_LIBRARY_SQLITE_COPY_H

#include "file.h"

/*
 * Fill TO, an empty file, with a database of FROM's page size, encoding, versions and schema,
 * word for word: of TABLE the rows in whose column COLUMN the text VALUE stands, of
 * others all, in their order.  Equal input gives equal bytes.
 * INVALID_FORMAT: FROM is damaged, or has what cannot be copied; IO_ERROR, with CALLED before
 * it where that is TO's.
 */
kpack_error_t sqlite_copy(struct sqlite_file *from, struct kp_outfile *to,
			  const char *called, const char *table, const char *column,
			  const char *value, struct kpackx_error *why);

#endif
