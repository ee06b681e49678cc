/* SPDX-License-Identifier: MIT */
/*
 * Decoding and encoding stored bytes, and the index of frames in a zstd blob.
 * Every call is thread-safe; a context belongs to one thread at a time.
 */
#ifndef KP_CORE_CODEC_CODEC_H
#define KP_CORE_CODEC_CODEC_H

#include "core/base/errors.h"
#include "core/base/sink.h"
#include "core/base/span.h"
#include "frame_header.h"

/*
 * Decode all frames in STORED into exactly SIZE bytes at BUF.  Skippable frames (the seek
 * table of chunked entries) are ignored.
 * DECOMPRESSION_FAILED: STORED is corrupt, or decodes to another size.  OUT_OF_MEMORY.
 */
kpack_error_t kp_zstd_decode(struct kp_span stored, void *buf, size_t size,
			     struct kpackx_error *why);

/* Fail with the error for zstd's CODE, after decoding into SIZE bytes. */
kpack_error_t kp_zstd_fail(size_t code, uint64_t size, struct kpackx_error *why);

/*
 * Decoded size that a frame's header states; false: it states none, or HEAD is no frame
 * with content.
 */
bool kp_zstd_content_size(struct kp_span head, uint64_t *size);

/* Whether STORED bytes of zstd can decode to SIZE bytes at all. */
bool kp_zstd_plausible(uint64_t stored, uint64_t size);

/*
 * A reusable encoder.  Frames contain their content size and a checksum.  The same bytes
 * and level give the same frame, whatever was encoded before.
 */
struct kp_encoder;
kpack_error_t kp_encoder_new(int level, struct kp_encoder **out,
			     struct kpackx_error *why);
void kp_encoder_free(struct kp_encoder *e); /* NULL is allowed */

/* Bytes of content that frames refer to; their decoder must have the same bytes. */
struct kp_dictionary;
/* The first 4 bytes of dictionaries that zstd has trained: it does not take them for content. */
#define KP_TRAINED_DICTIONARY UINT32_C(0xec30a437)
/*
 * DATA, which is copied, for encoders of LEVEL.  It does not begin with
 * KP_TRAINED_DICTIONARY.  Usable by several encoders at the same time.
 */
kpack_error_t kp_dictionary_new(int level, struct kp_span data,
				struct kp_dictionary **out, struct kpackx_error *why);
void kp_dictionary_free(struct kp_dictionary *d); /* NULL is allowed */
/*
 * Let E use D, which is borrowed, for frames that are not in chunks; NULL: none.
 */
kpack_error_t kp_encoder_use(struct kp_encoder *e, const struct kp_dictionary *d,
			     struct kpackx_error *why);
/* Bytes that E holds now. */
size_t kp_encoder_memory(const struct kp_encoder *e);

/* Most bytes that kp_encode may write. */
size_t kp_encode_bound(size_t size, uint64_t chunk);

/*
 * Encode DATA into OUT (kp_encode_bound bytes).  CHUNK 0: one frame.  Else one frame in
 * which every CHUNK bytes can be decoded alone, and a seek table in a skippable frame
 * (seekable.h): readers that know nothing of chunks decode it as any other frame.  A
 * libzstd without threads cannot write that: it makes a frame for every CHUNK bytes.
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
 * The frame index of a zstd blob: N+1 little-endian u64, the offsets of the frames'
 * length words from the blob's start.  The first is 4, they strictly increase, and the
 * last is the blob's size.
 */
static inline uint64_t kp_frame_at(const uint8_t *index, uint32_t frame)
{
	return kp_le64(index + 8 * (size_t)frame);
}

/*
 * Check the rules of a stored index of a blob of BLOB_SIZE bytes; *COUNT becomes the
 * number of frames.  INVALID_FORMAT: a rule is broken.
 */
kpack_error_t kp_frame_index_check(struct kp_span index, uint64_t blob_size,
				   uint32_t *count, struct kpackx_error *why);

/*
 * Build the index by walking the blob with large reads.  The caller frees *INDEX.
 * INVALID_FORMAT: a frame runs past the blob; more frames than KP_FRAMES_MAX.
 */
kpack_error_t kp_frame_index_walk(const struct kp_source *blob, uint8_t **index,
				  uint32_t *count, struct kpackx_error *why);

#endif
