/* SPDX-License-Identifier: MIT */
/*
 * A run of frames can be decoded in two ways.  In one call, from all stored bytes of a frame:
 * that writes straight into the caller's buffer.  In steps: that holds a window, from which
 * every byte is copied, but gives the first bytes soon, and needs no more memory than the
 * window.  begin_frame chooses for each frame by what its header states.
 */
#include "frames.h"
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"

/* Bytes of a block's header, of the largest block's content, and of a frame's checksum. */
enum { BLOCK_HEAD = 3, BLOCK_LOG = 17, CHECKSUM = 4 };

/* The place of the descriptor in a frame's header; a window's byte follows it. */
enum { DESCRIPTOR = 4 };

/* --- headers ------------------------------------------------------------------------- */

static uint64_t read_field(const uint8_t *p, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

bool kp_frame_header_read(struct kp_span head, struct kp_frame_header *h)
{
	static const uint8_t id_sizes[] = {0, 1, 2, 4}, content_sizes[] = {0, 2, 4, 8};
	/* the binary logarithms of the smallest window, and of the largest that zstd decodes */
	enum { SKIPPABLE = 0x184d2a50, WINDOW_LOG_MIN = 10, WINDOW_LOG_MAX = 31 };
	unsigned descriptor, id_size, content_size;
	const uint8_t *p;
	bool single;

	if (head.size >= 4 && (kp_le32(head.data) & ~15U) == SKIPPABLE) {
		*h = (struct kp_frame_header){.size = 8, .skippable = true};
		if (head.size < h->size)
			return false;
		h->skip = kp_le32(head.data + 4);
		return true;
	}
	if (head.size <= DESCRIPTOR || kp_le32(head.data) != KP_FRAME_MAGIC)
		return false;
	descriptor = head.data[DESCRIPTOR];
	single = descriptor & KP_FRAME_SINGLE_SEGMENT;
	id_size = id_sizes[descriptor & 3];
	content_size = content_sizes[descriptor >> 6];
	if (single && !content_size)
		content_size = 1;
	*h = (struct kp_frame_header){
		.size = (uint8_t)(DESCRIPTOR + 1 + !single + id_size + content_size),
		.checksum = descriptor & KP_FRAME_CHECKSUM,
		.content = KP_FRAME_SIZE_UNKNOWN,
	};
	if (head.size < h->size || descriptor & KP_FRAME_RESERVED)
		return false;
	p = head.data + DESCRIPTOR + 1;
	if (!single) {
		unsigned log = WINDOW_LOG_MIN + (*p >> 3);

		if (log > WINDOW_LOG_MAX)
			return false;
		h->window = (UINT64_C(1) << log) + (UINT64_C(1) << (log - 3)) * (*p & 7);
		p++;
	}
	h->dictionary = (uint32_t)read_field(p, id_size);
	p += id_size;
	if (content_size)
		h->content = read_field(p, content_size) + (content_size == 2 ? 256 : 0);
	if (single)
		h->window = h->content;
	return true;
}

bool kp_zstd_content_size(struct kp_span head, uint64_t *size)
{
	struct kp_frame_header h;

	if (!kp_frame_header_read(head, &h) || h.skippable)
		return false;
	*size = h.content;
	return h.content != KP_FRAME_SIZE_UNKNOWN;
}

bool kp_zstd_plausible(uint64_t stored, uint64_t size)
{
	return size / KP_ZSTD_RATIO_MAX <= stored;
}

kpack_error_t kp_frame_measure(struct kp_window *w, uint64_t off,
			       struct kp_frame_header *h, uint64_t *size,
			       struct kpackx_error *why)
{
	enum { RLE = 1 };
	uint64_t at = off, left = off < w->src.size ? w->src.size - off : 0;
	struct kp_span head = {.size = left < KP_FRAME_HEADER_MAX ? (size_t)left
								  : KP_FRAME_HEADER_MAX};
	const uint8_t *p;
	uint32_t block;

	KP_TRY(kp_window_get(w, off, head.size, &head.data, why));
	if (!kp_frame_header_read(head, h))
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "the data is no zstd frame");
	at += h->size;
	if (h->skippable) {
		*size = h->size + h->skip;
		return KPACK_SUCCESS;
	}
	do {
		KP_TRY(kp_window_get(w, at, BLOCK_HEAD, &p, why));
		block = (uint32_t)read_field(p, BLOCK_HEAD);
		/* an RLE block has one byte, whatever its decoded size */
		at += BLOCK_HEAD + ((block >> 1 & 3) == RLE ? 1 : block >> 3);
	} while (!(block & 1));
	*size = at + (h->checksum ? CHECKSUM : 0) - off;
	return KPACK_SUCCESS;
}

