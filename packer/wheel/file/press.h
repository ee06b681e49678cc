/* SPDX-License-Identifier: MIT */
/*
 * Members of a wheel that is written: hashed and compressed on several threads, in pieces,
 * before libzip puts them together.  What is deflated is collected in one nameless file.
 */
#ifndef PACKER_WHEEL_FILE_PRESS_H
#define PACKER_WHEEL_FILE_PRESS_H

#include <stdbool.h>
#include <time.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "in.h"

struct wheel_out_member {
	char *path;
	unsigned mode;
	uint64_t size;
	char *file;                  /* its bytes stand in that file; or */
	uint8_t *bytes;              /* they are these; or */
	const struct wheel_in *from; /* they are that wheel's member's */
	size_t member;
	struct timespec changed; /* of the file */
	uint8_t digest[32];
	/* Found while pressing. */
	bool deflated;
	uint32_t crc;
	uint64_t packed, packed_at; /* deflated bytes in the collection */
};

struct wheel_press {
	struct wheel_out_member *members; /* borrowed; none is copied from a wheel */
	size_t first, count;
	unsigned threads;
	int level;
	struct kp_outfile *collected; /* where deflated bytes are written, from *END on */
	uint64_t *end;
	void (*progress)(void *arg, uint64_t bytes); /* NULL is fine */
	void *arg;
};

/* Is what PATH names compressed already? */
bool wheel_press_stores(const char *path);

/*
 * Hash and compress members [FIRST, COUNT) that are not copied.  A member that deflate does
 * not make smaller is stored.
 * INVALID_ARGUMENT: a file has changed.  FILE_NOT_FOUND, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t wheel_press_run(const struct wheel_press *p, struct kpackx_error *why);

#endif
