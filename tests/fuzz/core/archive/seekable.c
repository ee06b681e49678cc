/* SPDX-License-Identifier: MIT */
/*
 * Seek tables, and both sources of a frame index: walking the frames and a stored index.
 */
#include "core/archive/codec.h"
#include "core/base/bounds.h"
#include "core/archive/seekable.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source source = kp_source_memory(data, size);
	struct kp_seek_row *rows = NULL;
	struct kpackx_error why = {0};
	uint64_t sum = 0, stated;
	uint8_t *index;
	uint32_t n;

	if (kp_seek_table_read(&source, &rows, &n, &why) == KPACK_SUCCESS) {
		for (uint32_t i = 0; i < n; i++)
			sum += rows[i].stored;
		assert(sum + 8 * (uint64_t)n + 17 <= size);
		free(rows);
	}
	if (kp_frame_index_walk(&source, &index, &n, &why) == KPACK_SUCCESS) {
		uint64_t end = kp_frame_at(index, n);
		uint32_t count;

		assert(n <= KP_FRAMES_MAX && end <= size);
		assert(kp_frame_index_check((struct kp_span){index, 8 * ((size_t)n + 1)},
					    end, &count, &why) == KPACK_SUCCESS &&
		       count == n);
		free(index);
	}
	(void)kp_frame_index_check((struct kp_span){data, size}, size, &n, &why);
	if (kp_zstd_content_size((struct kp_span){data, size}, &stated) &&
	    stated < 1 << 20) {
		uint8_t *buf = malloc((size_t)stated + 1);

		assert(buf);
		(void)kp_zstd_decode((struct kp_span){data, size}, buf, (size_t)stated,
				     &why);
		free(buf);
	}
	return 0;
}
