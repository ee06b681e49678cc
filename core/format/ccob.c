/* SPDX-License-Identifier: MIT */
/*
 * Compressed offload bundle: a header, then one plain bundle compressed.
 *
 *              v1     v2     v3
 *   "CCOB"     0      0      0
 *   version    4 u16  4 u16  4 u16
 *   method     6 u16  6 u16  6 u16    0 zlib, 1 zstd
 *   size       -      8 u32  8 u64    of header and data
 *   decoded    8 u32  12 u32 16 u64
 *   hash       12 u64 16 u64 24 u64   MD5's first half: kp_ccob_hash
 *   data       20     24     32
 *
 * zstd's data are frames, skippable ones too, as ZSTD_decompress takes them; behind zlib's
 * stream any bytes may follow, as its uncompress ignores them.  A v1 ends where its
 * compressed data end.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/file.h"
#include "core/archive/frames.h"
#include "bundle.h"
#include "ccob.h"

#if KP_WITH_ZLIB
#include <zlib.h>
#endif

/* Compressed bytes read at a time. */
#define IN_SIZE 65536

/* Decoded bytes written to a file at a time. */
#define SPILL_SIZE ((size_t)256 << 10)

/* The most bytes in memory of a payload that goes to a file: a compiler's window. */
#define WHOLE_MAX ((size_t)128 << 20)

/* The fields of a header. */
struct ccob {
	bool zstd; /* else zlib */
	uint64_t header_size;
	uint64_t size; /* of header and data */
	uint64_t decoded;
};

/*
 * Decodes the compressed data from the beginning, any number of bytes at a time: to list a
 * bundle only its header is decoded, and a large payload goes piece by piece to a file.
 */
struct decoder {
	struct kp_source src;
	uint64_t made;          /* decoded bytes so far */
	struct kp_frames *zstd; /* NULL: zlib */
	bool whole;             /* all goes into one buffer */
#if KP_WITH_ZLIB
	z_stream zlib;
	bool zlib_live, ended; /* the stream's end was decoded */
	uint64_t fetched;      /* bytes of SRC read into IN */
	size_t in_pos, in_size;
	uint8_t in[IN_SIZE];
#endif
};

static const char *method_name(bool zstd)
{
	return zstd ? "zstd" : "zlib";
}

static void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	kp_frames_close(d->zstd);
#if KP_WITH_ZLIB
	if (d->zlib_live)
		inflateEnd(&d->zlib);
#endif
	free(d);
}

#if KP_WITH_ZLIB
static kpack_error_t fail_zlib(const struct decoder *d, int code,
			       struct kpackx_error *why)
{
	if (code == Z_MEM_ERROR)
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "out of memory: zlib");
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "zlib: %s",
		       d->zlib.msg ? d->zlib.msg : zError(code));
}

#endif

/*
 * DECODED is the size that the header states.  WHOLE: all is decoded into one buffer, without
 * a window if the frame has just that size.
 */
static kpack_error_t decoder_new(bool zstd, const struct kp_source *src, uint64_t decoded,
				 bool whole, struct decoder **out,
				 struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct decoder *d = calloc(1, sizeof(*d));
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_span head;
	uint64_t stated = 0;

	if (!d)
		return kp_fail_memory(why, sizeof(*d), "a decoder");
	d->src = *src;
	if (zstd) {
		err = kp_source_head(src, 0, buf, sizeof(buf), &head, why);
		if (!err && kp_zstd_content_size(head, &stated) && stated > decoded)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "the zstd frame says %" PRIu64
				      " bytes, the header %" PRIu64,
				      stated, decoded);
		d->whole = whole && stated == decoded;
		if (!err)
			err = kp_frames_open(
				&d->zstd, &d->src,
				d->whole ? KP_FRAMES_WHOLE : KP_FRAMES_PIECES, why);
		if (!err) {
			/* a window takes no more memory than the payload, whose size is checked */
			kp_frames_narrow_windows(d->zstd, decoded);
			kp_frames_limit_window(d->zstd, 2 * decoded + (256 << 10));
		}
	}
#if KP_WITH_ZLIB
	else if (inflateInit(&d->zlib) == Z_OK)
		d->zlib_live = true;
	else
		err = fail_zlib(d, Z_MEM_ERROR, why);
#endif
	if (err) {
		decoder_free(d);
		return err;
	}
	*out = d;
	return KPACK_SUCCESS;
}

