/* SPDX-License-Identifier: MIT */
/*
 * Makes the bytes of pieces: decodes them whole, or by passes where they are segments,
 * and wakes the requests that wait for them. The caller holds no lock.
 */
#ifndef FS_CONTENT_DECODE_H
#define FS_CONTENT_DECODE_H

#include "content.h"
#include "pieces.h"
#include "requests.h"
#include "chunk_tables.h"

/* Bytes of a piece of an entry that is too large to be held. */
#define SEGMENT (512 << 10)

struct decoding {
	const struct content_options *options;
	struct chunk_tables tables;
	struct pieces pieces;
	struct content_stats stats; /* guarded by the lock of pieces */
	uint32_t *changed; /* serial numbers of origins that were written to, the same */
	size_t n_changed, cap_changed;

	/* Serves requests that can go on. */
	void (*run)(struct content *content, struct request *list);
	struct content *content;
};

/* OPTIONS stay where they are. */
void decoding_init(struct decoding *m, const struct content_options *options);

/* No thread is in any call any more, and no request waits. */
void decoding_fini(struct decoding *m);

/* To be asked before and after a decode: what came between is good if both succeed. */
kpack_error_t decoding_check(struct decoding *m, struct origin *o,
			     struct kpackx_error *why);

/* Decode P, which was admitted; returns the requests that can go on. */
struct request *decoding_produce(struct decoding *m, struct piece *p);

/* Decode P, a segment that was taken from the queue, and some around it. */
void decoding_drive(struct decoding *m, struct piece *p);

/* O will hardly be read any more: hold no reference to it longer than what runs. */
void decoding_forget(struct decoding *m, const struct origin *o);

#endif