/*
 * Bytes that zstd allocates to decode the frame in steps, besides its context: the window with room
 * for a block before and behind it, or all of the content if that is less.
 */
static uint64_t window_memory(const struct kp_frame_header *h)
{
	uint64_t room = h->window + (UINT64_C(2) << BLOCK_LOG);

	return h->content <= h->window || h->content < room ? h->content : room;
}

/* --- decoding in memory -------------------------------------------------------------- */

/* Fail with the error for zstd's CODE, after decoding into SIZE bytes. */
static kpack_error_t fail_zstd(size_t code, uint64_t size, struct kpackx_error *why)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_dstSize_tooSmall)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to more than its %llu bytes",
			       (unsigned long long)size);
	if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
			       "out of memory: decoding a frame of %llu bytes",
			       (unsigned long long)size);
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "frame: %s",
		       ZSTD_getErrorName(code));
}

kpack_error_t kp_zstd_decode_with(struct kp_span prefix, struct kp_span stored, void *buf,
				  size_t size, struct kpackx_error *why)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	size_t n = 0;

	if (!zstd)
		return kp_fail_memory(why, 0, "decoding");
	if (prefix.size)
		n = ZSTD_DCtx_refPrefix(zstd, prefix.data, prefix.size);
	if (!ZSTD_isError(n))
		n = ZSTD_decompressDCtx(zstd, buf, size, stored.data, stored.size);
	ZSTD_freeDCtx(zstd);
	if (ZSTD_isError(n))
		return fail_zstd(n, size, why);
	if (n != size)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to %zu bytes instead of %zu", n, size);
	return KPACK_SUCCESS;
}

kpack_error_t kp_zstd_decode(struct kp_span stored, void *buf, size_t size,
			     struct kpackx_error *why)
{
	return kp_zstd_decode_with((struct kp_span){0}, stored, buf, size, why);
}

/* --- opening a run of frames ---------------------------------------------------------- */

/*
 * Compressed bytes per step: so few that a step decodes at most some hundred KiB, and a
 * piece, which is read at once if it has a hash.
 */
enum { INPUT = KP_PIECE };

/* A frame that decodes to so many bytes takes about 1 ms in one call. */
static const uint64_t SMALL = 1 << 20;

/* The most stored bytes to hold for one call, unless the window would be even larger. */
static const uint64_t HOLD_MAX = 32 << 20;

/* A wider window is not worth its memory. */
static const uint64_t WIDE = 16 << 20;

/* A frame of many decodes to fewer bytes, so that it is worth looking for its end. */
static const uint64_t PART_MAX = 16 << 20;

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

void kp_frames_limit_window(struct kp_frames *f, uint64_t max)
{
	ZSTD_bounds logs = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
	uint64_t least = UINT64_C(1) << logs.lowerBound;
	uint64_t most = UINT64_C(1) << logs.upperBound;

	f->window_max = max < least ? least : max > most ? most : max;
}

kpack_error_t kp_frames_open(struct kp_frames **frames, const struct kp_source *stored,
			     enum kp_frames_into into, struct kpackx_error *why)
{
	size_t cap = INPUT + KP_FRAME_HEADER_MAX;
	struct kp_frames *f;

