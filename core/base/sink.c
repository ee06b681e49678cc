/* SPDX-License-Identifier: MIT */
/*
 * What is composed once is written into a file, or given to a callback that hashes, compares or
 * sends it.  From file to file the kernel copies, and shares the blocks if the file system can.
 */
#include "sink.h"

#define STEP 65536

kpack_error_t kp_sink_put(struct kp_sink *sink, const void *data, size_t size,
			  struct kpackx_error *why)
{
	KP_TRY(sink->out ? kp_outfile_pwrite(sink->out, sink->size, data, size, why)
			 : sink->write(sink->arg, data, size, why));
	sink->size += size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_sink_fill(struct kp_sink *sink, uint8_t byte, uint64_t count,
			   struct kpackx_error *why)
{
	uint8_t buf[4096];
	size_t n;

	memset(buf, byte, count < sizeof(buf) ? (size_t)count : sizeof(buf));
	for (; count; count -= n) {
		n = count < sizeof(buf) ? (size_t)count : sizeof(buf);
		KP_TRY(kp_sink_put(sink, buf, n, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_sink_copy(struct kp_sink *sink, const struct kp_source *src,
			   struct kpackx_error *why)
{
	uint8_t buf[STEP];
	size_t n;

	if (src->fd < 0)
		return src->size ? kp_sink_put(sink, src->mem, (size_t)src->size, why)
				 : KPACK_SUCCESS;
	if (sink->out) {
		KP_TRY(kp_outfile_copy(sink->out, sink->size, src->fd, src->offset,
				       src->size, why));
		sink->size += src->size;
		return KPACK_SUCCESS;
	}
	for (uint64_t off = 0; off < src->size; off += n) {
		n = src->size - off < STEP ? (size_t)(src->size - off) : STEP;
		KP_TRY(kp_source_read(src, off, buf, n, why));
		KP_TRY(kp_sink_put(sink, buf, n, why));
	}
	return KPACK_SUCCESS;
}
