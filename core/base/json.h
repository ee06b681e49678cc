/* SPDX-License-Identifier: MIT */
/*
 * JSON from MessagePack, in bounded memory.  We use no JSON library: it is optional in
 * the build, and none keeps integers beyond 63 bits and NUL bytes.
 *
 * The result is always valid JSON in UTF-8, whatever the input bytes are:
 *   str      string; what is not kp_text_visible as \uXXXX, invalid UTF-8 as U+FFFD
 *   bin      string of lower-case hexadecimal digits
 *   ext      {"ext":TYPE,"data":"hexadecimal digits"}
 *   integer  exact
 *   float    17 digits, always with a point or an exponent; NaN and infinities null
 *   map      object; a key that is not a string becomes a string of its JSON text.  The
 *            first of equal keys counts, as everywhere in an entry.
 */
#ifndef KP_CORE_BASE_JSON_H
#define KP_CORE_BASE_JSON_H

#include "errors.h"
#include "msgpack_read.h"
#include "slots.h"

struct kp_json_key;

/* Text being composed; begins as {.limit = ...}.  Sticky: after a fault nothing more is added. */
struct kp_json {
	size_t limit; /* most bytes to write, including dropped equal keys; below 4 GiB */
	size_t written; /* bytes, including keys that were removed again */
	char *text;     /* owned */
	size_t size, cap;
	kpack_error_t fault;
	unsigned quotes; /* enclosing keys that are not strings */
	unsigned depth;  /* of maps and arrays */
	uint32_t maps;   /* maps begun so far */
	struct kp_json_key *keys;
	size_t n_keys, keys_cap;
	struct kp_slots key_slots; /* of the keys */
};

void kp_json_fini(struct kp_json *j);

/* Write C as an escape of JSON: \uXXXX, or two of them. */
enum { KP_JSON_ESCAPE_MAX = 13 };
void kp_json_escape(uint32_t c, char out[KP_JSON_ESCAPE_MAX]);

/* Write JSON's own characters, and numbers: less than 128 bytes. */
void kp_json_print(struct kp_json *j, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void kp_json_string(struct kp_json *j, struct kp_span s);
/* Write the value at the cursor, and move the cursor past it. */
void kp_json_value(struct kp_json *j, struct kp_mp *c);

/*
 * The finished text, borrowed until kp_json_fini.
 * OUT_OF_MEMORY, also when the limit was reached; MSGPACK_PARSE_FAILED.
 */
kpack_error_t kp_json_finish(const struct kp_json *j, struct kp_span *text,
			     struct kpackx_error *why);

#endif
