/* SPDX-License-Identifier: MIT */
/*
 * A text that grows by single bytes, and knows how many strings enclose the place that it is at:
 * a key that is not a string is written as a string of its JSON text, in which quotes and
 * backslashes are escaped once more for each enclosing key.  So a few bytes of nested keys can
 * become very long, and the limit also counts keys that were taken back because they are equal to
 * an earlier key of their map.
 *
 * All keys of all maps are in one hash table, by the number of their map and their text: a map may
 * have a hundred thousand keys, which nobody may compare pair by pair.
 */
#include "json.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "bounds.h"
#include "alloc.h"
#include "text.h"
#include "hash.h"

/* A written key. */
struct kp_json_key {
	uint32_t map;      /* number of its map */
	uint32_t at, size; /* its text in the output */
	uint32_t hash;
};

void kp_json_fini(struct kp_json *j)
{
	free(j->text);
	free(j->keys);
	free(j->key_slots.slots);
	*j = (struct kp_json){0};
}

/* Append C inside QUOTES nested strings, each of which escapes its content. */
static void put_quoted(struct kp_json *j, char c, unsigned quotes)
{
	if (j->fault)
		return;
	if (quotes && (c == '"' || c == '\\')) {
		put_quoted(j, '\\', quotes - 1);
		put_quoted(j, c, quotes - 1);
	} else if (j->written == j->limit || !kp_grow(&j->text, j->size, &j->cap, 1)) {
		j->fault = KPACK_ERROR_OUT_OF_MEMORY;
	} else {
		j->text[j->size++] = c;
		j->written++;
	}
}

static void put_char(struct kp_json *j, char c)
{
	put_quoted(j, c, j->quotes);
}

void kp_json_print(struct kp_json *j, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (const char *p = text; *p; p++)
		put_char(j, *p);
}

/* --- values ----------------------------------------------------------------------- */

void kp_json_escape(uint32_t c, char out[KP_JSON_ESCAPE_MAX])
{
	if (c < 0x10000)
		snprintf(out, KP_JSON_ESCAPE_MAX, "\\u%04x", (unsigned)c);
	else
		snprintf(out, KP_JSON_ESCAPE_MAX, "\\u%04x\\u%04x",
			 (0xd7c0 + (unsigned)(c >> 10)) & 0xffff,
			 0xdc00 + (unsigned)(c & 0x3ff));
}

void kp_json_string(struct kp_json *j, struct kp_span s)
{
	char escape[KP_JSON_ESCAPE_MAX];

	put_char(j, '"');
	for (size_t i = 0, n; i < s.size && !j->fault; i += n) {
		uint32_t c = 0;

		n = kp_text_char((struct kp_span){s.data + i, s.size - i}, &c);
		if (n == 0) {
			kp_json_print(j, "\xef\xbf\xbd"); /* U+FFFD for an invalid byte */
			n = 1;
		} else if (!kp_text_visible(c)) {
			kp_json_escape(c, escape);
			kp_json_print(j, "%s", escape);
		} else {
			if (c == '"' || c == '\\')
				put_char(j, '\\');
			for (size_t k = 0; k < n; k++)
				put_char(j, (char)s.data[i + k]);
		}
	}
	put_char(j, '"');
}

static void put_hex(struct kp_json *j, struct kp_span s)
{
	static const char digits[] = "0123456789abcdef";

	put_char(j, '"');
	for (size_t i = 0; i < s.size && !j->fault; i++) {
		put_char(j, digits[s.data[i] >> 4]);
		put_char(j, digits[s.data[i] & 15]);
	}
	put_char(j, '"');
}

/* Write '.' for the locale's decimal point, which can have several bytes. */
static void put_float(struct kp_json *j, double real)
{
	char text[64];
	bool point = false;

	if (!isfinite(real)) {
		kp_json_print(j, "null");
		return;
	}
	/* 17 digits tell any two numbers apart; without a point it would be read as an integer */
	snprintf(text, sizeof(text), "%.17g", real);
	for (const char *p = text; *p; p++) {
		bool digit = strchr("0123456789+-e", *p) != NULL;

		if (digit || !point)
			put_char(j, digit ? *p : '.');
		point |= !digit || *p == 'e';
	}
	if (!point)
		kp_json_print(j, ".0");
}

/* --- maps ------------------------------------------------------------------------- */

static uint64_t hash_key(const void *arg, uint32_t number)
{
	const struct kp_json *j = arg;

	return j->keys[number].hash;
}

