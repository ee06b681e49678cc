/* SPDX-License-Identifier: MIT */
#include "frames.h"
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "codec.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "frame_header.h"

/*
 * Compressed bytes per step: so few that a step decodes at most some hundred KiB, and a
 * piece, which is read at once if it has a hash.
 */
enum { INPUT = KP_PIECE };

/*
 * Decoding a frame in one call, from its stored bytes, writes straight into the caller's
 * buffer.  Decoding it in steps holds a window, from which every byte is copied, but gives
 * the first bytes soon.  A frame that decodes to SMALL bytes takes about 1 ms.
 */
static const uint64_t SMALL = 1 << 20;

/* The most stored bytes to hold for one call, unless the window would be even larger. */
static const uint64_t HOLD_MAX = 32 << 20;

/* A wider window is not worth its memory. */
static const uint64_t WIDE = 16 << 20;

/* A frame of many decodes to fewer bytes, so that it is worth looking for its end. */
static const uint64_t PART_MAX = 16 << 20;

/* The place of the descriptor in a frame's header, and its flags. */
enum { DESCRIPTOR = 4, HAS_CHECKSUM = 1 << 2, SINGLE_SEGMENT = 1 << 5 };

/* The binary logarithm of the largest block: a smaller window would forbid it. */
enum { BLOCK_LOG = 17, CHECKSUM = 4 };

struct kp_frames {
	struct kp_source stored;
	enum kp_frames_into into;
	bool ignore_checksums;
	uint64_t window_max; /* bytes of the widest window to decode with in steps */
	uint64_t most;       /* bytes that frames decode to; 0: not known */
	uint64_t stored_at;  /* next stored byte to read */
	uint64_t expected;   /* see kp_source_expect */
	uint64_t decoded;
	ZSTD_DCtx *zstd;
	uint8_t *input;
	size_t cap;
	ZSTD_inBuffer in;   /* in INPUT */
	bool in_frame;      /* a frame began and did not end */
	unsigned unchecked; /* bytes of the frame's checksum, which zstd is not given */
	bool full; /* the output buffer was too small: the window may hold more */
	bool too_wide;
};

static kpack_error_t not_set(size_t err, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "decoder: %s",
		       ZSTD_getErrorName(err));
}

kpack_error_t kp_frames_limit_window(struct kp_frames *f, uint64_t max,
				     struct kpackx_error *why)
{
	ZSTD_bounds logs = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
	uint64_t least = UINT64_C(1) << logs.lowerBound;
	uint64_t most = UINT64_C(1) << logs.upperBound;
	int log = logs.lowerBound;
	size_t err;

	f->window_max = max < least ? least : max > most ? most : max;
	while (UINT64_C(1) << log < f->window_max)
		log++;
	err = ZSTD_DCtx_setParameter(f->zstd, ZSTD_d_windowLogMax, log);
	return ZSTD_isError(err) ? not_set(err, why) : KPACK_SUCCESS;
}

static kpack_error_t open_frames(struct kp_frames *f, struct kpackx_error *why)
{
	size_t cap = INPUT + KP_FRAME_HEADER_MAX;

	if (f->stored.size < cap)
		cap = (size_t)f->stored.size;

	if (!f->input || f->cap < cap) {
		free(f->input);
		f->input = malloc(cap + 1);
		f->cap = cap;
	}
	if (f->zstd)
		ZSTD_DCtx_reset(f->zstd, ZSTD_reset_session_and_parameters);
	else
		f->zstd = ZSTD_createDCtx();
	if (!f->input || !f->zstd)
		return kp_fail_memory(why, INPUT, "decoding");
	return kp_frames_limit_window(f,
				      f->into == KP_FRAMES_PIECES
					      ? UINT64_C(1) << KP_WINDOW_LOG_MAX
					      : UINT64_MAX,
				      why);
}

kpack_error_t kp_frames_open(const struct kp_source *stored, enum kp_frames_into into,
			     struct kp_frames **out, struct kpackx_error *why)
{
	struct kp_frames *f = calloc(1, sizeof(*f));
	kpack_error_t err;

	if (!f)
		return kp_fail_memory(why, sizeof(*f), "decoding");
	f->stored = *stored;
	f->into = into;
	err = open_frames(f, why);
	if (err)
		kp_frames_close(f);
	else
		*out = f;
	return err;
}

kpack_error_t kp_frames_reopen(struct kp_frames *f, const struct kp_source *stored,
			       enum kp_frames_into into, struct kpackx_error *why)
{
	*f = (struct kp_frames){.stored = *stored,
				.into = into,
				.zstd = f->zstd,
				.input = f->input,
				.cap = f->cap};
	return open_frames(f, why);
}

uint64_t kp_frames_held(const struct kp_frames *f)
{
	return f->cap + ZSTD_sizeof_DCtx(f->zstd);
}

