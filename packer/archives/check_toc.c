/* SPDX-License-Identifier: MIT */
/*
 * The rules for the raw bytes of a table of contents: keys, their order, strings, and the metadata
 * of entries.
 */
#include "check.h"
#include <stdio.h>
#include <string.h>
#include "core/base/msgpack_read.h"
#include "core/base/text.h"

/* --- keys ------------------------------------------------------------------------- */

/* A walk of the raw TOC; each kind of finding is reported once. */
struct walk {
	struct check_findings *out;
	bool foreign_key, disorder;
};

/* Read the next key of a map; false: not a string (its value is skipped, too). */
static bool next_key(struct walk *w, struct kp_mp *m, struct kp_span *key)
{
	if (kp_mp_peek(m) == KP_MP_STR)
		return kp_mp_str(m, key);
	if (!w->foreign_key)
		CHECK_FAULT(w->out, "toc: a key of a map is not a string");
	w->foreign_key = true;
	kp_mp_skip(m);
	kp_mp_skip(m);
	return false;
}

static const char *const top_keys[] = {
	"format_version",     "group_name",  "gfx_arch_family", "gfx_arches",
	"compression_scheme", "toc",         "blobs",           "zstd_offset",
	"zstd_size",          "frame_index", "piece_hashes",    "table_hash"};
static const char *const entry_keys[] = {"type", "ordinal", "original_size", "metadata"};
static const char *const meta_keys[] = {"path",  "target",  "xxh3", "mode",
					"chunk", "library", "role"};

struct known_keys {
	const char *const *items;
	size_t count;
};
#define KNOWN(keys) ((struct known_keys){keys, KP_COUNT(keys)})

bool raw_is_flipped(struct kp_span text, const char *known)
{
	int bits = 0;

	if (text.size != strlen(known))
		return false;
	for (size_t i = 0; i < text.size; i++)
		bits += __builtin_popcount(text.data[i] ^ (unsigned char)known[i]);
	return bits == 1;
}

/* Which of KNOWN are keys of MAP: a bit for each. */
static unsigned keys_of(struct kp_mp map, struct known_keys known)
{
	struct kp_span key;
	uint32_t pairs = 0;
	unsigned found = 0;

	for (kp_mp_map(&map, &pairs); pairs && !map.fault; pairs--) {
		if (kp_mp_peek(&map) != KP_MP_STR)
			kp_mp_skip(&map);
		else if (kp_mp_str(&map, &key))
			for (size_t i = 0; i < known.count; i++)
				found |= kp_span_is(key, known.items[i]) ? 1u << i : 0;
		kp_mp_skip(&map);
	}
	return found;
}

static void check_key(struct kp_span key, struct known_keys known, unsigned found,
		      const char *place, struct check_findings *out)
{
	char text[64];

	for (size_t i = 0; i < known.count; i++)
		if (!(found >> i & 1) && raw_is_flipped(key, known.items[i]))
			CHECK_FAULT(
				out,
				"toc: %s%s is missing, and the unknown key %s differs "
				"from it by one bit",
				place, known.items[i],
				kp_text_escape(key, text, sizeof(text)));
}

/*
 * Readers ignore keys that they do not know.  One that differs by a bit from a key that the
 * map lacks is a damaged one.
 */
static void check_keys(struct kp_mp map, struct known_keys known, const char *place,
		       struct check_findings *out)
{
	struct kp_span key;
	uint32_t pairs = 0;
	unsigned found;

	if (kp_mp_peek(&map) != KP_MP_MAP)
		return;
	found = keys_of(map, known);
	for (kp_mp_map(&map, &pairs); pairs && !map.fault; pairs--) {
		if (kp_mp_peek(&map) != KP_MP_STR)
			kp_mp_skip(&map);
		else if (kp_mp_str(&map, &key))
			check_key(key, known, found, place, out);
		kp_mp_skip(&map);
	}
}

static void check_order(struct walk *w, struct kp_span *last, struct kp_span key)
{
	char a[512], b[512];

	if (last->data && !w->disorder && kp_span_cmp(*last, key) > 0) {
		CHECK_NOTE(w->out, "toc: not in bytewise order: %s after %s",
			   kp_text_escape(key, a, sizeof(a)),
			   kp_text_escape(*last, b, sizeof(b)));
		w->disorder = true;
	}
	*last = key;
}

/* Walk a map of LEVELS levels of names: binaries, then architectures. */
static void walk_names(struct walk *w, struct kp_mp *m, int levels)
{
	struct kp_span key, last = {0};
	uint32_t pairs;

	if (levels == 0)
		check_keys(*m, KNOWN(entry_keys), "an entry's ", w->out);
	if (levels == 0 || kp_mp_peek(m) != KP_MP_MAP) {
		kp_mp_skip(m);
		return;
	}
	kp_mp_map(m, &pairs);
	for (; pairs && !m->fault; pairs--) {
		if (!next_key(w, m, &key))
			continue;
		check_order(w, &last, key);
		walk_names(w, m, levels - 1);
	}
}

static bool is_utf8(struct kp_span s)
{
	uint32_t c;

	for (size_t n; s.size; s.data += n, s.size -= n) {
		n = kp_text_char(s, &c);
		if (n == 0)
			return false;
	}
	return true;
}

