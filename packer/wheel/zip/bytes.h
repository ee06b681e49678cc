/* SPDX-License-Identifier: MIT */
/* A run of bytes, or a file, as a source of libzip's. */
#ifndef PACKER_WHEEL_ZIP_BYTES_H
#define PACKER_WHEEL_ZIP_BYTES_H

#include <zip.h>
#include "core/base/errors.h"
#include "core/base/file.h"

struct zip_bytes {
	struct kp_source
		src;      /* FILE is NULL: the bytes, whose owner outlives the source */
	const char *file; /* borrowed; opened while it is read */
	uint64_t size;    /* of the bytes; what FILE has besides is an error */
	/* For a compressed member: its CRC. Else 0, and libzip computes the CRC. */
	bool deflated;
	uint64_t decoded;
	uint32_t crc;
	size_t buffer;            /* bytes that are read at once */
	struct kpackx_error *why; /* gets the reason of a failure; may be NULL */
};

/* NULL, and ERROR says why.  It belongs to the archive it is given to. */
zip_source_t *zip_bytes_new(const struct zip_bytes *bytes, zip_error_t *error);

#endif
