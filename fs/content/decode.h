/* SPDX-License-Identifier: MIT */
/*
 * Decodes a piece at once, and what all decodes share: the pieces, the counters, the
 * archives that were written to.  Serves no request: that is serve.h's, and drive.h
 * decodes pieces that take longer.  The caller holds no lock unless a call says so.
 */
#ifndef FS_CONTENT_DECODE_H
#define FS_CONTENT_DECODE_H

#include "ahead.h"
#include "content.h"
#include "pieces.h"
#include "requests.h"
#include "chunk_tables.h"

struct decoding {
	const struct content_options *options;
	struct chunk_tables tables;
	struct pieces pieces;
	struct ahead ahead;         /* guarded by the lock of pieces */
	struct content_stats stats; /* guarded by the lock of pieces */
	uint32_t *changed; /* serials of origins that were written to; the same lock */
	size_t n_changed, cap_changed;
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

/* The entry of P, which is not decoded yet. */
struct origin_entry decoding_entry(const struct piece *p);

/* Decode P, which was admitted; returns the requests that can continue. */
struct request *decoding_produce(struct decoding *m, struct piece *p);

/*
 * End the decode of P, which began at SINCE (clock_ns): it has its bytes, or ERR and WHY
 * say why not.  The requests that waited for it are failed, or returned: they can continue.
 */
struct request *decoding_finish(struct decoding *m, struct piece *p, uint64_t since,
				kpack_error_t err, const struct kpackx_error *why);

/*
 * With the lock of the pieces: the decode of P failed with WHY.  Returns the requests that
 * waited, for that error.
 */
struct request *decoding_fail(struct decoding *m, struct piece *p,
			      const struct kpackx_error *why);

/* Report a failure, unless its cause is that everything is being stopped. */
void decoding_report(struct decoding *m, struct origin_entry what,
		     const struct kpackx_error *why);

/*
 * O will hardly be read any more: hold no reference to it longer than running decodes do.
 */
void decoding_forget(struct decoding *m, const struct origin *o);

#endif
