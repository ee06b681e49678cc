/* SPDX-License-Identifier: MIT */
/*
 * The text of .kpackfs/checksums: a line for each path of a file, as `sha256sum -c` reads
 * it.  Its size and everything except the digests are known at once; the checksum thread
 * sets the digests.  Any thread may take and release references; all other calls are for
 * one thread at a time.
 */
#ifndef FS_CONTROL_CHECKSUMS_H
#define FS_CONTROL_CHECKSUMS_H

#include "fs/tree/edition.h"

#define CHECKSUM_DIGITS 64

struct checksums;

/* New checksums with one reference; they take a reference to E.  NULL: no memory. */
struct checksums *checksums_new(struct edition *e);
struct checksums *checksums_ref(struct checksums *s);
void checksums_unref(struct checksums *s); /* NULL is fine */

size_t checksums_size(const struct checksums *s);

/* Valid until the last reference is released; a digest is zeros until it is set. */
const char *checksums_text(const struct checksums *s);

/* The first line in [OFF, OFF + LEN) whose digest is not known; false: all are. */
bool checksums_unknown(struct checksums *s, uint64_t off, size_t len, uint32_t *line);

/* The content whose digest a line has, as edition_file returns it. */
bool checksums_file(const struct checksums *s, uint32_t line, struct file_content *out);

/* Set the digest of a line; it applies to all lines of the same file. */
void checksums_set(struct checksums *s, uint32_t line,
		   const char digits[CHECKSUM_DIGITS]);

#endif
