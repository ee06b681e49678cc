/* SPDX-License-Identifier: MIT */
/*
 * A text that is kept compressed, in blocks: lines for a hundred thousand files say much the
 * same, and are held as long as somebody has them open.  Written once, then immutable:
 * reading is thread-safe.
 */
#ifndef FS_FOLDED_H
#define FS_FOLDED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct folded;

struct folded *folded_new(void);    /* NULL: no memory */
void folded_free(struct folded *t); /* NULL is fine */

/* A stream that writes T; it is whole when closing it succeeded.  NULL: no memory. */
FILE *folded_open(struct folded *t);

uint64_t folded_size(const struct folded *t);

/* Copy LEN bytes, which T has, from OFF to BUF.  false: no memory. */
bool folded_read(const struct folded *t, uint64_t off, void *buf, size_t len);

#endif
