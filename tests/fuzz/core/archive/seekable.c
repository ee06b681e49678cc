/* SPDX-License-Identifier: MIT */
/* Seek tables of chunks of 4 KiB, and the chunks; and frames that are decoded in memory. */
#include "core/archive/chunks.h"
#include "core/archive/frames.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHUNK = 4096, CHUNKS_MAX = 256 };

/* The decoded bytes that the table at the end states, if all but its last part are full. */
static uint64_t stated_size(const uint8_t *data, size_t size)
{
	uint32_t n = size < KP_SEEK_FOOT ? 0 : kp_le32(data + size - KP_SEEK_FOOT);
	size_t row = size < 5 ? 8 : data[size - 5] & KP_SEEK_SUMS ? 12 : 8;

	if (!n || n > CHUNKS_MAX || size < row + KP_SEEK_FOOT)
		return 0;
	return (uint64_t)(n - 1) * CHUNK + kp_le32(data + size - KP_SEEK_FOOT - row + 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source source = kp_source_memory(data, size);
	uint64_t stated = stated_size(data, size);
	static uint8_t buf[CHUNK];
	struct kp_chunks c;

	if (kp_chunks_open(&c, &source, CHUNK, stated, NULL) == KPACK_SUCCESS) {
		assert(c.n && c.offsets[c.n] <= size);
		for (uint32_t k = 0; k < c.n; k++)
			(void)kp_chunks_read(&c, k, buf, NULL);
	}
	kp_chunks_fini(&c);
	if (kp_zstd_content_size((struct kp_span){data, size}, &stated) &&
	    stated < 1 << 20) {
		uint8_t *out = malloc((size_t)stated + 1);

		assert(out);
		(void)kp_zstd_decode((struct kp_span){data, size}, out, (size_t)stated,
				     NULL);
		free(out);
	}
	return 0;
}
