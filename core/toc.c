/* SPDX-License-Identifier: MIT */
#include "toc.h"
#include <stdlib.h>
#include <xxhash.h>
#include "limits.h"
#include "memory.h"
#include "msgpack.h"
#include "text.h"
#include "toc_index.h"

/* An entry of scheme none that says itself where its bytes are. */
struct own_blob {
	uint32_t entry;
	bool has_ordinal;
	struct kp_toc_blob at;
};

/* The fields of one entry as read. */
struct raw_entry {
	uint64_t ordinal, original_size, offset, size;
	struct kp_span type;
	uint32_t meta;
	unsigned seen; /* bits of enum field */
	bool bad_type; /* "type" is no string */
};

enum field { ORDINAL, ORIGINAL_SIZE, OFFSET, SIZE, TYPE, METADATA, FIELDS };

#define FIELD(name) {(const uint8_t *)(name), sizeof(name) - 1}

static const struct kp_span field_names[FIELDS] = {
	FIELD("ordinal"), FIELD("original_size"), FIELD("offset"),
	FIELD("size"),    FIELD("type"),          FIELD("metadata"),
};

struct parser {
	struct kp_mp c;
	struct kp_toc *toc;
	struct kpackx_error *why;
	bool no_memory;
	size_t entries_cap, binaries_cap, strings_cap;
	struct own_blob *own;
	size_t n_own, own_cap;

	/* strings by hash: number + 1, 0 is free; and what else is known of each */
	uint32_t *slots;
	size_t n_slots;
	struct string_info {
		uint16_t follows; /* the architecture that came after it last time */
		bool is_name;     /* proper text, not empty, not too long */
	} *info;
	uint16_t last_arch, last_type;
	bool any_arch, any_type;
};

static const struct kp_span DEFAULT_TYPE = {(const uint8_t *)"hsaco", 5};

/* Make room for one more item; doubling keeps it linear. */
static bool reserve(struct parser *p, void *array, size_t count, size_t *cap, size_t item)
{
	size_t want = *cap ? 2 * *cap : 64;
	void *old, *bigger;

	if (count < *cap)
		return true;
	memcpy(&old, array, sizeof(old)); /* pointers of any type */
	bigger = realloc(old, want * item);
	if (!bigger) {
		p->no_memory = true;
		return false;
	}
	memcpy(array, &bigger, sizeof(bigger));
	*cap = want;
	return true;
}

/* --- distinct strings ------------------------------------------------------------- */

static bool rehash(struct parser *p)
{
	size_t n = p->n_slots ? 2 * p->n_slots : 64;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots) {
		p->no_memory = true;
		return false;
	}
	free(p->slots);
	p->slots = slots;
	p->n_slots = n;
	for (size_t i = 0; i < p->toc->n_strings; i++) {
		struct kp_span s = p->toc->strings[i];
		size_t at = XXH3_64bits(s.data, s.size) & (n - 1);
		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)i + 1;
	}
	return true;
}

static bool add_string(struct parser *p, struct kp_span s, uint16_t *number)
{
	struct kp_toc *toc = p->toc;
	size_t cap = p->strings_cap;

	if (toc->n_strings == KP_STRINGS_MAX)
		return kp_mp_fault(&p->c, "more than 65535 distinct architectures and types");
	if (!reserve(p, &toc->strings, toc->n_strings, &p->strings_cap, sizeof(s)) ||
	    !reserve(p, &p->info, toc->n_strings, &cap, sizeof(*p->info)))
		return false;
	toc->strings[toc->n_strings] = s;
	p->info[toc->n_strings] = (struct string_info){
		.is_name = s.size && s.size <= KP_NAME_MAX && kp_text_ok(s)};
	*number = (uint16_t)toc->n_strings++;
	return true;
}