/* Whether the key from AT to the end of the text is new in map number MAP; adds it. */
static bool is_new_key(struct kp_json *j, uint32_t map, size_t at)
{
	struct kp_json_key key = {map, (uint32_t)at, (uint32_t)(j->size - at), 0};
	uint32_t *slot;

	if (!kp_slots_grow(&j->key_slots, hash_key, j) ||
	    !kp_grow(&j->keys, j->n_keys, &j->keys_cap, sizeof(key))) {
		j->fault = KPACK_ERROR_OUT_OF_MEMORY;
		return false;
	}
	/* the map is in the hash, too: many maps have the same keys */
	key.hash = (uint32_t)kp_slot_hash(j->text + at, key.size, map);
	slot = kp_slots_first(&j->key_slots, key.hash);
	for (; *slot; slot = kp_slots_next(&j->key_slots, slot)) {
		const struct kp_json_key *k = &j->keys[*slot - 1];

		if (k->map == map && k->hash == key.hash && k->size == key.size &&
		    memcmp(j->text + k->at, j->text + at, key.size) == 0)
			return false;
	}
	kp_slots_put(&j->key_slots, slot, (uint32_t)j->n_keys);
	j->keys[j->n_keys++] = key;
	return true;
}

/*
 * Write a map.  Whether a key is new shows only when its text is there: until then it is written
 * after the others, and is cut off again with its comma.
 */
static void put_map(struct kp_json *j, struct kp_mp *c, uint64_t pairs)
{
	uint32_t map = ++j->maps;
	bool first = true;

	put_char(j, '{');
	for (; pairs && !j->fault; pairs--) {
		bool quoted = kp_mp_peek(c) != KP_MP_STR;
		size_t before = j->size, at;

		if (!first)
			put_char(j, ',');
		at = j->size;
		if (quoted)
			put_char(j, '"');
		j->quotes += quoted;
		kp_json_value(j, c);
		j->quotes -= quoted;
		if (quoted)
			put_char(j, '"');
		if (j->fault)
			return;
		if (!is_new_key(j, map, at)) {
			j->size = before;
			if (!kp_mp_skip(c) && !j->fault)
				j->fault = KPACK_ERROR_MSGPACK_PARSE_FAILED;
			continue;
		}
		put_char(j, ':');
		kp_json_value(j, c);
		first = false;
	}
	put_char(j, '}');
}

void kp_json_value(struct kp_json *j, struct kp_mp *c)
{
	struct kp_mp_value v;

	/* a value is written while it is read: nobody has skipped it, and found it too deep, before */
	if (!kp_mp_next(c, &v) || (j->depth > KP_MSGPACK_DEPTH_MAX &&
				   (v.type == KP_MP_ARRAY || v.type == KP_MP_MAP))) {
		if (!j->fault)
			j->fault = KPACK_ERROR_MSGPACK_PARSE_FAILED;
		return;
	}
	switch (v.type) {
	case KP_MP_BOOL:
		kp_json_print(j, "%s", v.num ? "true" : "false");
		break;
	case KP_MP_UINT:
		kp_json_print(j, "%" PRIu64, v.num);
		break;
	case KP_MP_INT:
		kp_json_print(j, "%" PRId64, (int64_t)v.num);
		break;
	case KP_MP_FLOAT:
		put_float(j, v.real);
		break;
	case KP_MP_STR:
		kp_json_string(j, v.span);
		break;
	case KP_MP_BIN:
		put_hex(j, v.span);
		break;
	case KP_MP_EXT:
		kp_json_print(j, "{\"ext\":%d,\"data\":", (int8_t)v.span.data[0]);
		put_hex(j, kp_span_tail(v.span, 1));
		put_char(j, '}');
		break;
	case KP_MP_ARRAY:
		j->depth++;
		put_char(j, '[');
		for (uint64_t i = 0; i < v.num && !j->fault; i++) {
			if (i)
				put_char(j, ',');
			kp_json_value(j, c);
		}
		put_char(j, ']');
		j->depth--;
		break;
	case KP_MP_MAP:
		j->depth++;
		put_map(j, c, v.num);
		j->depth--;
		break;
	default:
		kp_json_print(j, "null");
	}
}

kpack_error_t kp_json_finish(const struct kp_json *j, struct kp_span *text,
			     struct kpackx_error *why)
{
	if (j->fault == KPACK_ERROR_MSGPACK_PARSE_FAILED)
		return kp_fail(why, j->fault, "json: not MessagePack, or too deep");
	if (j->fault && j->written == j->limit)
		return kp_fail(why, j->fault, "json: more than %zu bytes", j->limit);
	if (j->fault)
		return kp_fail_memory(why, j->size, "json");
	*text = (struct kp_span){(const uint8_t *)j->text, j->size};
	return KPACK_SUCCESS;
}
