/* SPDX-License-Identifier: MIT */
/* Write a zip archive, front to back. */
#ifndef PACKER_WHEEL_ZIP_WRITE_H
#define PACKER_WHEEL_ZIP_WRITE_H

#include "zip_central.h"
#include "core/base/sink.h"
#include "zip_time.h"

struct zip_writer {
	struct kp_sink sink;
	struct dos_time time; /* of all members */
	uint8_t *directory;   /* owned */
	size_t size, cap;
	uint64_t count;
	bool zip64; /* a member needs it */
};

struct zip_member {
	const char *path;
	unsigned mode;
	uint16_t method;
	uint16_t flags; /* ZIP_DATA */
	bool text;
	uint32_t crc;
	uint64_t size;
	struct kp_source bytes; /* as stored in the archive */
};

/* Begin with a zeroed writer that has a sink and a time. */
kpack_error_t zip_put_member(struct zip_writer *w, const struct zip_member *m,
			     struct kpackx_error *why);
/* Write the directory. */
kpack_error_t zip_put_end(struct zip_writer *w, struct kpackx_error *why);
void zip_writer_fini(struct zip_writer *w);

#endif
