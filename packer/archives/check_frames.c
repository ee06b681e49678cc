/* SPDX-License-Identifier: MIT */
#include "check_frames.h"
#include <stdlib.h>
#include "core/archive/codec.h"
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"

typedef unsigned long long ull;

/* A walk of a zstd blob, and its counters. */
struct frames {
	struct check_findings *out;
	struct kp_span index; /* empty: no index */
	uint32_t count, sizeless, unchecked, foreign;
	uint32_t first_sizeless;
};

static void check_frame(struct frames *f, uint32_t number, struct kp_span head)
{
	struct kp_frame_header h;

	if (!kp_frame_header_read(head, &h)) {
		f->foreign++;
		return;
	}
	if ((h.skippable || h.content == KP_FRAME_SIZE_UNKNOWN) && f->sizeless++ == 0)
		f->first_sizeless = number;
	if (!h.checksum)
		f->unchecked++;
}

static void report_frames(const struct frames *f)
{
	if (f->sizeless)
		CHECK_FAULT(f->out,
			    "blob: %u frames do not state their content size (the first "
			    "is %u): the Python reader cannot decode them",
			    f->sizeless, f->first_sizeless);
	if (f->unchecked)
		CHECK_NOTE(f->out, "blob: %u of %u frames without a checksum",
			   f->unchecked, f->count);
	if (f->foreign)
		CHECK_FAULT(f->out, "blob: %u of %u frames are no zstd frames",
			    f->foreign, f->count);
}

static bool check_index(const struct frames *f, uint32_t frame, uint64_t at)
{
	uint64_t stated;

	if (!f->index.size)
		return true;
	if (f->index.size < 8 * ((size_t)frame + 1)) {
		CHECK_FAULT(f->out, "frame_index: ends before frame %u", frame);
		return false;
	}
	stated = kp_frame_at(f->index.data, frame);
	if (stated != at)
		CHECK_FAULT(f->out, "frame_index: %u is %llu, the blob says %llu", frame,
			    (ull)stated, (ull)at);
	return stated == at;
}

/* Walk the length words and headers of all frames; AT is the end of the last frame. */
static kpack_error_t walk_frames(struct frames *f, struct kp_window *w, uint64_t *at,
				 struct kpackx_error *why)
{
	bool index_ok = true;
	const uint8_t *p;

	KP_TRY(kp_window_get(w, 0, 4, &p, why));
	f->count = kp_le32(p);
	*at = 4;
	for (uint32_t i = 0; i < f->count; i++) {
		uint64_t left, size;

		index_ok = index_ok && check_index(f, i, *at);
		KP_TRY(kp_window_get(w, *at, 4, &p, why));
		size = kp_le32(p);
		left = w->src.size - *at - 4;
		if (size > left)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "frame %u: %llu bytes, %llu are left", i,
				       (ull)size, (ull)left);
		left = size < KP_FRAME_HEADER_MAX ? size : KP_FRAME_HEADER_MAX;
		KP_TRY(kp_window_get(w, *at + 4, (size_t)left, &p, why));
		check_frame(f, i, (struct kp_span){p, (size_t)left});
		*at += 4 + size;
	}
	if (index_ok)
		check_index(f, f->count, *at);
	return KPACK_SUCCESS;
}

void frame_check(const struct kp_source *file, const struct kp_toc *toc,
		 struct check_findings *out)
{
	struct kpackx_error why = {0};
	struct kp_window *w;
	struct kp_source blob;
	struct frames f = {.out = out, .index = toc->frame_index};
	uint64_t end = 0;

	if (!kp_source_sub(file, toc->zstd_offset, toc->zstd_size, &blob)) {
		CHECK_FAULT(out, "blob: not inside the file");
		return;
	}
	w = xmalloc(sizeof(*w));
	kp_window_init(w, &blob);
	if (walk_frames(&f, w, &end, &why))
		CHECK_FAULT(out, "blob: %s", why.text);
	else if (end < blob.size)
		CHECK_NOTE(out, "blob: %llu bytes after the last frame",
			   (ull)(blob.size - end));
	report_frames(&f);
	free(w);
}