void kp_frames_ignore_checksums(struct kp_frames *f)
{
	f->ignore_checksums = true;
}

void kp_frames_narrow_windows(struct kp_frames *f, uint64_t size)
{
	f->most = size;
}

/* --- input ------------------------------------------------------------------------ */

static size_t input_left(const struct kp_frames *f)
{
	return f->in.size - f->in.pos;
}

static uint64_t stored_left(const struct kp_frames *f)
{
	return input_left(f) + (f->stored.size - f->stored_at);
}

static kpack_error_t grow_input(struct kp_frames *f, size_t cap, struct kpackx_error *why)
{
	uint8_t *bigger = kp_large_alloc(cap);

	if (!bigger)
		return kp_fail_memory(why, cap, "decoding");
	memcpy(bigger, f->input + f->in.pos, input_left(f));
	free(f->input);
	f->input = bigger;
	f->cap = cap;
	f->in = (ZSTD_inBuffer){bigger, input_left(f), 0};
	return KPACK_SUCCESS;
}

/* Have N bytes of input in memory, or all that are left. */
static kpack_error_t want_input(struct kp_frames *f, uint64_t n, struct kpackx_error *why)
{
	size_t have = input_left(f);
	uint64_t left = f->stored.size - f->stored_at;

	if (have >= n || !left)
		return KPACK_SUCCESS;
	/* reads end where pieces end */
	if (left > f->cap - have && n - have > (f->cap - have) / INPUT * INPUT)
		KP_TRY(grow_input(f, (size_t)n + INPUT, why));
	if (have && f->in.pos)
		memmove(f->input, f->input + f->in.pos, have);
	if (left > f->cap - have)
		left = (f->cap - have) / INPUT * INPUT;
	if (f->into != KP_FRAMES_WHOLE)
		kp_source_expect(&f->stored, f->stored_at, &f->expected);
	KP_TRY(kp_source_read(&f->stored, f->stored_at, f->input + have, (size_t)left,
			      why));
	f->stored_at += left;
	f->in = (ZSTD_inBuffer){f->input, have + (size_t)left, 0};
	return KPACK_SUCCESS;
}

/* --- frames ----------------------------------------------------------------------- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Have the whole frame in memory, if it has at most LIMIT stored bytes; *SIZE becomes
 * its stored bytes, or 0: it is longer, cut short, or damaged.
 */
static kpack_error_t load_frame(struct kp_frames *f, uint64_t limit, size_t *size,
				struct kpackx_error *why)
{
	uint64_t most = least_of(stored_left(f), limit);
	uint64_t want = stored_left(f) <= limit ? most : least_of(most, f->cap);

	for (;; want = least_of(most, 2 * want)) {
		KP_TRY(want_input(f, want, why));
		*size = ZSTD_findFrameCompressedSize(f->input + f->in.pos, input_left(f));
		if (!ZSTD_isError(*size))
			return KPACK_SUCCESS;
		*size = 0;
		if (want == most)
			return KPACK_SUCCESS;
	}
}

/*
 * Whether to decode a frame in one call, if it has at most *LIMIT stored bytes.  STORED
 * bytes are left, and ROOM in the buffer.
 */
static bool wants_once(enum kp_frames_into into, const struct kp_frame_header *h,
		       uint64_t stored, uint64_t room, uint64_t *limit)
{
	uint64_t content = least_of(h->content, room);
	uint64_t window = kp_frame_window_memory(h);

	if (into == KP_FRAMES_PIECES ||
	    (into == KP_FRAMES_STEPS && content > SMALL && window <= WIDE))
		return false;
	*limit = window > HOLD_MAX ? window : HOLD_MAX;
	if (content <= PART_MAX)
		*limit = least_of(*limit, ZSTD_compressBound((size_t)content) + INPUT);
	return content <= PART_MAX || stored <= *limit;
}

uint64_t kp_frames_memory(struct kp_span head, enum kp_frames_into into, uint64_t stored,
			  uint64_t size)
{
	struct kp_frame_header h;
	uint64_t limit;

	if (!kp_frame_header_read(head, &h) || h.skippable)
		return least_of(stored, HOLD_MAX);
	return wants_once(into, &h, stored, size, &limit) ? least_of(stored, limit)
							  : kp_frame_window_memory(&h);
}

/*
 * Let the frame state the smallest sufficient window.  That of a single segment is as
 * large as its content.
 */
static void narrow_window(const struct kp_frames *f, uint8_t *frame,
			  struct kp_frame_header *h)
{
	int log = BLOCK_LOG;

	while (log < 32 && UINT64_C(1) << log < f->most)
		log++;
	if (frame[DESCRIPTOR] & SINGLE_SEGMENT || h->window <= UINT64_C(1) << log)
		return;
	frame[DESCRIPTOR + 1] = (uint8_t)((log - 10) << 3);
	h->window = UINT64_C(1) << log;
}

