/* SPDX-License-Identifier: MIT */
/* Where bytes go, one after another: a file being written, or anything else. */
#ifndef KP_CORE_BASE_SINK_H
#define KP_CORE_BASE_SINK_H

#include "file.h"

struct kp_sink {
	struct kp_outfile *out; /* the file, or NULL: */
	kpack_error_t (*write)(void *arg, const void *data, size_t size,
			       struct kpackx_error *why);
	void *arg;
	uint64_t size; /* bytes so far; in OUT the next go there */
};

kpack_error_t kp_sink_put(struct kp_sink *sink, const void *data, size_t size,
			  struct kpackx_error *why);
kpack_error_t kp_sink_text(struct kp_sink *sink, const char *text,
			   struct kpackx_error *why);
/* COUNT bytes of the value BYTE. */
kpack_error_t kp_sink_fill(struct kp_sink *sink, uint8_t byte, uint64_t count,
			   struct kpackx_error *why);
/* All bytes of SRC; from file to file inside the kernel where it can. */
kpack_error_t kp_sink_copy(struct kp_sink *sink, const struct kp_source *src,
			   struct kpackx_error *why);

#endif
