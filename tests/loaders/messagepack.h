/* SPDX-License-Identifier: MIT */
/* MessagePack as a tree of values; supports only what the libraries' files need. */
#ifndef MESSAGEPACK_H
#define MESSAGEPACK_H

#include "loader.h"

enum value_kind { NOTHING, NUMBER, TEXT, ARRAY, MAP };

struct value {
	enum value_kind kind;
	uint64_t n;          /* the number, or the count of bytes, items or pairs */
	const char *text;    /* for TEXT and bin */
	struct value *items; /* in a map: key, value, key, value ... */
};

struct unpacker {
	const uint8_t *p, *end;
	int depth;
};

static inline uint64_t take(struct unpacker *u, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(u->end - u->p) < n)
		die("MessagePack ends early");
	while (n--)
		v = v << 8 | *u->p++;
	return v;
}

static inline struct value unpack(struct unpacker *u);

static inline struct value take_text(struct unpacker *u, uint64_t n)
{
	struct value v = {.kind = TEXT, .n = n, .text = (const char *)u->p};

	if ((uint64_t)(u->end - u->p) < n)
		die("MessagePack: text of %ju bytes ends early", (uintmax_t)n);
	u->p += n;
	return v;
}

static inline struct value take_items(struct unpacker *u, enum value_kind kind,
				      uint64_t n)
{
	struct value v = {.kind = kind, .n = n};
	uint64_t items = kind == MAP ? 2 * n : n;

	if ((uint64_t)(u->end - u->p) < items || ++u->depth > 64)
		die("MessagePack: %ju items are too many, or too deep", (uintmax_t)items);
	v.items = grow(NULL, items * sizeof(v));
	for (uint64_t i = 0; i < items; i++)
		v.items[i] = unpack(u);
	u->depth--;
	return v;
}

static inline struct value take_number(struct unpacker *u, size_t n, bool is_signed)
{
	uint64_t number = take(u, n);
	unsigned unused = 64 - 8 * (unsigned)n;

	if (is_signed)
		number = (uint64_t)((int64_t)(number << unused) >> unused);
	return (struct value){.kind = NUMBER, .n = number};
}

static inline struct value unpack(struct unpacker *u)
{
	uint8_t c = (uint8_t)take(u, 1);

	if (c < 0x80 || c >= 0xe0)
		return (struct value){.kind = NUMBER, .n = (uint64_t)(int8_t)c};
	if (c < 0x90)
		return take_items(u, MAP, c & 15);
	if (c < 0xa0)
		return take_items(u, ARRAY, c & 15);
	if (c < 0xc0)
		return take_text(u, c & 31);
	switch (c) {
	case 0xc0:
		return (struct value){0};
	case 0xc2:
	case 0xc3:
		return (struct value){.kind = NUMBER, .n = c & 1};
	case 0xc4:
	case 0xc5:
	case 0xc6:
		return take_text(u, take(u, (size_t)1 << (c - 0xc4)));
	case 0xca:
	case 0xcb: /* a float, which no decision needs */
		take(u, (size_t)4 << (c - 0xca));
		return (struct value){0};
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf:
		return take_number(u, (size_t)1 << (c - 0xcc), false);
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return take_number(u, (size_t)1 << (c - 0xd0), true);
	case 0xd9:
	case 0xda:
	case 0xdb:
		return take_text(u, take(u, (size_t)1 << (c - 0xd9)));
	case 0xdc:
	case 0xdd:
		return take_items(u, ARRAY, take(u, (size_t)2 << (c - 0xdc)));
	case 0xde:
	case 0xdf:
		return take_items(u, MAP, take(u, (size_t)2 << (c - 0xde)));
	default:
		die("MessagePack: byte %#x", c);
	}
}

/* The values point into BYTES' memory, which is never freed. */
static inline struct value unpack_all(const struct bytes *bytes)
{
	struct unpacker u = {bytes->data, bytes->data + bytes->size, 0};

	return unpack(&u);
}

static inline bool value_is(const struct value *v, const char *word)
{
	return v && v->kind == TEXT && v->n == strlen(word) &&
	       memcmp(v->text, word, v->n) == 0;
}

/* The value of NAME in a map; NULL: not found. */
static inline const struct value *value_of(const struct value *map, const char *name)
{
	for (uint64_t i = 0; map && map->kind == MAP && i < map->n; i++)
		if (value_is(&map->items[2 * i], name))
			return &map->items[2 * i + 1];
	return NULL;
}

static inline char *value_text(const struct value *v)
{
	if (!v || v->kind != TEXT)
		die("MessagePack: a text is missing");
	return text("%.*s", (int)v->n, v->text);
}

#endif