static kpack_error_t too_wide(struct kp_frames *f, struct kpackx_error *why)
{
	f->too_wide = true;
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "frame: %s",
		       ZSTD_getErrorString(ZSTD_error_frameParameter_windowTooLarge));
}

/*
 * A frame begins.  *ONCE becomes the stored bytes that are to be decoded in one call; 0:
 * it is decoded in steps.
 */
static kpack_error_t begin_frame(struct kp_frames *f, uint64_t room, size_t *once,
				 struct kpackx_error *why)
{
	struct kp_frame_header h;
	uint64_t limit;

	*once = 0;
	KP_TRY(want_input(f, KP_FRAME_HEADER_MAX, why));
	/* zstd finds what is wrong, and skips what is skippable */
	if (!kp_frame_header_read((struct kp_span){f->input + f->in.pos, input_left(f)},
				  &h) ||
	    h.skippable)
		return KPACK_SUCCESS;
	if (wants_once(f->into, &h, stored_left(f), room, &limit)) {
		KP_TRY(load_frame(f, limit, once, why));
		/* no window of that size for a few damaged bytes: let zstd report them */
		if (!*once && kp_frame_window_memory(&h) > HOLD_MAX)
			*once = input_left(f);
	}
	if (f->most)
		narrow_window(f, f->input + f->in.pos, &h);
	if (!*once && h.window > f->window_max)
		return too_wide(f, why);
	if (f->ignore_checksums && h.checksum) {
		/* without flag and checksum it is a frame as well */
		f->input[f->in.pos + DESCRIPTOR] &= (uint8_t)~HAS_CHECKSUM;
		f->unchecked = CHECKSUM;
	}
	return KPACK_SUCCESS;
}

/* Whether everything was read, and everything that was read was written. */
static bool at_end(const struct kp_frames *f)
{
	return !input_left(f) && f->stored_at == f->stored.size && !f->full;
}

static kpack_error_t cut_short(const struct kp_frames *f, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame ends after %llu decoded bytes",
		       (unsigned long long)f->decoded);
}

static kpack_error_t decode_once(struct kp_frames *f, size_t stored, ZSTD_outBuffer *out,
				 struct kpackx_error *why)
{
	size_t n = ZSTD_decompressDCtx(f->zstd, (uint8_t *)out->dst + out->pos,
				       out->size - out->pos, f->input + f->in.pos,
				       stored - least_of(f->unchecked, stored));

	if (ZSTD_isError(n))
		return kp_zstd_fail(n, out->size, why);
	f->unchecked = 0;
	f->in.pos += stored;
	f->decoded += n;
	out->pos += n;
	return KPACK_SUCCESS;
}

/* A step when OUT is full decodes what is left of the frame: no more than its checksum. */
static kpack_error_t decode_step(struct kp_frames *f, ZSTD_outBuffer *out,
				 struct kpackx_error *why)
{
	uint8_t byte;
	ZSTD_outBuffer spare = {&byte, 1, 0};
	ZSTD_outBuffer *into = out->pos < out->size ? out : &spare;
	size_t before = into->pos, n;

	KP_TRY(want_input(f, 1, why));
	n = ZSTD_decompressStream(f->zstd, into, &f->in);
	if (ZSTD_isError(n)) {
		f->too_wide =
			ZSTD_getErrorCode(n) == ZSTD_error_frameParameter_windowTooLarge;
		return kp_zstd_fail(n, out->size, why);
	}
	f->decoded += into->pos - before;
	f->in_frame = n != 0;
	f->full = n != 0 && into->pos == into->size;
	if (spare.pos)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to more than its %llu bytes",
			       (unsigned long long)out->size);
	if (n == 0 && f->unchecked) {
		KP_TRY(want_input(f, f->unchecked, why));
		if (input_left(f) < f->unchecked)
			return cut_short(f, why);
		f->in.pos += f->unchecked;
		f->unchecked = 0;
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_frames_decode(struct kp_frames *f, void *buf, uint64_t size,
			       uint64_t until, uint64_t *done, struct kpackx_error *why)
{
	ZSTD_outBuffer out = {buf, (size_t)size, (size_t)*done};

	while (out.pos < until) {
		size_t once = 0;

		if (at_end(f))
			return f->in_frame ? cut_short(f, why) : KPACK_SUCCESS;
		if (!f->in_frame)
			KP_TRY(begin_frame(f, out.size - out.pos, &once, why));
		KP_TRY(once ? decode_once(f, once, &out, why)
			    : decode_step(f, &out, why));
		*done = out.pos;
	}
	return KPACK_SUCCESS;
}

bool kp_frames_too_wide(const struct kp_frames *f)
{
	return f->too_wide;
}

void kp_frames_close(struct kp_frames *f)
{
	if (!f)
		return;
	ZSTD_freeDCtx(f->zstd);
	free(f->input);
	free(f);
}