static bool intern(struct parser *p, struct kp_span s, uint16_t *number)
{
	size_t at;

	if (2 * p->toc->n_strings >= p->n_slots && !rehash(p))
		return false;
	at = XXH3_64bits(s.data, s.size) & (p->n_slots - 1);
	for (; p->slots[at]; at = (at + 1) & (p->n_slots - 1)) {
		if (kp_span_eq(p->toc->strings[p->slots[at] - 1], s)) {
			*number = (uint16_t)(p->slots[at] - 1);
			return true;
		}
	}
	if (!add_string(p, s, number))
		return false;
	p->slots[at] = (uint32_t)*number + 1;
	return true;
}

/* Architectures come in the same order under every key: guess before hashing. */
static bool intern_arch(struct parser *p, struct kp_span s, uint16_t *number)
{
	if (p->any_arch) {
		uint16_t guess = p->info[p->last_arch].follows;
		if (kp_span_eq(p->toc->strings[guess], s)) {
			*number = p->last_arch = guess;
			return true;
		}
	}
	if (!intern(p, s, number))
		return false;
	if (p->any_arch)
		p->info[p->last_arch].follows = *number;
	p->last_arch = *number;
	p->any_arch = true;
	return true;
}

static bool intern_type(struct parser *p, struct kp_span s, uint16_t *number)
{
	if (p->any_type && kp_span_eq(p->toc->strings[p->last_type], s)) {
		*number = p->last_type;
		return true;
	}
	if (!intern(p, s, number))
		return false;
	p->last_type = *number;
	p->any_type = true;
	return true;
}

/* --- one entry -------------------------------------------------------------------- */

static void fault(struct parser *p, struct kp_span key, struct kp_span arch, bool refused,
		  const char *text)
{
	char k[512], a[128];

	kp_faults_add(&p->toc->faults, refused, "toc: %s%s%s: %s",
		      kp_text_escape(key, k, sizeof(k)), arch.size ? " " : "",
		      kp_text_escape(arch, a, sizeof(a)), text);
}

/* An integer; a negative one becomes UINT64_MAX, which is out of every range. */
static bool integer(struct parser *p, uint64_t *out)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v))
		return false;
	if (v.type != KP_MP_UINT && v.type != KP_MP_INT)
		return kp_mp_fault(&p->c, "not an integer");
	*out = v.type == KP_MP_UINT ? v.num : UINT64_MAX;
	return true;
}

static enum field field_of(struct kp_span name)
{
	for (int i = 0; i < FIELDS; i++)
		if (kp_span_eq(name, field_names[i]))
			return (enum field)i;
	return FIELDS;
}

static bool parse_field(struct parser *p, enum field field, struct raw_entry *r)
{
	switch (field) {
	case ORDINAL:
		return integer(p, &r->ordinal);
	case ORIGINAL_SIZE:
		return integer(p, &r->original_size);
	case OFFSET:
		return integer(p, &r->offset);
	case SIZE:
		return integer(p, &r->size);
	case TYPE:
		if (kp_mp_peek(&p->c) == KP_MP_STR)
			return kp_mp_str(&p->c, &r->type);
		r->bad_type = true;
		return kp_mp_skip(&p->c);
	case METADATA:
		if (kp_mp_peek(&p->c) == KP_MP_MAP)
			r->meta = (uint32_t)kp_mp_offset(&p->c);
		return kp_mp_skip(&p->c);
	default:
		return kp_mp_skip(&p->c);
	}
}

/* The pairs of an entry's map; PAIRS of them are left. */
static bool parse_fields(struct parser *p, uint32_t pairs, struct raw_entry *r,
			 struct kp_span key, struct kp_span arch)
{
	*r = (struct raw_entry){.type = DEFAULT_TYPE};
	while (pairs--) {
		enum field field = FIELDS;
		struct kp_span name;

		if (kp_mp_peek(&p->c) != KP_MP_STR) {
			if (!kp_mp_skip(&p->c) || !kp_mp_skip(&p->c))
				return false;
			continue;
		}
		if (!kp_mp_str(&p->c, &name))
			return false;
		field = field_of(name);
		if (field < FIELDS && r->seen & 1u << field) {
			fault(p, key, arch, false, "a field twice, the first counts");
			field = FIELDS;
		}
		if (!parse_field(p, field, r))
			return false;
		if (field < FIELDS)
			r->seen |= 1u << field;
	}
	return true;
}

