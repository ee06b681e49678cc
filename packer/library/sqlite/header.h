/* SPDX-License-Identifier: MIT */
/*
 * The first 100 bytes of an SQLite database, read without SQLite: is it one, whole, and
 * can a loader open it where nothing can be written?
 */
#ifndef PACKER_LIBRARY_SQLITE_HEADER_H
#define PACKER_LIBRARY_SQLITE_HEADER_H

#include "core/base/file.h"

/* Does HEAD begin as SQLite databases do? */
bool sqlite_header_probe(const uint8_t *head, size_t head_size);

/*
 * Check the header HEAD (the first HEAD_SIZE bytes of SOURCE, or all of a shorter one) and
 * that SOURCE has the pages that it states.
 * INVALID_FORMAT: it is no database, is cut short, or is in WAL mode, which cannot be
 * opened from a read-only mount; the field, its value and what helps are reported.
 */
kpack_error_t sqlite_header_check(const struct kp_source *source, const uint8_t *head,
				  size_t head_size, struct kpackx_error *why);

#endif