/* Decode LEN bytes, or fewer if the data end before. */
static kpack_error_t decoder_read(struct decoder *d, uint8_t *out, size_t len,
				  size_t *got, struct kpackx_error *why)
{
	uint64_t done = 0;

	*got = 0;
	if (d->zstd) {
		KP_TRY(kp_frames_decode(d->zstd, out, len, len, &done, why));
		*got = (size_t)done;
	}
#if KP_WITH_ZLIB
	while (!d->zstd && *got < len && !d->ended) {
		/* zlib counts in 32 bits */
		size_t room = len - *got < INT32_MAX ? len - *got : INT32_MAX;
		int code;

		if (d->in_pos == d->in_size) {
			uint64_t left = d->src.size - d->fetched;

			d->in_pos = 0;
			d->in_size = left < IN_SIZE ? (size_t)left : IN_SIZE;
			KP_TRY(kp_source_read(&d->src, d->fetched, d->in, d->in_size,
					      why));
			d->fetched += d->in_size;
		}
		d->zlib.next_in = d->in + d->in_pos;
		d->zlib.avail_in = (uInt)(d->in_size - d->in_pos);
		d->zlib.next_out = out + *got;
		d->zlib.avail_out = (uInt)room;
		code = inflate(&d->zlib, Z_NO_FLUSH);
		if (code == Z_BUF_ERROR)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "zlib: the data ends after %" PRIu64
				       " decoded bytes",
				       d->made + *got);
		if (code != Z_OK && code != Z_STREAM_END)
			return fail_zlib(d, code, why);
		d->in_pos = d->in_size - d->zlib.avail_in;
		d->ended = code == Z_STREAM_END;
		*got += room - d->zlib.avail_out;
	}
#endif
	d->made += *got;
	return KPACK_SUCCESS;
}

/* Decode exactly LEN bytes. */
static kpack_error_t decoder_fill(struct decoder *d, uint8_t *out, size_t len,
				  struct kpackx_error *why)
{
	size_t got = 0;

	KP_TRY(decoder_read(d, out, len, &got, why));
	if (got < len)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: only %" PRIu64 " decoded bytes, the header says more",
			       method_name(d->zstd), d->made);
	return KPACK_SUCCESS;
}

/* Check that the data end here; a WHOLE decoder's are in OUT, and it is given no other buffer. */
static kpack_error_t decoder_finish(struct decoder *d, uint8_t *out,
				    struct kpackx_error *why)
{
	uint64_t made = d->made, done = made;
	uint8_t extra;
	size_t got = 0;

	if (d->whole)
		return kp_frames_decode(d->zstd, out, made, made + 1, &done, why);
	KP_TRY(decoder_read(d, &extra, 1, &got, why));
	if (got)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: more than the %" PRIu64
			       " decoded bytes the header says",
			       method_name(d->zstd), made);
	return KPACK_SUCCESS;
}

kpack_error_t kp_zlib_decode(const struct kp_source *src, uint8_t *out, size_t size,
			     struct kpackx_error *why)
{
	struct decoder *d = NULL;
	kpack_error_t err;

	if (!KP_WITH_ZLIB)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "compressed with zlib: built without zlib");
	KP_TRY(decoder_new(false, src, size, false, &d, why));
	err = decoder_fill(d, out, size, why);
	if (!err)
		err = decoder_finish(d, out, why);
	decoder_free(d);
	return err;
}

/* ---- the end of version 1 ---- */

/* What follows in .hip_fatbin is padding or a container, and begins like no frame. */
static kpack_error_t measure_zstd(const struct kp_source *src, uint64_t *size,
				  struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header header;
	struct kp_window window;
	struct kp_span head;
	uint64_t frame;

	kp_window_init(&window, src);
	*size = 0;
	do {
		KP_TRY(kp_frame_measure(&window, *size, &header, &frame, why));
		if (frame > src->size - *size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "zstd data of %" PRIu64
				       " bytes passes the end at %" PRIu64,
				       frame, src->size);
		*size += frame;
		KP_TRY(kp_source_head(src, *size, buf, sizeof(buf), &head, why));
	} while (kp_frame_header_read(head, &header));
	return KPACK_SUCCESS;
}

