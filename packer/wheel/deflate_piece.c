/* SPDX-License-Identifier: MIT */
#include "deflate_piece.h"
#include <stdlib.h>
#include <zlib.h>
#include "packer/cli/xalloc.h"

struct deflate_piece {
	z_stream z;
};

struct deflate_piece *deflate_piece_new(int level)
{
	struct deflate_piece *d = xcalloc(1, sizeof(*d));

	/* negative: raw deflate without a header, as in zip */
	if (deflateInit2(&d->z, level, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		xalloc_fail(0);
	return d;
}

void deflate_piece_free(struct deflate_piece *d)
{
	if (d)
		deflateEnd(&d->z);
	free(d);
}

kpack_error_t deflate_piece_run(struct deflate_piece *d, struct kp_span before,
				struct kp_span data, bool last, uint8_t **out,
				size_t *size, struct kpackx_error *why)
{
	/* the bound is for a whole stream; a flush adds an empty block of five bytes */
	size_t room = deflateBound(&d->z, (uLong)data.size) + 16;
	uint8_t *packed = xmalloc(room);

	deflateReset(&d->z);
	if (before.size)
		deflateSetDictionary(&d->z, before.data, (uInt)before.size);
	d->z.next_in = (Bytef *)data.data;
	d->z.avail_in = (uInt)data.size;
	d->z.next_out = packed;
	d->z.avail_out = (uInt)room;
	deflate(&d->z, last ? Z_FINISH : Z_SYNC_FLUSH);
	if (d->z.avail_in || !d->z.avail_out) {
		free(packed);
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "deflate: no room");
	}
	*out = packed;
	*size = room - d->z.avail_out;
	return KPACK_SUCCESS;
}