static bool add_own_blob(struct parser *p, const struct raw_entry *r)
{
	if (!reserve(p, &p->own, p->n_own, &p->own_cap, sizeof(*p->own)))
		return false;
	p->own[p->n_own++] = (struct own_blob){
		(uint32_t)p->toc->n_entries,
		(r->seen & 1u << ORDINAL) != 0,
		{r->offset, r->size},
	};
	return true;
}

/* Why an entry that was read cannot be kept, or NULL. */
static const char *refusal(const struct parser *p, const struct raw_entry *r, bool own,
			   const struct kp_toc_entry *e)
{
	bool has_ordinal = r->seen & 1u << ORDINAL;

	if (!p->info[e->arch].is_name)
		return "architecture is not UTF-8 without control bytes, or empty, or too long";
	if (r->bad_type || !p->info[e->type].is_name)
		return "type is no proper name";
	if (!own && !has_ordinal)
		return "no ordinal";
	if (has_ordinal && r->ordinal > UINT32_MAX)
		return "ordinal is negative or beyond 32 bits";
	return NULL;
}

/* Append the entry, or note why it is refused. */
static bool add_entry(struct parser *p, struct kp_span key, struct kp_span arch,
		      const struct raw_entry *r)
{
	const unsigned place = 1u << OFFSET | 1u << SIZE;
	bool own = (r->seen & place) == place;
	struct kp_toc *toc = p->toc;
	struct kp_toc_entry e = {.size = KP_TOC_NO_SIZE, .meta = r->meta};
	const char *why;

	if (!intern_arch(p, arch, &e.arch) || !intern_type(p, r->type, &e.type))
		return false;
	why = refusal(p, r, own, &e);
	if (why) {
		fault(p, key, arch, true, why);
		return true;
	}
	if (r->seen & 1u << ORIGINAL_SIZE) /* a negative one: beyond every limit */
		e.size = r->original_size == UINT64_MAX ? UINT64_MAX - 1 : r->original_size;
	e.ordinal = (uint32_t)r->ordinal;
	e.binary = (uint32_t)toc->n_binaries - 1;
	if (own && !add_own_blob(p, r))
		return false;
	if (toc->n_entries == p->entries_cap)
		return kp_mp_fault(&p->c, "more entries than bytes can hold");
	toc->entries[toc->n_entries++] = e;
	return true;
}

/* --- one binary ------------------------------------------------------------------- */

static bool is_arch_name(struct kp_span s)
{
	return (kp_span_starts(s, "gfx", 3) && s.size > 3) ||
	       (kp_span_starts(s, "sm_", 3) && s.size > 3) ||
	       (kp_span_starts(s, "compute_", 8) && s.size > 8) ||
	       kp_span_is(s, "amdgcnspirv");
}

/* The architecture that stands in a key: its first component that looks like one. */
static bool arch_in_key(struct kp_span key, struct kp_span *arch)
{
	size_t begin = 0;

	for (size_t i = 0; i <= key.size; i++) {
		if (i < key.size && key.data[i] != '/')
			continue;
		*arch = (struct kp_span){key.data + begin, i - begin};
		if (is_arch_name(*arch))
			return true;
		begin = i + 1;
	}
	return false;
}

/*
 * Is the map at the cursor an entry itself, without the arch level?  It is when a field of
 * entries has a value that is no map; an architecture's value always is one.
 */
