/* SPDX-License-Identifier: MIT */
#include "toc.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "toc_index.h"
#include "toc_unknown.h"
#include "toc_parser.h"

/* --- the top level ---------------------------------------------------------------- */

static bool parse_toc(struct kp_toc_parser *p)
{
	uint32_t pairs;

	p->toc->has_toc = true;
	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--)
		if (!kp_toc_parse_binary(p))
			return false;
	return true;
}

static bool parse_arches(struct kp_toc_parser *p)
{
	struct kp_toc *toc = p->toc;
	uint32_t n;

	toc->has_arches = true;
	if (!kp_mp_array(&p->c, &n))
		return false;
	if (n > KP_STRINGS_MAX)
		return kp_mp_fault(&p->c, "more than 65535 gfx_arches");
	toc->arches = calloc(n ? n : 1, sizeof(*toc->arches));
	p->no_memory = !toc->arches;
	if (p->no_memory)
		return false;
	for (; n; n--) {
		struct kp_span s;

		if (kp_mp_peek(&p->c) != KP_MP_STR) {
			kp_faults_add(&toc->faults, false,
				      "toc: gfx_arches: not a string");
			if (!kp_mp_skip(&p->c))
				return false;
			continue;
		}
		if (!kp_mp_str(&p->c, &s))
			return false;
		if (kp_text_ok(s))
			toc->arches[toc->n_arches++] = s;
		else
			kp_faults_add(&toc->faults, false,
				      "toc: gfx_arches: not UTF-8 without control bytes");
	}
	return true;
}

static bool parse_blob(struct kp_toc_parser *p, struct kp_toc_blob *b)
{
	bool has_offset = false, has_size = false;
	uint32_t pairs;

	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--) {
		struct kp_span name = {0};
		bool ok;

		if (kp_mp_peek(&p->c) == KP_MP_STR ? !kp_mp_str(&p->c, &name)
						   : !kp_mp_skip(&p->c))
			return false;
		if (kp_span_is(name, "offset") && !has_offset)
			ok = has_offset = kp_toc_integer(p, &b->offset);
		else if (kp_span_is(name, "size") && !has_size)
			ok = has_size = kp_toc_integer(p, &b->size);
		else
			ok = p->toc->blobs_more = kp_mp_skip(&p->c);
		if (!ok)
			return false;
	}
	return (has_offset && has_size) ||
	       kp_mp_fault(&p->c, "a blob without offset and size");
}

static bool parse_blobs(struct kp_toc_parser *p)
{
	struct kp_toc *toc = p->toc;
	uint32_t n;

	toc->has_blobs = true;
	if (!kp_mp_array(&p->c, &n))
		return false;
	/* the shortest blob is the head of a map, "offset", "size" and two numbers */
	if (n > (size_t)(p->c.end - p->c.pos) / (1 + 7 + 1 + 5 + 1))
		return kp_mp_fault(&p->c, "more blobs than bytes can hold");
	toc->blobs = calloc(n ? n : 1, sizeof(*toc->blobs));
	p->no_memory = !toc->blobs;
	if (p->no_memory)
		return false;
	for (; toc->n_blobs < n; toc->n_blobs++)
		if (!parse_blob(p, &toc->blobs[toc->n_blobs]))
			return false;
	return true;
}

static bool parse_scheme(struct kp_toc_parser *p)
{
	struct kp_toc *toc = p->toc;
	struct kp_span s;
	char text[80];

	toc->has_scheme = true;
	if (!kp_mp_str(&p->c, &s))
		return false;
	if (kp_scheme_find(s, &toc->scheme))
		return true;
	kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
		"toc: compression_scheme '%s' is not supported",
		kp_text_escape(s, text, sizeof(text)));
	return kp_mp_fault(&p->c, "unknown scheme");
}

/* Parse a text that only people read; a value of another type counts as absent. */
static bool parse_text(struct kp_toc_parser *p, struct kp_span *out, bool *has)
{
	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c);
	*has = true;
	return kp_mp_str(&p->c, out);
}

static bool parse_group(struct kp_toc_parser *p)
{
	return parse_text(p, &p->toc->group, &p->toc->has_group);
}

static bool parse_family(struct kp_toc_parser *p)
{
	return parse_text(p, &p->toc->family, &p->toc->has_family);
}

static bool parse_version(struct kp_toc_parser *p)
{
	struct kp_mp_value v;

	if (kp_mp_peek(&p->c) != KP_MP_UINT)
		return kp_mp_skip(&p->c);
	if (!kp_mp_next(&p->c, &v))
		return false;
	p->toc->format_version = v.num;
	return true;
}

