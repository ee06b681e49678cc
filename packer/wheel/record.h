/* SPDX-License-Identifier: MIT */
/*
 * RECORD: a wheel's list of its members, one CSV line each: path, hash, size.
 *
 * Hashes are sha256, sha384 or sha512 in urlsafe base64 without padding.  Some real
 * wheels have hexadecimal SHA-256 instead; these hashes are read and counted, but never
 * written.
 */
#ifndef PACKER_WHEEL_METADATA_RECORD_H
#define PACKER_WHEEL_METADATA_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "core/base/span.h"
#include "packer/cli/digest.h"

/* Size limit of RECORD, which is held in memory: some 130 bytes per WHEEL_MEMBERS_MAX. */
#define RECORD_SIZE_MAX (256 << 20)

struct record_line {
	const char *path; /* NUL-terminated, in the text of the record */
	uint64_t size;
	bool has_size;
	bool hexadecimal; /* the digest was hexadecimal, not base64 */
	enum digest_kind kind;
	uint8_t digest[DIGEST_MAX];
};

struct record {
	char *text;                /* owned */
	struct record_line *lines; /* sorted bytewise by path */
	size_t count, cap;
	size_t n_hexadecimal;
};

/*
 * Parse RECORD's TEXT, which is copied.  The caller calls record_fini even after an
 * error.
 * INVALID_FORMAT, naming the line: not CSV of three columns; an unknown, weak or
 * malformed hash; a size that is not a number; a path that is not kp_path_ok; the same
 * path twice.
 */
kpack_error_t record_parse(struct kp_span text, struct record *out,
			   struct kpackx_error *why);
void record_fini(struct record *r); /* accepts a zeroed one */

/* The line of PATH, or NULL. */
const struct record_line *record_find(const struct record *r, const char *path);

/* A RECORD under construction.  Begins zeroed. */
struct record_text {
	char *text; /* owned */
	size_t size, cap;
};

/* Add a member, with its SHA-256. */
void record_text_add(struct record_text *t, const char *path, const uint8_t digest[32],
		     uint64_t size);
/* Add RECORD itself as the last line, without hash and size. */
void record_text_end(struct record_text *t, const char *path);
void record_text_fini(struct record_text *t);

#endif
