/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "archive.h"
#include "digest.h"
#include "core/codec/frame_header.h"
#include "core/codec/frames.h"

/*
 * Bytes to decode before hashing them: few enough to be still in the processor's cache.
 */
static const uint64_t STEP = 256 << 10;

struct kp_stream {
	const struct kpack_archive *archive;
	size_t entry;
	struct kp_source stored;
	uint8_t *out;
	uint64_t size, done; /* of the decoded bytes */
	kpack_error_t (*advance)(struct kp_stream *s, uint64_t until,
				 struct kpackx_error *why);

	struct kp_chunks *chunks;
	struct kp_frames *frames;

	struct kp_digest digest;
	uint64_t hashed;
};

static kpack_error_t advance_plain(struct kp_stream *s, uint64_t until,
				   struct kpackx_error *why)
{
	KP_TRY(kp_source_read(&s->stored, s->done, s->out + s->done,
			      (size_t)(until - s->done), why));
	s->done = until;
	return KPACK_SUCCESS;
}

static kpack_error_t advance_chunks(struct kp_stream *s, uint64_t until,
				    struct kpackx_error *why)
{
	uint64_t chunk = kp_chunks_size(s->chunks);

	while (s->done < until) {
		KP_TRY(kp_chunks_read(s->chunks, s->done / chunk, s->out + s->done, why));
		s->done = s->size - s->done < chunk ? s->size : s->done + chunk;
	}
	return KPACK_SUCCESS;
}

/* The last bytes count only when all frames have ended: a checksum may still follow. */
static kpack_error_t advance_frames(struct kp_stream *s, uint64_t until,
				    struct kpackx_error *why)
{
	if (until < s->size)
		KP_TRY(kp_frames_decode(s->frames, s->out, s->size, until, &s->done,
					why));
	if (until == s->size || s->done == s->size)
		KP_TRY(kp_frames_decode(s->frames, s->out, s->size, UINT64_MAX, &s->done,
					why));
	if (s->done < until)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to %llu bytes instead of %llu",
			       (unsigned long long)s->done, (unsigned long long)s->size);
	return KPACK_SUCCESS;
}

/*
 * STEPS: the first bytes are wanted soon, and a chunked entry is decoded by its seek table,
 * not just frame by frame.
 */
static kpack_error_t open_stream(struct kp_stream *s, bool steps,
				 struct kpackx_error *why)
{
	struct kp_decoding_facts facts = kp_archive_decoding_facts(s->archive, s->entry);
	struct kp_entry_info info;

	kp_archive_entry(s->archive, s->entry, &info);
	s->size = info.size;
	KP_TRY(kp_archive_source(s->archive, s->entry, &s->stored, why));
	KP_TRY(kp_digest_init(&s->digest, facts.xxh3, why));
	if (strcmp(kp_archive_scheme(s->archive), "none") == 0) {
		s->advance = advance_plain;
		return KPACK_SUCCESS;
	}
	if (facts.chunk && steps) {
		s->advance = advance_chunks;
		return kp_chunks_open(s->archive, s->entry, &s->chunks, why);
	}
	s->advance = advance_frames;
	return kp_frames_open(&s->stored, steps ? KP_FRAMES_STEPS : KP_FRAMES_WHOLE,
			      &s->frames, why);
}

uint64_t kp_stream_memory(const struct kpack_archive *a, size_t entry)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_entry_info info;
	struct kp_source stored;
	struct kp_span head;

	if (strcmp(kp_archive_scheme(a), "none") == 0 ||
	    kp_archive_source(a, entry, &stored, NULL) ||
	    kp_source_head(&stored, 0, buf, sizeof(buf), &head, NULL))
		return 0;
	kp_archive_entry(a, entry, &info);
	return kp_frames_memory(head, KP_FRAMES_STEPS, stored.size, info.size);
}

kpack_error_t kp_stream_open(const struct kpack_archive *a, size_t entry, void *buf,
			     struct kp_stream **out, struct kpackx_error *why)
{
	struct kp_stream *s = calloc(1, sizeof(*s));
	kpack_error_t err;

	if (!s)
		return kp_fail_memory(why, sizeof(*s), "a stream");
	s->archive = a;
	s->entry = entry;
	s->out = buf;
	err = open_stream(s, true, why);
	if (err) {
		kp_stream_close(s);
		return err;
	}
	if (s->digest.hash && s->frames)
		kp_frames_ignore_checksums(s->frames);
	*out = s;
	return KPACK_SUCCESS;
}

static kpack_error_t check_hash(struct kp_stream *s, struct kpackx_error *why)
{
	kp_digest_add(&s->digest, s->out + s->hashed, (size_t)(s->done - s->hashed));
	s->hashed = s->done;
	return s->done < s->size ? KPACK_SUCCESS : kp_digest_check(&s->digest, why);
}

kpack_error_t kp_stream_step(struct kp_stream *s, uint64_t step, uint64_t *ready,
			     struct kpackx_error *why)
{
	uint64_t left = s->size - s->done;

	KP_TRY(s->advance(s, left < step ? s->size : s->done + step, why));
	KP_TRY(check_hash(s, why));
	*ready = s->done;
	return KPACK_SUCCESS;
}

static void fini_stream(struct kp_stream *s)
{
	kp_chunks_close(s->chunks);
	kp_frames_close(s->frames);
	kp_digest_fini(&s->digest);
}

void kp_stream_close(struct kp_stream *s)
{
	if (!s)
		return;
	fini_stream(s);
	free(s);
}

static kpack_error_t run_stream(struct kp_stream *s, bool strict,
				struct kpackx_error *why)
{
	uint64_t ready;

	KP_TRY(open_stream(s, false, why));
	if (s->digest.hash && s->frames && !strict)
		kp_frames_ignore_checksums(s->frames);
	do
		KP_TRY(kp_stream_step(s, s->digest.hash ? STEP : UINT64_MAX, &ready,
				      why));
	while (ready < s->size);
	return KPACK_SUCCESS;
}

static kpack_error_t read_entry(const struct kpack_archive *a, size_t entry, void *buf,
				bool strict, struct kpackx_error *why)
{
	struct kp_stream s = {.archive = a, .entry = entry, .out = buf};
	kpack_error_t err = run_stream(&s, strict, why);

	fini_stream(&s);
	return err;
}

kpack_error_t kp_archive_read(const struct kpack_archive *a, size_t entry, void *buf,
			      struct kpackx_error *why)
{
	return read_entry(a, entry, buf, true, why);
}

kpack_error_t kp_archive_read_fast(const struct kpack_archive *a, size_t entry, void *buf,
				   struct kpackx_error *why)
{
	return read_entry(a, entry, buf, false, why);
}
