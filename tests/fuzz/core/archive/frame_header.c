/* SPDX-License-Identifier: MIT */
/*
 * Our reading of frames against zstd's: the header, the decoded size, the end.
 */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_getFrameHeader */
#include "core/archive/frames.h"
#include <assert.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source source = kp_source_memory(data, size);
	size_t end = ZSTD_findFrameCompressedSize(data, size);
	struct kp_frame_header h;
	ZSTD_frameHeader z;
	struct kp_window w;
	uint64_t frame;
	bool read = kp_frame_header_read((struct kp_span){data, size}, &h);

	if (!read) {
		assert(ZSTD_getFrameHeader(&z, data, size) != 0);
		return 0;
	}
	assert(ZSTD_getFrameHeader(&z, data, size) == 0);
	assert(h.skippable == (z.frameType == ZSTD_skippableFrame));
	assert(h.skippable || (h.size == z.headerSize && h.window == z.windowSize &&
			       h.dictionary == z.dictID && h.checksum == z.checksumFlag));
	assert((h.skippable ? h.skip : h.content) == z.frameContentSize);
	assert(h.content == ZSTD_getFrameContentSize(data, size));
	/* zstd also refuses reserved types of blocks and what is cut short */
	kp_window_init(&w, &source);
	if (!ZSTD_isError(end))
		assert(!kp_frame_measure(&w, 0, &h, &frame, NULL) && frame == end);
	else if (!kp_frame_measure(&w, 0, &h, &frame, NULL))
		assert(frame > h.size || h.skippable);
	return 0;
}
