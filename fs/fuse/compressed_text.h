/* SPDX-License-Identifier: MIT */
/*
 * A text that is kept compressed, in blocks: lines for a hundred thousand files are much
 * alike, and are held as long as a program has them open.  Written once, then immutable:
 * reading is thread-safe.
 */
#ifndef FS_CONTROL_COMPRESSED_TEXT_H
#define FS_CONTROL_COMPRESSED_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct compressed_text;

struct compressed_text *compressed_text_new(void);    /* NULL: no memory */
void compressed_text_free(struct compressed_text *t); /* NULL is fine */

/* A stream that writes T; T is complete if fclose succeeds.  NULL: no memory. */
FILE *compressed_text_open(struct compressed_text *t);

uint64_t compressed_text_size(const struct compressed_text *t);

/* Copy LEN bytes at OFF, a range that lies in T, to BUF.  false: no memory. */
bool compressed_text_read(const struct compressed_text *t, uint64_t off, void *buf,
			  size_t len);

#endif