#if KP_WITH_ZLIB
/* Only decoding finds the end; the decoded bytes are discarded.  DECODED bounds the work. */
static kpack_error_t measure_zlib(const struct kp_source *src, uint64_t decoded,
				  uint64_t *size, struct kpackx_error *why)
{
	struct decoder *d = NULL;
	kpack_error_t err = decoder_new(false, src, decoded, false, &d, why);
	uint8_t discard[16384];
	size_t got;

	while (!err && !d->ended && d->made <= decoded)
		err = decoder_read(d, discard, sizeof(discard), &got, why);
	if (!err && d->made != decoded)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "zlib: %" PRIu64 " decoded bytes or more, the header says "
			      "%" PRIu64,
			      d->made, decoded);
	if (!err)
		*size = d->fetched - (d->in_size - d->in_pos);
	decoder_free(d);
	return err;
}
#endif

/* ---- container ---- */

bool kp_ccob_form_ok(const struct kp_ccob_form *form)
{
	int most = form->method == KP_CCOB_ZSTD ? 22 : 9;

	return kp_ccob_header_size(form->version) && form->method <= KP_CCOB_ZSTD &&
	       form->level >= 0 && form->level <= most;
}

static bool probe_ccob(struct kp_span head)
{
	return kp_span_starts(head, "CCOB", 4);
}

/*
 * Read the header at the beginning of SRC; DATA becomes the compressed part.  That it can
 * decode to the stated size is checked before anything is allocated.
 */
static kpack_error_t open_ccob(const struct kp_source *src, struct ccob *h,
			       struct kp_source *data, struct kpackx_error *why)
{
	uint8_t b[KP_CCOB_HEADER_MAX];
	unsigned version, number;
	uint64_t compressed;

	KP_TRY(kp_source_read(src, 0, b, 8, why));
	version = kp_le16(b + 4);
	number = kp_le16(b + 6);
	h->header_size = kp_ccob_header_size(version);
	if (!h->header_size)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "version %u, known are 1 to 3", version);
	h->zstd = number == KP_CCOB_ZSTD;
	if (number == KP_CCOB_ZLIB && !KP_WITH_ZLIB)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "method 0 (zlib) is not built in, only zstd");
	if (number != KP_CCOB_ZLIB && !h->zstd)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "method %u, known are 0 (zlib) and 1 (zstd)", number);
	KP_TRY(kp_source_read(src, 0, b, h->header_size, why));
	h->size = version == 1   ? src->size
		  : version == 2 ? kp_le32(b + 8)
				 : kp_le64(b + 8);
	h->decoded = version == 3 ? kp_le64(b + 16) : kp_le32(b + 8 + 4 * (version - 1));
	if (h->size <= h->header_size || h->size > src->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "size %" PRIu64 ", the header has %" PRIu64
			       " bytes and %" PRIu64 " exist",
			       h->size, h->header_size, src->size);
	compressed = h->size - h->header_size;
	/* of version 1 once with all bytes that follow, and again with those that are its own */
	for (;;) {
		kp_source_sub(src, h->header_size, compressed, data);
		if (h->decoded < KP_BUNDLE_HEADER_MIN || h->decoded > KP_CCOB_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "decoded size %" PRIu64
				       ", possible are %d to %" PRIu64,
				       h->decoded, KP_BUNDLE_HEADER_MIN, KP_CCOB_MAX);
		if (h->decoded / (h->zstd ? KP_ZSTD_RATIO_MAX : KP_ZLIB_RATIO_MAX) >
		    compressed)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "decoded size %" PRIu64
				       " cannot come out of %" PRIu64 " bytes of %s",
				       h->decoded, compressed, method_name(h->zstd));
		if (version > 1)
			return KPACK_SUCCESS;
		/* no field states where the data of version 1 end */
		if (h->zstd)
			KP_TRY(measure_zstd(data, &compressed, why));
#if KP_WITH_ZLIB
		else
			KP_TRY(measure_zlib(data, h->decoded, &compressed, why));
#endif
		h->size = h->header_size + compressed;
		version = 2; /* now it is known */
	}
}

kpack_error_t kp_ccob_measure(const struct kp_source *src, uint64_t off,
			      struct kp_container *c, struct kpackx_error *why)
{
	struct kp_source rest, data;
	struct ccob h;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(open_ccob(&rest, &h, &data, why));
	*c = (struct kp_container){.format = &kp_format_ccob,
				   .inside = KP_NOWHERE,
				   .next = KP_NOWHERE,
				   .offset = off,
				   .size = h.size,
				   .payload_size = h.decoded};
	return KPACK_SUCCESS;
}

