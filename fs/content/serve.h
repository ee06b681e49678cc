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

#endif
