/* SPDX-License-Identifier: MIT */
/*
 * RECORD: what a wheel says of its members, a line of CSV for each: path, hash, size.
 *
 * Hashes are sha256, sha384 or sha512 in urlsafe base64 without padding.  Wheels in the field
 * have hexadecimal SHA-256 instead; those are read and counted, never written.
 */
#ifndef PACKER_WHEEL_METADATA_RECORD_H
#define PACKER_WHEEL_METADATA_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "record_hash.h"
#include "core/base/span.h"

/* Bytes of RECORD, which is held whole: some 130 for each of WHEEL_MEMBERS_MAX. */
#define RECORD_SIZE_MAX (256 << 20)

struct record_line {
	const char *path; /* NUL-terminated, in the text of the record */
	uint64_t size;
	bool has_size;
	bool hexadecimal; /* the digest was written so */
	enum record_kind kind;
	uint8_t digest[RECORD_DIGEST_MAX];
};

struct record {
	char *text;                /* owned */
	struct record_line *lines; /* sorted bytewise by path */
	size_t count, cap;
	size_t n_hexadecimal;
};

/*
 * Read RECORD's text, which is copied.  INVALID_FORMAT: no CSV of three columns, a hash that
 * is unknown, weak or no such text, a size that is no number, a path that is not kp_path_ok,
 * the same path twice; the text names the line.  Freed by record_fini in any case.
 */
kpack_error_t record_parse(struct kp_span text, struct record *out,
			   struct kpackx_error *why);
void record_fini(struct record *r); /* a zeroed one is fine */

/* The line of PATH; NULL: there is none. */
const struct record_line *record_find(const struct record *r, const char *path);

/* RECORD being written.  Begins zeroed. */
struct record_text {
	char *text; /* owned */
	size_t size, cap;
};

/* Add a member, with its SHA-256. */
kpack_error_t record_text_add(struct record_text *t, const char *path,
			      const uint8_t digest[32], uint64_t size,
			      struct kpackx_error *why);
/* Add RECORD itself, last: no hash, no size. */
kpack_error_t record_text_end(struct record_text *t, const char *path,
			      struct kpackx_error *why);
void record_text_fini(struct record_text *t);

#endif