	if (!*frames)
		KP_TRY(kp_new(frames, 1, "decoding", why));
	f = *frames;
	*f = (struct kp_frames){.stored = *stored,
				.into = into,
				.zstd = f->zstd,
				.input = f->input,
				.cap = f->cap};
	if (stored->size < cap)
		cap = (size_t)stored->size;
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
	/* begin_frame compares each frame's window with our limit: zstd's is the widest it has */
	ZSTD_DCtx_setParameter(f->zstd, ZSTD_d_windowLogMax,
			       ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
	kp_frames_limit_window(f, into == KP_FRAMES_PIECES
					  ? UINT64_C(1) << KP_WINDOW_LOG_MAX
					  : UINT64_MAX);
	return KPACK_SUCCESS;
}

void kp_frames_close(struct kp_frames *f)
{
	if (!f)
		return;
	ZSTD_freeDCtx(f->zstd);
	free(f->input);
	free(f);
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

bool kp_frames_too_wide(const struct kp_frames *f)
{
	return f->too_wide;
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

/* Have N bytes of input in memory, or all that are left. */
static kpack_error_t want_input(struct kp_frames *f, uint64_t n, struct kpackx_error *why)
{
	size_t have = input_left(f), cap = (size_t)n + INPUT;
	uint64_t left = f->stored.size - f->stored_at;

	if (have >= n || !left)
		return KPACK_SUCCESS;
	/* reads end where pieces end: a piece that has a hash is read, and hashed, as a whole */
	if (left > f->cap - have && n - have > (f->cap - have) / INPUT * INPUT) {
		uint8_t *bigger = kp_large_alloc(cap);

		if (!bigger)
			return kp_fail_memory(why, cap, "decoding");
		memcpy(bigger, f->input + f->in.pos, have);
		free(f->input);
		f->input = bigger;
		f->cap = cap;
	} else if (have && f->in.pos) {
		memmove(f->input, f->input + f->in.pos, have);
	}
	f->in = (ZSTD_inBuffer){f->input, have, 0};
	if (left > f->cap - have)
		left = (f->cap - have) / INPUT * INPUT;
	if (f->into != KP_FRAMES_WHOLE)
		kp_source_expect(&f->stored, f->stored_at, &f->expected);
	KP_TRY(kp_source_read(&f->stored, f->stored_at, f->input + have, (size_t)left,
			      why));
	f->stored_at += left;
	f->in.size += (size_t)left;
	return KPACK_SUCCESS;
}

/* --- frames ----------------------------------------------------------------------- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Whether to decode a frame in one call, if it has at most *LIMIT stored bytes.  STORED
 * bytes are left, and ROOM in the buffer.
 */
static bool wants_once(enum kp_frames_into into, const struct kp_frame_header *h,
		       uint64_t stored, uint64_t room, uint64_t *limit)
{
	uint64_t content = least_of(h->content, room);
	uint64_t window = window_memory(h);

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
							  : window_memory(&h);
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
	uint8_t *frame;

	*once = 0;
	KP_TRY(want_input(f, KP_FRAME_HEADER_MAX, why));
	/* zstd finds what is wrong, and skips what is skippable */
	if (!kp_frame_header_read((struct kp_span){f->input + f->in.pos, input_left(f)},
				  &h) ||
	    h.skippable)
		return KPACK_SUCCESS;
	if (wants_once(f->into, &h, stored_left(f), room, &limit)) {
		uint64_t most = least_of(stored_left(f), limit);
		uint64_t want = stored_left(f) <= limit ? most : least_of(most, f->cap);

		/*
		 * Where the frame ends is only known by its blocks, so that twice as much is read
		 * until the end is there; or until it is longer, cut short, or damaged.
		 */
		for (;; want = least_of(most, 2 * want)) {
			KP_TRY(want_input(f, want, why));
			*once = ZSTD_findFrameCompressedSize(f->input + f->in.pos,
							     input_left(f));
			if (!ZSTD_isError(*once))
				break;
			*once = 0;
			if (want == most)
				break;
		}
		/* no window of that size for a few damaged bytes: let zstd report them */
		if (!*once && window_memory(&h) > HOLD_MAX)
			*once = input_left(f);
	}
	frame = f->input + f->in.pos;
	if (f->most && !(frame[DESCRIPTOR] & KP_FRAME_SINGLE_SEGMENT)) {
		int log = BLOCK_LOG; /* a smaller window would forbid the largest block */

		while (log < 32 && UINT64_C(1) << log < f->most)
			log++;
		if (h.window > UINT64_C(1) << log) {
			/* let the frame state the smallest sufficient window */
			frame[DESCRIPTOR + 1] = (uint8_t)((log - 10) << 3);
			h.window = UINT64_C(1) << log;
		}
	}
	if (!*once && h.window > f->window_max) {
		f->too_wide = true;
		return kp_fail(
			why, KPACK_ERROR_DECOMPRESSION_FAILED, "frame: %s",
			ZSTD_getErrorString(ZSTD_error_frameParameter_windowTooLarge));
	}
	if (f->ignore_checksums && h.checksum) {
		/* without flag and checksum it is a frame as well */
		frame[DESCRIPTOR] &= (uint8_t)~KP_FRAME_CHECKSUM;
		f->unchecked = CHECKSUM;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t cut_short(const struct kp_frames *f, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame ends after %llu decoded bytes",
		       (unsigned long long)f->decoded);
}

kpack_error_t kp_frames_decode(struct kp_frames *f, void *buf, uint64_t size,
			       uint64_t until, uint64_t *done, struct kpackx_error *why)
{
	ZSTD_outBuffer out = {buf, (size_t)size, (size_t)*done};
	uint8_t byte;

	while (out.pos < until) {
		ZSTD_outBuffer spare = {&byte, 1, 0}, *into;
		size_t once = 0, n, before;

		/* everything was read, and everything that was read was written */
		if (!stored_left(f) && !f->full)
			return f->in_frame ? cut_short(f, why) : KPACK_SUCCESS;
		if (!f->in_frame)
			KP_TRY(begin_frame(f, out.size - out.pos, &once, why));
		if (once) { /* straight into the caller's buffer, without a window */
			n = ZSTD_decompressDCtx(f->zstd, (uint8_t *)buf + out.pos,
						out.size - out.pos, f->input + f->in.pos,
						once - least_of(f->unchecked, once));
			if (ZSTD_isError(n))
				return fail_zstd(n, out.size, why);
			f->unchecked = 0;
			f->in.pos += once;
			f->decoded += n;
			out.pos += n;
			*done = out.pos;
			continue;
		}

		/* A step when OUT is full decodes what is left of the frame: no more than its
		 * checksum.  A byte of room shows whether there is more, without which zstd would
		 * only say that it is not done. */
		into = out.pos < out.size ? &out : &spare;
		before = into->pos;
		KP_TRY(want_input(f, 1, why));
		n = ZSTD_decompressStream(f->zstd, into, &f->in);
		if (ZSTD_isError(n))
			return fail_zstd(n, out.size, why);
		f->decoded += into->pos - before;
		f->in_frame = n != 0;
		f->full = n != 0 && into->pos == into->size;
		if (spare.pos)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "frame decodes to more than its %llu bytes",
				       (unsigned long long)out.size);
		if (n == 0 && f->unchecked) {
			KP_TRY(want_input(f, f->unchecked, why));
			if (input_left(f) < f->unchecked)
				return cut_short(f, why);
			f->in.pos += f->unchecked;
			f->unchecked = 0;
		}
		*done = out.pos;
	}
	return KPACK_SUCCESS;
}