static bool is_bare_entry(const struct parser *p, uint32_t pairs)
{
	struct kp_mp c = p->c;

	while (pairs--) {
		struct kp_span name = {0};
		enum field field;

		if (kp_mp_peek(&c) != KP_MP_STR)
			return false;
		if (!kp_mp_str(&c, &name))
			return false;
		field = field_of(name);
		if (kp_mp_peek(&c) != KP_MP_MAP && field < METADATA)
			return true;
		if (kp_mp_peek(&c) == KP_MP_MAP && field != METADATA)
			return false;
		if (!kp_mp_skip(&c))
			return false;
	}
	return false;
}

static bool parse_bare_entry(struct parser *p, uint32_t pairs, struct kp_span key)
{
	struct kp_span arch = {0};
	struct raw_entry r;

	if (!parse_fields(p, pairs, &r, key, arch))
		return false;
	if (arch_in_key(key, &arch))
		return add_entry(p, key, arch, &r);
	fault(p, key, arch, true, "no architecture, neither under the key nor in it");
	return true;
}

static bool parse_arch(struct parser *p, struct kp_span key)
{
	struct kp_span arch;
	struct raw_entry r;
	uint32_t pairs;

	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c) && kp_mp_skip(&p->c);
	if (!kp_mp_str(&p->c, &arch))
		return false;
	if (kp_mp_peek(&p->c) != KP_MP_MAP) {
		fault(p, key, arch, true, "entry is not a map");
		return kp_mp_skip(&p->c);
	}
	return kp_mp_map(&p->c, &pairs) && parse_fields(p, pairs, &r, key, arch) &&
	       add_entry(p, key, arch, &r);
}

static bool add_binary(struct parser *p, struct kp_span key)
{
	struct kp_toc *toc = p->toc;

	/* one more: index_toc puts a sentinel behind the last */
	if (!reserve(p, &toc->binaries, toc->n_binaries + 1, &p->binaries_cap,
		     sizeof(*toc->binaries)))
		return false;
	toc->binaries[toc->n_binaries++] = (struct kp_toc_binary){
		(uint32_t)(key.data - toc->bytes), (uint32_t)key.size,
		(uint32_t)toc->n_entries};
	return true;
}

static bool parse_binary(struct parser *p)
{
	struct kp_span key;
	uint32_t pairs;

	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c) && kp_mp_skip(&p->c);
	if (!kp_mp_str(&p->c, &key))
		return false;
	if (key.size > KP_NAME_MAX || !kp_text_ok(key)) {
		fault(p, key, (struct kp_span){0}, true,
		      "key is not UTF-8 without control bytes, or longer than 4096 bytes");
		return kp_mp_skip(&p->c);
	}
	if (kp_mp_peek(&p->c) != KP_MP_MAP) {
		fault(p, key, (struct kp_span){0}, true, "value is not a map");
		return kp_mp_skip(&p->c);
	}
	if (!kp_mp_map(&p->c, &pairs) || !add_binary(p, key))
		return false;
	/* The head of the map behind the key was read: its byte ends the key for C. */
	p->toc->bytes[key.data + key.size - p->toc->bytes] = 0;
	if (is_bare_entry(p, pairs))
		return parse_bare_entry(p, pairs, key);
	while (pairs--)
		if (!parse_arch(p, key))
			return false;
	return true;
}

/* --- the top level ---------------------------------------------------------------- */

static bool parse_toc(struct parser *p)
{
	uint32_t pairs;

	p->toc->has_toc = true;
	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--)
		if (!parse_binary(p))
			return false;
	return true;
}

