/* SPDX-License-Identifier: MIT */
/*
 * When may a part of an entry be given away?  No byte leaves an archive that one of its hashes
 * or checksums contradicts.  Our writer notes hashes of short pieces of the stored bytes, which
 * kp_source_read compares, so that any part can be decoded alone.  What other writers note - a
 * checksum at the end of a zstd frame, a hash of all decoded bytes - covers the whole entry:
 * that is decoded once before the first of its bytes is given away.
 */
#include <stdlib.h>
#include "core/base/bounds.h"
#include "frame_header.h"
#include "decode.h"

/*
 * Whether a checksum of a frame covers more than a part that is decoded alone; if in doubt, it
 * does.  A chunk is a frame with its own, or part of a frame.
 */
static bool has_checksums(const struct kpack_archive *a, size_t entry, uint64_t size,
			  bool chunked)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_source stored;
	struct kp_span head;

	if (kp_archive_source(a, entry, &stored, NULL) ||
	    kp_source_head(&stored, 0, buf, sizeof(buf), &head, NULL) ||
	    !kp_frame_header_read(head, &h))
		return true;
	return h.content == size ? h.checksum : !chunked;
}

bool kp_archive_has_parts(const struct kpack_archive *a, size_t entry)
{
	struct kp_decoding_facts facts;
	struct kp_entry_info info;

	if (kp_archive_has_hashes(a, entry) || kp_archive_is_checked(a, entry))
		return true;
	kp_archive_entry(a, entry, &info);
	facts = kp_archive_decoding_facts(a, entry);
	/* a block of a shared archive has a checksum of its own */
	if (facts.xxh3 || (!kp_archive_is_plain(a) && !kp_archive_shared(a) &&
			   has_checksums(a, entry, info.size, facts.chunk)))
		return false;
	kp_archive_set_checked(a, entry);
	return true;
}

static kpack_error_t decode_all(struct kp_decode *d, uint64_t unit, uint64_t size,
				struct kpackx_error *why)
{
	uint8_t *buf = malloc(unit + 1);
	kpack_error_t err = buf ? KPACK_SUCCESS : kp_fail_memory(why, unit, "decoding");

	for (uint64_t done = 0; !err && done < size;)
		err = kp_decode_next(d, buf, unit, &done, why);
	free(buf);
	return err;
}

kpack_error_t kp_archive_check_parts(const struct kpack_archive *a, size_t entry,
				     uint64_t most, struct kpackx_error *why)
{
	bool chunked = kp_archive_decoding_facts(a, entry).chunk, too_wide;
	struct kp_entry_info info;
	struct kp_decode *d;
	kpack_error_t err = KPACK_SUCCESS;

	if (kp_archive_has_parts(a, entry))
		return KPACK_SUCCESS;
	kp_archive_entry(a, entry, &info);
	KP_TRY(kp_archive_check_size(a, entry, why));
	KP_TRY(kp_decode_open(a, entry,
			      chunked || kp_archive_shared(a) ? KP_DECODE_UNITS
							      : KP_DECODE_PIECES,
			      &d, why));
	if (most < UINT64_C(1) << KP_WINDOW_LOG_MAX)
		err = kp_decode_limit_window(d, most, why);
	if (!err)
		err = decode_all(d,
				 chunked || kp_archive_shared(a) ? kp_decode_unit(d)
								 : KP_WHOLE_MAX,
				 info.size, why);
	too_wide = kp_decode_too_wide(d);
	kp_decode_close(d);
	if (!err)
		kp_archive_set_checked(a, entry); /* small ones, too */
	if (!too_wide || info.size > most)
		return err;
	/* the window is as wide as few entries are large: hold all of this one */
	KP_TRY(kp_decode_open(a, entry, KP_DECODE_WHOLE, &d, why));
	err = decode_all(d, info.size, info.size, why);
	kp_decode_close(d);
	return err;
}

kpack_error_t kp_archive_check_stored(const struct kpack_archive *a, uint32_t ordinal,
				      struct kpackx_error *why)
{
	struct kp_source s;
	kpack_error_t err;
	uint8_t *buf;

	KP_TRY(kp_archive_ordinal_source(a, ordinal, &s, why));
	if (!s.hashes)
		return KPACK_SUCCESS;
	buf = malloc(KP_PIECE);
	err = buf ? KPACK_SUCCESS : kp_fail_memory(why, KP_PIECE, "reading");
	for (uint64_t at = 0; !err && at < s.size; at += KP_PIECE) {
		uint64_t left = s.size - at;

		err = kp_source_read(&s, at, buf,
				     left < KP_PIECE ? (size_t)left : KP_PIECE, why);
	}
	free(buf);
	return err;
}