static bool parse_zstd_offset(struct kp_toc_parser *p)
{
	return p->toc->has_zstd_offset = kp_toc_integer(p, &p->toc->zstd_offset);
}

static bool parse_zstd_size(struct kp_toc_parser *p)
{
	return p->toc->has_zstd_size = kp_toc_integer(p, &p->toc->zstd_size);
}

static bool parse_frame_index(struct kp_toc_parser *p)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v))
		return false;
	if (v.type != KP_MP_BIN)
		return kp_mp_fault(&p->c, "frame_index is not bin");
	p->toc->frame_index = v.span;
	return true;
}

static bool parse_piece_hashes(struct kp_toc_parser *p)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v))
		return false;
	if (v.type != KP_MP_BIN)
		return kp_mp_fault(&p->c, "piece_hashes is not bin");
	p->toc->piece_hashes = v.span;
	return true;
}

/* Its value was compared already if it is at the end, where it belongs. */
static bool parse_table_hash(struct kp_toc_parser *p)
{
	if (!p->toc->has_table_hash)
		return kp_mp_fault(&p->c, "table_hash is not the last 16 bytes");
	return kp_mp_skip(&p->c);
}

/* The last fields are optional. */
enum { SHARED_FIELDS = 8, SHARED_NEEDED = 7 };

/* SEEN has a bit for each field; of equal names the first counts. */
static bool parse_shared_field(struct kp_toc_parser *p, struct kp_span name,
			       unsigned *seen)
{
	struct kp_shared_layout *l = &p->toc->shared;
	const struct {
		const char *name;
		uint64_t *number; /* or: */
		struct kp_span *bytes;
	} fields[SHARED_FIELDS] = {
		{"offset", &l->offset, NULL},
		{"size", &l->size, NULL},
		{"block_size", &l->block_size, NULL},
		{"unique_size", &l->unique_size, NULL},
		{"dictionary_size", &l->dictionary_size, NULL},
		{"frames", NULL, &l->frames},
		{"objects", NULL, &l->objects},
		{"frame_hashes", NULL, &l->hashes},
	};
	struct kp_mp_value v;

	for (size_t i = 0; i < SHARED_FIELDS; i++) {
		if (!kp_span_is(name, fields[i].name) || *seen & 1u << i)
			continue;
		*seen |= 1u << i;
		if (fields[i].number)
			return kp_toc_integer(p, fields[i].number);
		if (!kp_mp_next(&p->c, &v))
			return false;
		*fields[i].bytes = v.span;
		return v.type == KP_MP_BIN ||
		       kp_mp_fault(&p->c, "zstd_shared: a table is not bin");
	}
	return kp_mp_skip(&p->c);
}

/* A value of another type is of no use; without it the archive is refused. */
static bool parse_shared(struct kp_toc_parser *p)
{
	unsigned seen = 0;
	uint32_t pairs;

	if (kp_mp_peek(&p->c) != KP_MP_MAP)
		return kp_mp_skip(&p->c);
	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--) {
		struct kp_span name = {0};

		if (kp_mp_peek(&p->c) == KP_MP_STR ? !kp_mp_str(&p->c, &name)
						   : !kp_mp_skip(&p->c))
			return false;
		if (!parse_shared_field(p, name, &seen))
			return false;
	}
	p->toc->has_shared = !(~seen & ((1u << SHARED_NEEDED) - 1));
	return true;
}

static const struct {
	const char *name;
	bool (*parse)(struct kp_toc_parser *p);
} top_fields[] = {
	{"toc", parse_toc},
	{"gfx_arches", parse_arches},
	{"blobs", parse_blobs},
	{"compression_scheme", parse_scheme},
	{"zstd_offset", parse_zstd_offset},
	{"zstd_size", parse_zstd_size},
	{"frame_index", parse_frame_index},
	{"piece_hashes", parse_piece_hashes},
	{"table_hash", parse_table_hash},
	{"zstd_shared", parse_shared},
	{"group_name", parse_group},
	{"gfx_arch_family", parse_family},
	{"format_version", parse_version},
};

#define N_TOP KP_COUNT(top_fields)

/* Skip the value of an unknown pair that began at START, and note the pair. */
static bool skip_pair(struct kp_toc_parser *p, size_t start)
{
	const struct kp_more_run whole = {0};

	return kp_mp_skip(&p->c) && kp_toc_more_add(p, &p->toc->more, whole, start);
}

