/* SPDX-License-Identifier: MIT */
/*
 * Moves requests from piece to piece: a request is answered from pieces that are decoded,
 * decodes a small piece itself, and is parked at a larger one, which it queues for
 * drive.h.
 */
#ifndef FS_CONTENT_SERVE_H
#define FS_CONTENT_SERVE_H

#include "decode.h"

/* Serve all of LIST until each is answered or parked.  The caller holds no lock. */
void requests_serve(struct decoding *m, struct request *list);

/*
 * ROW will come to R's entry: let the entry's first piece that does not exist be decoded
 * before a request for it comes.  If it is a segment, its pass decodes those behind it, until
 * MOST bytes of the entry are decoded.  R is not kept.  A failure is not reported, because a
 * request for those bytes will fail in the same way.
 */
void requests_decode_ahead(struct decoding *m, const struct ahead_row *row,
			   struct request *r, uint64_t most);

#endif
