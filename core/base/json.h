/* SPDX-License-Identifier: MIT */
/*
 * JSON from MessagePack, in bounded memory.  Written by hand: a JSON library is optional
 * in the build, and none represents integers beyond 63 bits and NUL bytes as they are.
 *
 * The result is always valid JSON in UTF-8, whatever the bytes are:
 *   str      string; control characters as \u00XX, invalid UTF-8 as U+FFFD
 *   bin      string of lower-case hexadecimal digits
 *   ext      {"ext":TYPE,"data":"hexadecimal digits"}
 *   integer  exact
 *   float    17 digits, always with a point or an exponent; NaN and infinities null
 *   map      object; keys that are no strings become strings of their JSON text.  Of keys
 *            that are then equal the first counts, as everywhere in an entry.
 */
#ifndef KP_CORE_BASE_JSON_H
#define KP_CORE_BASE_JSON_H

#include "errors.h"
#include "msgpack_read.h"

/* A key that was written. */
struct kp_json_key {
	uint32_t map;      /* number of its map, from 1; 0: this place is free */
	uint32_t at, size; /* its text in the output */
	uint32_t hash;
};

/* Text being made.  Sticky: after a fault nothing is added any more. */
struct kp_json {
	char *text; /* owned */
	size_t size, cap;
	size_t written, limit; /* bytes, including keys that were taken back */
	kpack_error_t fault;
	unsigned quotes;          /* keys around the text that are no strings */
	unsigned depth;           /* of maps and arrays */
	uint32_t maps;            /* begun so far */
	struct kp_json_key *keys; /* by hash, a power of two of places */
	size_t n_keys, keys_cap;
};

/* LIMIT: bytes that are written at most, equal keys included; below 4 GiB. */
void kp_json_init(struct kp_json *j, size_t limit);
void kp_json_fini(struct kp_json *j);

void kp_json_raw(struct kp_json *j, const char *text); /* as it is */
void kp_json_string(struct kp_json *j, struct kp_span s);
void kp_json_uint(struct kp_json *j, uint64_t n);
/* The value at the cursor, which moves behind it. */
void kp_json_value(struct kp_json *j, struct kp_mp *c);

/*
 * The finished text, which stays until kp_json_fini.
 * OUT_OF_MEMORY, also when the limit was reached; MSGPACK_PARSE_FAILED.
 */
kpack_error_t kp_json_finish(const struct kp_json *j, struct kp_span *text,
			     struct kpackx_error *why);

#endif
