/* SPDX-License-Identifier: MIT */
/* A libzip source that reads a run of bytes or a file. */
#ifndef PACKER_WHEEL_ZIP_BYTES_H
#define PACKER_WHEEL_ZIP_BYTES_H

#include <zip.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "packer/files/identity.h"

struct zip_bytes {
	struct kp_source src; /* if FILE is NULL: the bytes; they outlive the source */
	const char *file;     /* borrowed; open only while it is read */
	const struct file_identity *identity; /* of FILE; borrowed */
	uint64_t size;                        /* of the bytes */
	/*
	 * For a compressed member, also its decoded size and CRC; else libzip computes
	 * the CRC.
	 */
	bool deflated;
	uint64_t decoded;
	uint32_t crc;
	size_t buffer;            /* size of one read in bytes */
	struct kpackx_error *why; /* gets the reason of a failure; may be NULL */
};

/*
 * Returns NULL on failure, and ERROR says why.  The archive that gets the source owns it.
 */
zip_source_t *zip_bytes_new(const struct zip_bytes *bytes, zip_error_t *error);

#endif
