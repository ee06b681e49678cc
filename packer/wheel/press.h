/* SPDX-License-Identifier: MIT */
/*
 * Hash and compress the members of an output wheel on several threads, in pieces, before
 * they are joined.  The deflated bytes are collected in one unnamed file.
 */
#ifndef PACKER_WHEEL_FILE_PRESS_H
#define PACKER_WHEEL_FILE_PRESS_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "packer/files/identity.h"
#include "wheel_in.h"

struct wheel_out_member {
	char *path;
	unsigned mode;
	uint64_t size;
	char *file;                  /* the file with its bytes; or */
	uint8_t *bytes;              /* its bytes; or */
	const struct wheel_in *from; /* the wheel whose MEMBER is copied */
	size_t member;
	struct file_identity identity; /* of FILE */
	uint8_t digest[32];
	/* Set by wheel_press_run: */
	bool deflated;
	uint32_t crc;
	uint64_t packed, packed_at; /* size and offset in COLLECTED */
};

struct wheel_press {
	struct wheel_out_member *members; /* borrowed */
	size_t first, count;
	unsigned threads;
	int level;
	struct kp_outfile *collected; /* gets deflated bytes from *END on */
	uint64_t *end;
	void (*progress)(void *arg, uint64_t bytes); /* may be NULL */
	void *arg;
};

/* True if PATH has the suffix of a compressed format, so that it is stored. */
bool wheel_press_stores(const char *path);

/*
 * Hash and compress the members [FIRST, COUNT), except for those copied from a wheel.  A
 * member that deflate does not make smaller is stored.
 * IO_ERROR also: a file was changed.  FILE_NOT_FOUND, OUT_OF_MEMORY.
 */
kpack_error_t wheel_press_run(const struct wheel_press *p, struct kpackx_error *why);

#endif
