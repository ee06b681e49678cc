/* SPDX-License-Identifier: MIT */
/*
 * Check the first 100 bytes of a file, without SQLite: whether it is a whole SQLite
 * database that a loader can open where nothing can be written.
 */
#ifndef PACKER_LIBRARY_SQLITE_HEADER_H
#define PACKER_LIBRARY_SQLITE_HEADER_H

#include "core/base/file.h"

/* Whether HEAD begins like an SQLite database. */
bool sqlite_header_probe(const uint8_t *head, size_t head_size);

/*
 * Check the header HEAD (the first HEAD_SIZE bytes of SOURCE, or all of a shorter
 * SOURCE), and that SOURCE has the pages that the header states.
 * INVALID_FORMAT: not a database, cut short, or in WAL mode, which cannot be opened from
 * a read-only mount; WHY names the field, its value and what to do.
 */
kpack_error_t sqlite_header_check(const struct kp_source *source, const uint8_t *head,
				  size_t head_size, struct kpackx_error *why);

#endif
