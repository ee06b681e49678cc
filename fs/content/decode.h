/* SPDX-License-Identifier: MIT */
/*
 * Produces the bytes of pieces: decodes each whole, or by a pass if it is a segment, and
 * wakes the requests that wait for the bytes.  The caller holds no lock.
 */
#ifndef FS_CONTENT_DECODE_H
#define FS_CONTENT_DECODE_H

#include "content.h"
#include "pieces.h"
#include "requests.h"
#include "chunk_tables.h"

/* Bytes of a segment. */
#define SEGMENT (512 << 10)

struct decoding {
	const struct content_options *options;
	struct chunk_tables tables;
	struct pieces pieces;
	struct content_stats stats; /* guarded by the lock of pieces */
	uint32_t *changed; /* serials of origins that were written to; the same lock */
	size_t n_changed, cap_changed;

	/* Serves the requests of LIST, which can continue. */
	void (*run)(struct content *content, struct request *list);
	struct content *content;
};

/* OPTIONS are borrowed. */
void decoding_init(struct decoding *m, const struct content_options *options);

/* No thread may be in another call any more, and no request may wait. */
void decoding_fini(struct decoding *m);

/*
 * Fails if O was written to.  Call it before and after a decode: the decoded bytes are
 * good if both calls succeed.
 */
kpack_error_t decoding_check(struct decoding *m, struct origin *o,
			     struct kpackx_error *why);

/* Decode P, which was admitted; returns the requests that can continue. */
struct request *decoding_produce(struct decoding *m, struct piece *p);

/* Decode P, a segment that was taken from the queue, and some segments around it. */
void decoding_drive(struct decoding *m, struct piece *p);

/*
 * O will hardly be read any more: hold no reference to it longer than running decodes do.
 */
void decoding_forget(struct decoding *m, const struct origin *o);

#endif
