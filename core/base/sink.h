/* SPDX-License-Identifier: MIT */
/* A sequential output for bytes: a file being written, or a callback. */
#ifndef KP_CORE_BASE_SINK_H
#define KP_CORE_BASE_SINK_H

#include "file.h"

struct kp_sink {
	struct kp_outfile *out; /* the file; NULL: call `write` */
	kpack_error_t (*write)(void *arg, const void *data, size_t size,
			       struct kpackx_error *why);
	void *arg;
	uint64_t size; /* bytes so far; offset of the next byte in OUT */
};

kpack_error_t kp_sink_put(struct kp_sink *sink, const void *data, size_t size,
			  struct kpackx_error *why);
/* Write COUNT bytes of the value BYTE. */
kpack_error_t kp_sink_fill(struct kp_sink *sink, uint8_t byte, uint64_t count,
			   struct kpackx_error *why);
/* Write all bytes of SRC; from file to file inside the kernel if it can. */
kpack_error_t kp_sink_copy(struct kp_sink *sink, const struct kp_source *src,
			   struct kpackx_error *why);

#endif
