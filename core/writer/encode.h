/* SPDX-License-Identifier: MIT */
/*
 * Encoding bytes as zstd frames.  Every call is thread-safe; an encoder belongs to one thread
 * at a time.
 */
#ifndef KP_CORE_WRITER_ENCODE_H
#define KP_CORE_WRITER_ENCODE_H

#include "core/base/errors.h"
#include "core/base/sink.h"
#include "core/base/span.h"

/*
 * A reusable encoder.  Frames contain their content size and a checksum.  The same bytes
 * and level give the same frame, whatever was encoded before.
 */
struct kp_encoder;
kpack_error_t kp_encoder_new(int level, struct kp_encoder **out,
			     struct kpackx_error *why);
void kp_encoder_free(struct kp_encoder *e); /* NULL is allowed */

/*
 * Let E use D, a dictionary for its level, for frames that are not in chunks; NULL: none.  Its
 * bytes are content that frames refer to, so that it does not begin with KP_TRAINED_DICTIONARY;
 * whoever decodes them must have the same.  Borrowed; usable by several encoders at once.
 */
struct ZSTD_CDict_s;
kpack_error_t kp_encoder_use(struct kp_encoder *e, const struct ZSTD_CDict_s *d,
			     struct kpackx_error *why);
/* Bytes that E holds now. */
size_t kp_encoder_memory(const struct kp_encoder *e);

/* Most bytes that kp_encode may write. */
size_t kp_encode_bound(size_t size, uint64_t chunk);

/*
 * Encode DATA into OUT (kp_encode_bound bytes).  CHUNK 0: one frame.  Else one frame in
 * which every CHUNK bytes can be decoded alone, and a seek table in a skippable frame
 * (core/archive/chunks.h): readers that know nothing of chunks decode it as any other frame.
 * A libzstd without threads cannot write that: it makes a frame for every CHUNK bytes.
 * If compression saves less than 1/64 of the bytes, they are stored uncompressed.
 */
kpack_error_t kp_encode(struct kp_encoder *e, struct kp_span data, uint64_t chunk,
			uint8_t *out, size_t cap, size_t *size, struct kpackx_error *why);

/*
 * As kp_encode, for SOURCE in chunks of CHUNK bytes, of which at most one is in memory.
 * SEEN, unless NULL, gets all bytes of SOURCE.  The caller frees *OUT.
 * IO_ERROR; OUT_OF_MEMORY; errors of SEEN.
 */
kpack_error_t kp_encode_source(struct kp_encoder *e, const struct kp_source *source,
			       uint64_t chunk, struct kp_sink *seen, uint8_t **out,
			       size_t *size, struct kpackx_error *why);

/*
 * The frame of SIZE bytes as they are, for data that does not become smaller: every decoder
 * reads it, just by copying.  Its size; and to write it to OUT, which must not overlap DATA.
 */
size_t kp_raw_frame_size(size_t size);
void kp_raw_frame_write(struct kp_span data, uint8_t *out);

#endif