static bool parse_arches(struct parser *p)
{
	struct kp_toc *toc = p->toc;
	uint32_t n;

	toc->has_arches = true;
	if (!kp_mp_array(&p->c, &n))
		return false;
	toc->arches = calloc(n ? n : 1, sizeof(*toc->arches));
	p->no_memory = !toc->arches;
	if (p->no_memory)
		return false;
	for (; n; n--) {
		struct kp_span s;

		if (kp_mp_peek(&p->c) != KP_MP_STR) {
			kp_faults_add(&toc->faults, false, "toc: gfx_arches: not a string");
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

static bool parse_blob(struct parser *p, struct kp_toc_blob *b)
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
			ok = has_offset = integer(p, &b->offset);
		else if (kp_span_is(name, "size") && !has_size)
			ok = has_size = integer(p, &b->size);
		else
			ok = kp_mp_skip(&p->c);
		if (!ok)
			return false;
	}
	return (has_offset && has_size) ||
	       kp_mp_fault(&p->c, "a blob without offset and size");
}

static bool parse_blobs(struct parser *p)
{
	struct kp_toc *toc = p->toc;
	uint32_t n;

	toc->has_blobs = true;
	if (!kp_mp_array(&p->c, &n))
		return false;
	toc->blobs = calloc(n ? n : 1, sizeof(*toc->blobs));
	p->no_memory = !toc->blobs;
	if (p->no_memory)
		return false;
	for (; toc->n_blobs < n; toc->n_blobs++)
		if (!parse_blob(p, &toc->blobs[toc->n_blobs]))
			return false;
	return true;
}

static bool parse_scheme(struct parser *p)
{
	struct kp_toc *toc = p->toc;
	struct kp_span s;
	char text[80];

	toc->has_scheme = true;
	if (!kp_mp_str(&p->c, &s))
		return false;
	if (kp_span_is(s, "none")) {
		toc->scheme = KPACK_COMPRESSION_NOOP;
		return true;
	}
	if (kp_span_is(s, "zstd-per-kernel")) {
		toc->scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL;
		return true;
	}
	kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
		"toc: compression_scheme '%s' is not supported",
		kp_text_escape(s, text, sizeof(text)));
	return kp_mp_fault(&p->c, "unknown scheme");
}

/* Text that only people read; another type is the absence of it. */
static bool parse_text(struct parser *p, struct kp_span *out, bool *has)
{
	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c);
	*has = true;
	return kp_mp_str(&p->c, out);
}

static bool parse_group(struct parser *p)
{
	return parse_text(p, &p->toc->group, &p->toc->has_group);
}

static bool parse_family(struct parser *p)
{
	return parse_text(p, &p->toc->family, &p->toc->has_family);
}

static bool parse_version(struct parser *p)
{
	struct kp_mp_value v;

	if (kp_mp_peek(&p->c) != KP_MP_UINT)
		return kp_mp_skip(&p->c);
	if (!kp_mp_next(&p->c, &v))
		return false;
	p->toc->format_version = v.num;
	return true;
}

static bool parse_zstd_offset(struct parser *p)
{
	return p->toc->has_zstd_offset = integer(p, &p->toc->zstd_offset);
}

static bool parse_zstd_size(struct parser *p)
{
	return p->toc->has_zstd_size = integer(p, &p->toc->zstd_size);
}

static bool parse_frame_index(struct parser *p)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v))
		return false;
	if (v.type != KP_MP_BIN)
		return kp_mp_fault(&p->c, "frame_index is not bin");
	p->toc->frame_index = v.span;
	return true;
}

static const struct {
	const char *name;
	bool (*parse)(struct parser *p);
} top_fields[] = {
	{"toc", parse_toc},
	{"gfx_arches", parse_arches},
	{"blobs", parse_blobs},
	{"compression_scheme", parse_scheme},
	{"zstd_offset", parse_zstd_offset},
	{"zstd_size", parse_zstd_size},
	{"frame_index", parse_frame_index},
	{"group_name", parse_group},
	{"gfx_arch_family", parse_family},
	{"format_version", parse_version},
};

#define N_TOP (sizeof(top_fields) / sizeof(top_fields[0]))

