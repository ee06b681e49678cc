/* SPDX-License-Identifier: MIT */
/*
 * Members compressed in pieces that do not wait for one another: each is deflated with what
 * stands before it as its dictionary, and ends at a byte, so that pieces put together are one
 * stream.
 */
#ifndef PACKER_WHEEL_ZIP_DEFLATE_PIECE_H
#define PACKER_WHEEL_ZIP_DEFLATE_PIECE_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* Bytes of a piece: large enough that what each costs besides does not count. */
#define DEFLATE_PIECE_MAX (1 << 20)
/* Bytes before a piece that deflate can refer to. */
#define DEFLATE_BEFORE_MAX (32 << 10)

/* What a thread keeps from piece to piece.  The caller frees *OUT. */
struct deflate_piece;

/* LEVEL is 1 to 9. */
kpack_error_t deflate_piece_new(int level, struct deflate_piece **out,
				struct kpackx_error *why);
void deflate_piece_free(struct deflate_piece *d); /* NULL is fine */

/* DATA, behind BEFORE; LAST ends the stream.  The caller frees *OUT. */
kpack_error_t deflate_piece_run(struct deflate_piece *d, struct kp_span before,
				struct kp_span data, bool last, uint8_t **out,
				size_t *size, struct kpackx_error *why);

#endif