static bool parse_pair(struct kp_toc_parser *p, unsigned *seen)
{
	size_t start = kp_mp_offset(&p->c);
	struct kp_span name;

	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c) && skip_pair(p, start);
	if (!kp_mp_str(&p->c, &name))
		return false;
	for (size_t i = 0; i < N_TOP; i++) {
		if (!kp_span_is(name, top_fields[i].name))
			continue;
		if (*seen & 1u << i) {
			kp_faults_add(&p->toc->faults, false,
				      "toc: %s twice, the first counts",
				      top_fields[i].name);
			return kp_mp_skip(&p->c);
		}
		*seen |= 1u << i;
		return top_fields[i].parse(p);
	}
	return skip_pair(p, start);
}

/* Move each architecture over its head, already read, to make room for a NUL. */
static void end_arches(struct kp_toc *toc)
{
	for (size_t i = 0; i < toc->n_arches; i++) {
		struct kp_span *s = &toc->arches[i];
		uint8_t *to = toc->bytes + (s->data - toc->bytes) - 1;

		memmove(to, s->data, s->size);
		to[s->size] = 0;
		s->data = to;
	}
}

static bool parse_top(struct kp_toc_parser *p)
{
	unsigned seen = 0;
	uint32_t pairs;

	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--)
		if (!parse_pair(p, &seen))
			return false;
	p->toc->used = p->toc->in_file = kp_mp_offset(&p->c);
	end_arches(p->toc);
	return true;
}

/* --- blobs ------------------------------------------------------------------------ */

/* Without a blobs array: make blobs of the places that entries have themselves. */
static kpack_error_t adopt_own_blobs(struct kp_toc_parser *p)
{
	struct kp_toc *toc = p->toc;
	struct kp_toc_blob *blobs;

	if (toc->scheme != KPACK_COMPRESSION_NOOP || toc->has_blobs) {
		for (size_t i = 0; i < p->n_own;
		     i++) /* unusable: refused later as out of range */
			if (!p->own[i].has_ordinal)
				toc->entries[p->own[i].entry].ordinal = UINT32_MAX;
		return KPACK_SUCCESS;
	}
	if (p->n_own == 0)
		return KPACK_SUCCESS;
	blobs = realloc(toc->blobs, p->n_own * sizeof(*blobs));
	if (!blobs)
		return kp_fail_memory(p->why, p->n_own * sizeof(*blobs), "blobs");
	toc->blobs = blobs;
	/* entries without a place get no blob */
	for (size_t i = 0; i < toc->n_entries; i++)
		toc->entries[i].ordinal = UINT32_MAX;
	for (size_t i = 0; i < p->n_own; i++) {
		toc->entries[p->own[i].entry].ordinal = (uint32_t)i;
		blobs[i] = p->own[i].at;
	}
	toc->n_blobs = (uint32_t)p->n_own;
	return KPACK_SUCCESS;
}

static kpack_error_t check_blobs(const struct kp_toc_parser *p, uint64_t file_size)
{
	const struct kp_toc *toc = p->toc;

	if (!toc->has_blobs)
		return KPACK_SUCCESS; /* entries' own places are checked later */
	for (uint32_t i = 0; i < toc->n_blobs; i++)
		if (!kp_range_ok(file_size, toc->blobs[i].offset, toc->blobs[i].size))
			return kp_fail(
				p->why, KPACK_ERROR_INVALID_FORMAT,
				"toc: blob %u: %llu bytes at %llu in a file of %llu", i,
				(unsigned long long)toc->blobs[i].size,
				(unsigned long long)toc->blobs[i].offset,
				(unsigned long long)file_size);
	return KPACK_SUCCESS;
}

/*
 * Allocate room for the most entries there can be; unused memory is given back later.
 * The shortest entry is its architecture's and its map's head, "ordinal" and a number.
 */
static bool alloc_entries(struct kp_toc_parser *p)
{
	enum { SHORTEST = 1 + 1 + 8 + 1 };

	p->entries_cap = p->toc->size / SHORTEST + 1;
	p->toc->entries = kp_large_alloc(p->entries_cap * sizeof(*p->toc->entries));
	p->no_memory = !p->toc->entries;
	return !p->no_memory;
}

/* --- strings ---------------------------------------------------------------------- */

/*
 * Copy the strings and give each a NUL, for which an architecture inside a key has no
 * room.  Strings that are too long for names are left out, since no entry has them.
 */