static kpack_error_t more_from_decoder(void *arg, uint8_t *buf, size_t have, size_t want,
				       struct kpackx_error *why)
{
	return decoder_fill(arg, buf + have, want - have, why);
}

/* List the entries, whose header is at the beginning of the decoded bytes. */
static kpack_error_t parse_ccob(const struct kp_source *src, struct kp_container *c,
				struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_source data;
	struct decoder *d = NULL;
	kpack_error_t err;
	struct ccob h;
	uint64_t end;

	KP_TRY(open_ccob(src, &h, &data, why));
	c->size = h.size;
	c->payload_size = h.decoded;
	KP_TRY(decoder_new(h.zstd, &data, h.decoded, false, &d, why));
	err = kp_bundle_list(more_from_decoder, d, h.decoded, c, list, &end, why);
	decoder_free(d);
	return err;
}

/*
 * A decoder that spills holds as many bytes as a frame may refer back to, 128 MiB for
 * those of compilers, so that such decoders work one after another, and in the same block.
 */
static pthread_mutex_t spilling_decoder = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *spill_block;
static size_t spill_room;

/*
 * Decode into memory, or into a file without a name if the payload is large: through memory for
 * all of it, if zstd would need as much for its window, because ours are huge pages.
 */
static kpack_error_t decode_all(const struct ccob *h, const struct kp_source *data,
				struct kp_payload *out, struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header frame;
	struct kp_span head;
	size_t size = (size_t)h->decoded, n;
	int fd = kp_spills(h->decoded) ? kp_spill_open() : -1;
	struct kp_outfile file = kp_spill_outfile(fd);
	bool whole = fd < 0 || (h->zstd && size <= WHOLE_MAX &&
				!kp_source_head(data, 0, buf, sizeof(buf), &head, NULL) &&
				kp_frame_header_read(head, &frame) && !frame.skippable &&
				frame.window >= size);
	size_t room = whole ? size : SPILL_SIZE;
	uint8_t *bytes = NULL;
	struct decoder *d = NULL;
	kpack_error_t err;

	if (fd >= 0) {
		out->spilled = true;
		out->source = kp_source_fd(fd, 0, size);
	}
	/* a block for all of a payload is not kept beside a window */
	if (fd >= 0 && (spill_room < room || (!whole && spill_room > room))) {
		free(spill_block);
		spill_block = kp_large_alloc(room);
		spill_room = spill_block ? room : 0;
	}
	bytes = fd >= 0 ? spill_block : kp_large_alloc(room);
	err = bytes ? decoder_new(h->zstd, data, size, whole, &d, why)
		    : kp_fail_memory(why, room, "a decoded bundle");
	for (uint64_t at = 0; !err && at < size; at += n) {
		n = size - at < room ? (size_t)(size - at) : room;
		err = decoder_fill(d, bytes, n, why);
		if (!err && fd >= 0)
			err = kp_outfile_pwrite(&file, at, bytes, n, why);
	}
	if (!err)
		err = decoder_finish(d, bytes, why);
	decoder_free(d);
	if (fd < 0) {
		out->heap = bytes;
		out->source = kp_source_memory(bytes, size);
	}
	if (err)
		kp_payload_fini(out);
	return err;
}

/* Read the whole header again: the file may have changed since it was listed. */
static kpack_error_t load_ccob(const struct kp_source *src, const struct kp_container *c,
			       kp_image_fault *fault, void *arg, struct kp_payload *out,
			       struct kpackx_error *why)
{
	struct kp_source data;
	kpack_error_t err;
	struct ccob h;

	(void)fault, (void)arg;
	KP_TRY(open_ccob(src, &h, &data, why));
	if (h.size != c->size || h.decoded != c->payload_size)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	if (!kp_spills(h.decoded))
		return decode_all(&h, &data, out, why);
	pthread_mutex_lock(&spilling_decoder);
	err = decode_all(&h, &data, out, why);
	pthread_mutex_unlock(&spilling_decoder);
	return err;
}

const struct kp_format kp_format_ccob = {
	.name = "ccob",
	.probe = probe_ccob,
	.parse = parse_ccob,
	.load = load_ccob,
};