static bool parse_pair(struct parser *p, unsigned *seen)
{
	struct kp_span name;

	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c) && kp_mp_skip(&p->c);
	if (!kp_mp_str(&p->c, &name))
		return false;
	for (size_t i = 0; i < N_TOP; i++) {
		if (!kp_span_is(name, top_fields[i].name))
			continue;
		if (*seen & 1u << i) {
			kp_faults_add(&p->toc->faults, false,
				      "toc: %s twice, the first counts",
				      top_fields[i].name);
			break;
		}
		*seen |= 1u << i;
		return top_fields[i].parse(p);
	}
	return kp_mp_skip(&p->c);
}

static bool parse_top(struct parser *p)
{
	unsigned seen = 0;
	uint32_t pairs;

	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--)
		if (!parse_pair(p, &seen))
			return false;
	p->toc->used = kp_mp_offset(&p->c);
	for (size_t i = 0; i < p->toc->n_arches; i++) /* all heads were read by now */
		p->toc->bytes[p->toc->arches[i].data + p->toc->arches[i].size -
			      p->toc->bytes] = 0;
	return true;
}

/* --- blobs ------------------------------------------------------------------------ */

/* Give the entries that carry their own place a blob, where there is no blobs array. */
static kpack_error_t adopt_own_blobs(struct parser *p)
{
	struct kp_toc *toc = p->toc;
	struct kp_toc_blob *blobs;

	if (toc->scheme != KPACK_COMPRESSION_NOOP || toc->has_blobs) {
		for (size_t i = 0; i < p->n_own; i++) /* of no use: refused as out of range */
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
	for (size_t i = 0; i < p->n_own; i++) {
		toc->entries[p->own[i].entry].ordinal = (uint32_t)i;
		blobs[i] = p->own[i].at;
	}
	toc->n_blobs = (uint32_t)p->n_own;
	return KPACK_SUCCESS;
}

static kpack_error_t check_blobs(const struct parser *p, uint64_t file_size)
{
	const struct kp_toc *toc = p->toc;

	if (!toc->has_blobs)
		return KPACK_SUCCESS; /* own places are checked with their entries */
	for (uint32_t i = 0; i < toc->n_blobs; i++)
		if (!kp_range_ok(file_size, toc->blobs[i].offset, toc->blobs[i].size))
			return kp_fail(p->why, KPACK_ERROR_INVALID_FORMAT,
				       "toc: blob %u: %llu bytes at %llu in a file of %llu",
				       i, (unsigned long long)toc->blobs[i].size,
				       (unsigned long long)toc->blobs[i].offset,
				       (unsigned long long)file_size);
	return KPACK_SUCCESS;
}

/*
 * The shortest entry is its architecture's and its map's head, "ordinal" and a number:
 * room for all there can be is taken at once, and what is not used is given back.
 */
static bool alloc_entries(struct parser *p)
{
	enum { SHORTEST = 1 + 1 + 8 + 1 };

	p->entries_cap = p->toc->size / SHORTEST + 1;
	p->toc->entries = kp_large_alloc(p->entries_cap * sizeof(*p->toc->entries));
	p->no_memory = !p->toc->entries;
	return !p->no_memory;
}

/* --- the calls -------------------------------------------------------------------- */

static kpack_error_t parse(struct parser *p, uint64_t file_size)
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
	KP_TRY(adopt_own_blobs(p));
	KP_TRY(check_blobs(p, file_size));
	return kp_toc_index(p->toc, why);
}

kpack_error_t kp_toc_parse(uint8_t *bytes, size_t size, uint64_t file_size,
			   struct kp_toc *out, struct kpackx_error *why)
{
	struct kp_toc toc = {.bytes = bytes, .size = size};
	struct parser p = {
		.c = kp_mp_over((struct kp_span){bytes, size}),
		.toc = &toc,
		.why = why,
	};
	kpack_error_t err = parse(&p, file_size);

	free(p.own);
	free(p.slots);
	free(p.info);
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
	kp_faults_fini(&toc->faults);
	*toc = (struct kp_toc){0};
}
