/* SPDX-License-Identifier: MIT */
/*
 * Compress a member in independent pieces, in parallel: each piece is deflated with the
 * bytes before it as its dictionary and ends at a byte boundary, so that the concatenated
 * pieces are one stream.
 */
#ifndef PACKER_WHEEL_ZIP_DEFLATE_PIECE_H
#define PACKER_WHEEL_ZIP_DEFLATE_PIECE_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* Size of a piece in bytes: large enough that the overhead per piece does not matter. */
#define DEFLATE_PIECE_MAX (1 << 20)
/* Bytes before a piece to which deflate can refer: its window. */
#define DEFLATE_BEFORE_MAX (32 << 10)

/* The state that one thread reuses for its pieces. */
struct deflate_piece;

/* LEVEL is 1 to 9. */
struct deflate_piece *deflate_piece_new(int level);
void deflate_piece_free(struct deflate_piece *d); /* accepts NULL */

/* Deflate DATA, which follows BEFORE; LAST ends the stream.  The caller frees *OUT. */
kpack_error_t deflate_piece_run(struct deflate_piece *d, struct kp_span before,
				struct kp_span data, bool last, uint8_t **out,
				size_t *size, struct kpackx_error *why);

#endif
