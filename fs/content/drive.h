/* SPDX-License-Identifier: MIT */
/*
 * Decodes pieces that were queued, and serves the requests that wait for them as their bytes
 * come: a large entry as a stream, segments by a pass, everything else at once.
 */
#ifndef FS_CONTENT_DRIVE_H
#define FS_CONTENT_DRIVE_H

#include "decode.h"

/* Bytes of a segment. */
#define SEGMENT (512 << 10)

/* Decode P, which pieces_take returned, and if it is a segment some segments around it. */
void drive_piece(struct decoding *m, struct piece *p);

#endif
