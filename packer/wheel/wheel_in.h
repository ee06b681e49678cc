/* SPDX-License-Identifier: MIT */
/*
 * Read a wheel: its members, which are all checked before any is decoded, and their
 * bytes.
 *
 * Wheels are refused (INVALID_FORMAT; the error names the member) that have names that
 * are not kp_path_ok, duplicate members, members below a member that is a file, links or
 * special files, encrypted members, methods other than stored and deflated, more bytes
 * than the limits allow, overlapping members, or several disks.
 */
#ifndef PACKER_WHEEL_FILE_IN_H
#define PACKER_WHEEL_FILE_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* A torch wheel has 15,000 members; a ROCm one with all kernel files some 100,000. */
#define WHEEL_MEMBERS_MAX 1000000

/* Decoded bytes of a whole wheel: all of ROCm has 30 GB. */
#define WHEEL_SIZE_MAX (UINT64_C(128) << 30)

/*
 * Decoded bytes per byte of the whole file.  Single members of zeros reach deflate's
 * 1032; fat libraries padded with zeros reach 20.  Wheels with fewer decoded bytes than
 * the second limit are harmless, and their ratio is not checked.
 */
#define WHEEL_RATIO_MAX 100
#define WHEEL_RATIO_FREE (UINT64_C(256) << 20)

struct wheel_member {
	const char *path;    /* kp_path_ok; a directory's has no final slash */
	uint64_t size;       /* decoded */
	uint64_t compressed; /* in the wheel */
	uint32_t crc;
	uint16_t method; /* 0 stored, 8 deflated */
	uint16_t mode;   /* permission bits; 0644 or 0755 if the wheel has none */
	bool directory;
	/* For copies: flags and an attribute that describe the bytes in the wheel. */
	uint16_t flags;
	bool text;
	uint64_t at; /* of its bytes in the wheel */
};

struct wheel_in;

/* Open PATH.  FILE_NOT_FOUND, IO_ERROR, INVALID_FORMAT, OUT_OF_MEMORY. */
kpack_error_t wheel_in_open(const char *path, struct wheel_in **out,
			    struct kpackx_error *why);
void wheel_in_close(struct wheel_in *w); /* accepts NULL */

/* All bytes of the file. */
struct kp_source wheel_in_source(const struct wheel_in *w);

/* The members in the order of the central directory, valid until the wheel is closed. */
const struct wheel_member *wheel_in_members(const struct wheel_in *w, size_t *count);

/* The bytes of a member as they are in the wheel. */
struct kp_source wheel_in_bytes(const struct wheel_in *w, size_t member);

/* Find the index of the member PATH; false: it does not exist. */
bool wheel_in_find(const struct wheel_in *w, const char *path, size_t *member);

/* A reader of members for one thread.  The wheel outlives it; the caller frees *OUT. */
struct wheel_reader;

kpack_error_t wheel_reader_new(const struct wheel_in *w, struct wheel_reader **out,
			       struct kpackx_error *why);
void wheel_reader_free(struct wheel_reader *r); /* accepts NULL */

/* Gets the next bytes of a member; an error ends the reading and is returned. */
typedef kpack_error_t wheel_take(void *arg, struct kp_span data,
				 struct kpackx_error *why);

/*
 * Decode a member, piece by piece.  INVALID_FORMAT: it does not decode, has more or fewer
 * bytes than declared, or another CRC; TAKE may already have been called by then.
 */
kpack_error_t wheel_reader_read(struct wheel_reader *r, size_t member, wheel_take *take,
				void *arg, struct kpackx_error *why);

/*
 * Read a member into memory, and append a NUL.  The caller frees *TEXT.
 * INVALID_FORMAT: it has more than MAX bytes.
 */
kpack_error_t wheel_reader_text(struct wheel_reader *r, size_t member, size_t max,
				char **text, size_t *size, struct kpackx_error *why);

#endif