/* AMD's Python reader decodes every string of the table, used or not. */
static void check_strings(struct kp_span bytes, struct check_findings *out)
{
	struct kp_mp m = kp_mp_over(bytes);
	struct kp_mp_value v;
	char text[512];

	while (m.pos != m.end && kp_mp_next(&m, &v)) {
		if (v.type != KP_MP_STR || is_utf8(v.span))
			continue;
		CHECK_FAULT(out, "toc: offset %zu: a string that is not UTF-8: %s",
			    (size_t)(v.span.data - m.start),
			    kp_text_escape(v.span, text, sizeof(text)));
		return;
	}
}

void raw_check_toc(struct kp_span bytes, struct check_findings *out)
{
	struct kp_mp m = kp_mp_over(bytes);
	struct walk w = {.out = out};
	struct kp_span key;
	uint32_t pairs = 0;

	check_strings(bytes, out);
	check_keys(m, KNOWN(top_keys), "", out);
	kp_mp_map(&m, &pairs);
	for (; pairs && !m.fault; pairs--) {
		if (!next_key(&w, &m, &key))
			continue;
		if (kp_span_is(key, "toc"))
			walk_names(&w, &m, 2);
		else
			kp_mp_skip(&m);
	}
}

/* --- metadata --------------------------------------------------------------------- */

enum meta_rule { META_TEXT, META_HASH, META_MODE, META_NUMBER };

static const struct {
	const char *name;
	enum meta_rule rule;
} meta_fields[] = {
	{"path", META_TEXT}, {"target", META_TEXT},  {"xxh3", META_HASH},
	{"mode", META_MODE}, {"chunk", META_NUMBER}, {"library", META_TEXT},
	{"role", META_TEXT},
};

static const char *meta_fault(enum meta_rule rule, const struct kp_mp_value *v)
{
	switch (rule) {
	case META_TEXT:
		return v->type == KP_MP_STR ? NULL : "is not a string";
	case META_HASH:
		return v->type == KP_MP_BIN && v->span.size == 16 ? NULL
								  : "is not 16 bytes";
	case META_MODE:
		return v->type == KP_MP_UINT && v->num <= 07777
			       ? NULL
			       : "is no number of permission bits";
	case META_NUMBER:
		return v->type == KP_MP_UINT ? NULL : "is no number";
	}
	return NULL;
}

static void check_meta_field(struct check_findings *out, const char *entry,
			     struct kp_span key, struct kp_mp m)
{
	struct kp_mp_value v;
	const char *fault;

	for (size_t i = 0; i < KP_COUNT(meta_fields); i++) {
		if (!kp_span_is(key, meta_fields[i].name) || !kp_mp_next(&m, &v))
			continue;
		fault = meta_fault(meta_fields[i].rule, &v);
		if (fault)
			CHECK_FAULT(out, "toc: %s: metadata.%s %s", entry,
				    meta_fields[i].name, fault);
	}
}

/*
 * Check the type of a database file: "bin", or after a dot in its name, before another dot
 * or digits ("so" of libx.so.1).  Other writers may leave "hsaco" as the type of any entry.
 */
static void check_file_type(struct check_findings *out, const char *entry,
			    struct kp_span path, struct kp_span type)
{
	const uint8_t *p = path.data, *end = path.data + path.size;
	char text[64];

	if (kp_span_is(type, "bin") || kp_span_is(type, "hsaco"))
		return;
	while ((p = memchr(p, '.', (size_t)(end - p)))) {
		size_t left = (size_t)(end - ++p);

		if (type.size <= left && memcmp(p, type.data, type.size) == 0 &&
		    (type.size == left || strchr(".0123456789", p[type.size])))
			return;
	}
	CHECK_FAULT(out, "toc: %s: type is %s, which is not in the file's name", entry,
		    kp_text_escape(type, text, sizeof(text)));
}

struct kp_span raw_check_meta(struct kp_span bytes, struct kp_span type,
			      const char *entry, struct check_findings *out)
{
	static const struct kp_span none = {0};
	struct kp_mp m = kp_mp_over(bytes), after;
	struct kp_span key, path = {0}, library = {0};
	uint32_t pairs;
	char place[1200];

	if (m.pos == m.end || !kp_mp_map(&m, &pairs))
		return none;
	snprintf(place, sizeof(place), "%s: metadata.", entry);
	check_keys(kp_mp_over(bytes), KNOWN(meta_keys), place, out);
	for (; pairs; pairs--) {
		if (kp_mp_peek(&m) != KP_MP_STR) {
			CHECK_FAULT(out, "toc: %s: metadata: a key is not a string",
				    entry);
			return none;
		}
		kp_mp_str(&m, &key);
		check_meta_field(out, entry, key, m);
		after = m;
		if (kp_mp_peek(&m) == KP_MP_STR && kp_span_is(key, "path"))
			kp_mp_str(&after, &path);
		if (kp_mp_peek(&m) == KP_MP_STR && kp_span_is(key, "library"))
			kp_mp_str(&after, &library);
		if (!kp_mp_skip(&m))
			return none;
	}
	if (!path.data || !library.data)
		return none;
	check_file_type(out, entry, path, type);
	return path;
}