static bool end_strings(struct kp_toc *toc)
{
	size_t size = 0;
	uint8_t *to;

	for (size_t i = 0; i < toc->n_strings; i++)
		if (toc->strings[i].size <= KP_NAME_MAX)
			size += toc->strings[i].size + 1;
	toc->texts = to = malloc(size + 1);
	if (!to)
		return false;
	for (size_t i = 0; i < toc->n_strings; i++) {
		struct kp_span *s = &toc->strings[i];

		if (s->size > KP_NAME_MAX)
			continue;
		memcpy(to, s->data, s->size);
		s->data = to;
		to += s->size;
		*to++ = '\0';
	}
	return true;
}

/* --- the table's own hash ------------------------------------------------------------ */

/*
 * The bytes of a table before its hash, which is known by where it stands: no flipped bit can
 * hide it and change something else.  All bytes: it has none.
 */
static size_t hashed_size(const uint8_t *bytes, size_t size)
{
	static const char head[] = "\xaatable_hash\xc4\x10";
	const size_t n = sizeof(head) - 1 + sizeof(struct kp_hash);

	if (size > n && memcmp(bytes + size - n, head, sizeof(head) - 1) == 0)
		return size - sizeof(struct kp_hash);
	return size;
}

uint64_t kp_toc_hash(const uint8_t *bytes, size_t size)
{
	struct kp_hash hash = kp_hash_of(bytes, hashed_size(bytes, size));

	return kp_le64(hash.bytes);
}

/* Before the table is parsed, which changes its bytes. */
static kpack_error_t check_table_hash(struct kp_toc *toc, struct kpackx_error *why)
{
	size_t size = hashed_size(toc->bytes, toc->size);
	struct kp_hash hash = kp_hash_of(toc->bytes, size);

	toc->hash = kp_le64(hash.bytes);
	toc->has_table_hash = size < toc->size;
	if (toc->has_table_hash && !kp_hash_is(&hash, toc->bytes + size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: does not match its table_hash: damaged");
	return KPACK_SUCCESS;
}

/*
 * A writer of piece_hashes or frame_hashes also writes table_hash.  Where only that is
 * missing, its name was damaged, or bytes follow the table.
 */
static kpack_error_t check_hashed(const struct kp_toc_parser *p)
{
	const struct kp_toc *toc = p->toc;

	if ((toc->piece_hashes.data || toc->shared.hashes.data) && !toc->has_table_hash)
		return kp_fail(p->why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: has other hashes, but does not end with its "
			       "table_hash: damaged");
	return KPACK_SUCCESS;
}

/* --- the calls -------------------------------------------------------------------- */

static kpack_error_t parse_table(struct kp_toc_parser *p, uint64_t file_size)
{
	struct kpackx_error *why = p->why;
	struct kpackx_error scheme = {0};
	bool ok;

	p->why = &scheme;
	ok = alloc_entries(p) && parse_top(p);
	p->why = why;
	if (p->no_memory)
		return kp_fail_memory(why, p->toc->size, "the table of contents");
	if (scheme.code)
		return kp_fail(why, scheme.code, "%s", scheme.text);
	if (!ok)
		return kp_mp_fail(&p->c, "toc", why);
	p->toc->entries = kp_large_trim(p->toc->entries,
					p->toc->n_entries * sizeof(*p->toc->entries));
	KP_TRY(check_hashed(p));
	KP_TRY(adopt_own_blobs(p));
	return check_blobs(p, file_size);
}

kpack_error_t kp_toc_parse(uint8_t *bytes, size_t size, uint64_t file_size,
			   struct kp_toc *out, struct kpackx_error *why)
{
	struct kp_toc toc = {.bytes = bytes, .size = size};
	struct kp_toc_parser p = {
		.c = kp_mp_over((struct kp_span){bytes, size}),
		.toc = &toc,
		.why = why,
	};
	kpack_error_t err = check_table_hash(&toc, why);

	if (!err)
		err = parse_table(&p, file_size);

	/* the texts outlive the string table */
	toc.strings = p.strings.texts;
	toc.n_strings = p.strings.n;
	p.strings.texts = NULL;
	if (!err && !end_strings(&toc))
		err = kp_fail_memory(why, size, "architectures");
	if (!err)
		err = kp_toc_index(&toc, why);
	kp_string_table_fini(&p.strings);
	free(p.own);
	if (err)
		kp_toc_fini(&toc);
	else
		*out = toc;
	return err;
}

void kp_toc_fini(struct kp_toc *toc)
{
	free(toc->bytes);
	free(toc->arches);
	free(toc->blobs);
	free(toc->binaries);
	free(toc->entries);
	free(toc->strings);
	free(toc->texts);
	free(toc->more.runs);
	free(toc->entries_more.runs);
	kp_faults_fini(&toc->faults);
	*toc = (struct kp_toc){0};
}
