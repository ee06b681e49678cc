/* SPDX-License-Identifier: MIT */
#include "pass.h"
#include <stdlib.h>
#include "core/codec/frame_header.h"
#include "digest.h"
#include "core/codec/frames.h"
#include "core/base/bounds.h"

struct kp_pass {
	struct kp_source stored;
	struct kp_frames *frames; /* NULL: the bytes are stored uncompressed */
	struct kp_digest digest;
	uint64_t size, done; /* of the decoded bytes */
};

static bool is_plain(const struct kpack_archive *a)
{
	return strcmp(kp_archive_scheme(a), "none") == 0;
}

kpack_error_t kp_pass_window(const struct kpack_archive *a, size_t entry,
			     uint64_t *window, struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_source stored;
	struct kp_span head;

	*window = 0;
	if (is_plain(a))
		return KPACK_SUCCESS;
	KP_TRY(kp_archive_source(a, entry, &stored, why));
	KP_TRY(kp_source_head(&stored, 0, buf, sizeof(buf), &head, why));
	/* if the header cannot be read, decoding will report it */
	*window = UINT64_C(1) << KP_WINDOW_LOG_USUAL;
	if (kp_frame_header_read(head, &h) && !h.skippable)
		*window = h.window;
	return KPACK_SUCCESS;
}

static kpack_error_t open_pass(struct kp_pass *p, const struct kpack_archive *a,
			       size_t entry, uint64_t window_max,
			       struct kpackx_error *why)
{
	struct kp_decoding_facts facts = kp_archive_decoding_facts(a, entry);
	struct kp_entry_info info;

	kp_archive_entry(a, entry, &info);
	p->size = info.size;
	KP_TRY(kp_archive_source(a, entry, &p->stored, why));
	KP_TRY(kp_digest_init(&p->digest, facts.xxh3, why));
	if (is_plain(a))
		return KPACK_SUCCESS;
	KP_TRY(kp_frames_open(&p->stored, KP_FRAMES_PIECES, &p->frames, why));
	return kp_frames_limit_window(p->frames, window_max, why);
}

kpack_error_t kp_pass_open(const struct kpack_archive *a, size_t entry,
			   uint64_t window_max, struct kp_pass **out,
			   struct kpackx_error *why)
{
	struct kp_pass *p = calloc(1, sizeof(*p));
	kpack_error_t err;

	if (!p)
		return kp_fail_memory(why, sizeof(*p), "decoding");
	err = open_pass(p, a, entry, window_max, why);
	if (err)
		kp_pass_close(p);
	else
		*out = p;
	return err;
}

static kpack_error_t wrong_size(const struct kp_pass *p, const char *how,
				struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame decodes to %s than its %llu bytes", how,
		       (unsigned long long)p->size);
}

/* After the last byte only a checksum may follow. */
static kpack_error_t check_end(struct kp_pass *p, struct kpackx_error *why)
{
	uint64_t more = 0;
	uint8_t byte;

	if (p->frames)
		KP_TRY(kp_frames_decode(p->frames, &byte, 1, 1, &more, why));
	return more ? wrong_size(p, "more", why) : kp_digest_check(&p->digest, why);
}

kpack_error_t kp_pass_next(struct kp_pass *p, void *buf, size_t size,
			   struct kpackx_error *why)
{
	uint64_t got = 0;

	if (p->frames) {
		KP_TRY(kp_frames_decode(p->frames, buf, size, size, &got, why));
		if (got < size)
			return wrong_size(p, "less", why);
	} else {
		KP_TRY(kp_source_read(&p->stored, p->done, buf, size, why));
	}
	kp_digest_add(&p->digest, buf, size);
	p->done += size;
	return p->done < p->size ? KPACK_SUCCESS : check_end(p, why);
}

bool kp_pass_too_wide(const struct kp_pass *p)
{
	return p->frames && kp_frames_too_wide(p->frames);
}

void kp_pass_close(struct kp_pass *p)
{
	if (!p)
		return;
	kp_frames_close(p->frames);
	kp_digest_fini(&p->digest);
	free(p);
}
