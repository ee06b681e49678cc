/* SPDX-License-Identifier: MIT */
/*
 * Build offload binaries byte by byte from the format's description, without our writer.
 * Strings are written in order, without sharing.
 */
#ifndef OFFLOAD_BUILDER_H
#define OFFLOAD_BUILDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OB_MAX 4096

struct ob_string {
	const char *key, *value;
	size_t value_size; /* 0: the value ends with a NUL */
};

struct ob_entry {
	uint16_t image_kind, kind;
	uint32_t flags;
	const struct ob_string *strings;
	size_t n_strings;
	const void *image;
	size_t image_size;
};

struct ob {
	uint8_t data[OB_MAX];
	size_t size;
};

static inline void ob_put(struct ob *b, size_t at, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		b->data[at + i] = (uint8_t)(v >> (8 * i));
}

static inline size_t ob_text(struct ob *b, const char *text, size_t size)
{
	size_t at = b->size;

	memcpy(b->data + at, text, size);
	b->size += size + 1;
	return at;
}

/* Write the string records of an entry at AT and append their texts. */
static inline void ob_strings(struct ob *b, size_t at, const struct ob_entry *e,
			      unsigned version)
{
	for (size_t i = 0; i < e->n_strings; i++) {
		const struct ob_string *s = &e->strings[i];
		size_t size = s->value_size ? s->value_size : strlen(s->value);

		ob_put(b, at, ob_text(b, s->key, strlen(s->key)), 8);
		ob_put(b, at + 8, ob_text(b, s->value, size), 8);
		if (version > 1)
			ob_put(b, at + 16, size, 8);
		at += version > 1 ? 24 : 16;
	}
}

/* Append one binary with N entries to B. */
static inline void ob_build(struct ob *b, unsigned version,
			    const struct ob_entry *entries, size_t n)
{
	static struct ob o;
	size_t header = version < 3 ? 32 : 40, record = version > 1 ? 24 : 16, at;

	memset(&o, 0, sizeof(o));
	memcpy(o.data, "\x10\xff\x10\xad", 4);
	ob_put(&o, 4, version, 4);
	ob_put(&o, 16, header, 8);
	ob_put(&o, 24, version == 1 ? 40 : n, 8);
	at = header + 40 * n;
	for (size_t i = 0; i < n; i++) {
		size_t e = header + 40 * i;

		ob_put(&o, e, entries[i].image_kind, 2);
		ob_put(&o, e + 2, entries[i].kind, 2);
		ob_put(&o, e + 4, entries[i].flags, 4);
		ob_put(&o, e + 8, at, 8);
		ob_put(&o, e + 16, entries[i].n_strings, 8);
		at += record * entries[i].n_strings;
	}
	o.size = at;
	for (size_t i = 0; i < n; i++)
		ob_strings(&o,
			   (size_t)o.data[header + 40 * i + 8] |
				   (size_t)o.data[header + 40 * i + 9] << 8,
			   &entries[i], version);
	o.size = (o.size + 7) / 8 * 8;
	for (size_t i = 0; i < n; i++) {
		ob_put(&o, header + 40 * i + 24, o.size, 8);
		ob_put(&o, header + 40 * i + 32, entries[i].image_size, 8);
		memcpy(o.data + o.size, entries[i].image, entries[i].image_size);
		o.size += entries[i].image_size;
	}
	o.size = (o.size + 7) / 8 * 8;
	ob_put(&o, 8, o.size, 8);
	memcpy(b->data + b->size, o.data, o.size);
	b->size += o.size;
}

#endif
