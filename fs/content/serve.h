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
 * Let the first piece of R's entry that does not exist be decoded before anybody asks for
 * it, and those behind it, of MOST bytes of the entry; ROW is to come to the entry.  R is
 * not kept.  A failure is not reported: a request for those bytes will fail in the same way.
 */
void requests_decode_ahead(struct decoding *m, const struct ahead_row *row,
			   struct request *r, uint64_t most);

#endif
