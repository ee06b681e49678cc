/* SPDX-License-Identifier: MIT */
/* Checking the size of an entry before memory of that size is allocated. */
#include <stdlib.h>
#include "archive.h"
#include "frame_header.h"
#include "codec.h"

static kpack_error_t compare_sizes(uint64_t stated, uint64_t size,
				   struct kpackx_error *why)
{
	if (stated == size)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame decodes to %llu bytes instead of %llu",
		       (unsigned long long)stated, (unsigned long long)size);
}

/* There are several frames, or the size is false: add up the headers of all frames. */
static kpack_error_t check_frames(const struct kp_source *stored, uint64_t size,
				  struct kpackx_error *why)
{
	struct kp_frame_header h;
	uint64_t sum = 0, frame;
	struct kp_window w;

	kp_window_init(&w, stored);
	for (uint64_t at = 0; at < stored->size; at += frame) {
		kpack_error_t err = kp_frame_measure(&w, at, &h, &frame, why);

		if (err == KPACK_ERROR_IO_ERROR)
			return err;
		if (err || frame > stored->size - at)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "frame: corrupt, or cut short");
		if (h.skippable)
			continue;
		if (h.content == KP_FRAME_SIZE_UNKNOWN)
			return KPACK_SUCCESS; /* decoding will find out */
		if (h.content > UINT64_MAX - sum)
			sum = UINT64_MAX;
		else
			sum += h.content;
	}
	return compare_sizes(sum, size, why);
}

/* Whether the entry has a valid seek table; opening checks the table against the size. */
static bool has_chunks(const struct kpack_archive *a, size_t entry)
{
	struct kp_chunks *c;

	if (!kp_archive_decoding_facts(a, entry).chunk ||
	    kp_chunks_open(a, entry, &c, NULL) != KPACK_SUCCESS)
		return false;
	kp_chunks_close(c);
	return true;
}

kpack_error_t kp_archive_check_size(const struct kpack_archive *a, size_t entry,
				    struct kpackx_error *why)
{
	uint8_t head[KP_FRAME_HEADER_MAX];
	struct kp_entry_info info;
	struct kp_frame_header first;
	struct kp_source stored;
	size_t n;

	kp_archive_entry(a, entry, &info);
	if (kp_archive_is_plain(a) || kp_archive_shared(a))
		return KPACK_SUCCESS; /* opening the archive compared the sizes */
	KP_TRY(kp_archive_source(a, entry, &stored, why));
	n = stored.size < sizeof(head) ? (size_t)stored.size : sizeof(head);
	KP_TRY(kp_source_read(&stored, 0, head, n, why));
	if (!kp_frame_header_read((struct kp_span){head, n}, &first) ||
	    first.content == KP_FRAME_SIZE_UNKNOWN)
		return KPACK_SUCCESS; /* decoding will find out */
	if (first.skippable || (first.content < info.size && !has_chunks(a, entry)))
		return check_frames(&stored, info.size, why);
	return first.content < info.size ? KPACK_SUCCESS
					 : compare_sizes(first.content, info.size, why);
}
