/* SPDX-License-Identifier: MIT */
/* The entries of a table of contents: the value of its key "toc". */
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "toc_meta.h"
#include "toc_unknown.h"
#include "toc_parser.h"

/* The fields of one entry as read. */
struct raw_entry {
	uint64_t ordinal, original_size, offset, size;
	struct kp_span type;
	size_t more; /* its first run of unknown pairs */
	struct kp_meta_place meta;
	unsigned seen; /* bits of enum field */
	bool bad_type; /* "type" is not a string */
};

enum field { ORDINAL, ORIGINAL_SIZE, OFFSET, SIZE, TYPE, METADATA, FIELDS };

#define FIELD(name)                                                                      \
	{                                                                                \
		(const uint8_t *)(name), sizeof(name) - 1                                \
	}

static const struct kp_span field_names[FIELDS] = {
	FIELD("ordinal"), FIELD("original_size"), FIELD("offset"),
	FIELD("size"),    FIELD("type"),          FIELD("metadata"),
};

static const struct kp_span DEFAULT_TYPE = FIELD("hsaco");

static bool no_memory(struct kp_toc_parser *p)
{
	p->no_memory = true;
	return false;
}

/* --- one entry -------------------------------------------------------------------- */

static void add_fault(struct kp_toc_parser *p, struct kp_span key, struct kp_span arch,
		      bool refused, const char *text)
{
	kp_faults_add_entry(&p->toc->faults, key, arch, refused, text);
}

bool kp_toc_integer(struct kp_toc_parser *p, uint64_t *out)
{
	struct kp_mp_value v;

	if (!p->c.fault && p->c.pos < p->c.end && *p->c.pos < 0x80) {
		*out = *p->c.pos++; /* a small number is its own head */
		return true;
	}
	if (!kp_mp_next(&p->c, &v))
		return false;
	if (v.type != KP_MP_UINT && v.type != KP_MP_INT)
		return kp_mp_fault(&p->c, "not an integer");
	*out = v.type == KP_MP_UINT ? v.num : UINT64_MAX;
	return true;
}

/*
 * As kp_toc_integer, with the heads that nearly all integers of a table have read here.
 */
static inline bool take_integer(struct kp_toc_parser *p, uint64_t *out)
{
	const uint8_t *at = p->c.pos;

	if (p->c.fault || p->c.end - at < 5)
		return kp_toc_integer(p, out);
	switch (*at) {
	case 0xcc: /* 8 bits */
		*out = at[1];
		p->c.pos += 2;
		return true;
	case 0xcd: /* 16 bits */
		*out = (uint64_t)at[1] << 8 | at[2];
		p->c.pos += 3;
		return true;
	case 0xce: /* 32 bits */
		*out = __builtin_bswap32(kp_le32(at + 1));
		p->c.pos += 5;
		return true;
	default:
		return kp_toc_integer(p, out);
	}
}

/* The length distinguishes all names but two; then one comparison decides. */
static enum field field_of(struct kp_span name)
{
	static const uint8_t by_size[] = {
		[4] = TYPE,     [6] = OFFSET,         [7] = ORDINAL,
		[8] = METADATA, [13] = ORIGINAL_SIZE,
	};
	enum field field;

	if (name.size >= sizeof(by_size) || name.size < 4)
		return FIELDS;
	field = (enum field)by_size[name.size];
	if (field == TYPE && name.data[0] == 's')
		field = SIZE;
	return kp_span_eq(name, field_names[field]) ? field : FIELDS;
}

/* Move the cursor after NAME, which has its head and SIZE bytes, if it is there. */
static inline bool take_name(struct kp_mp *c, const char *name, size_t size)
{
	if (!kp_bytes_eq(c->pos, (const uint8_t *)name, size))
		return false;
	c->pos += size;
	return true;
}

/*
 * Read the name of a field that nearly every entry has.  false: it is another one, or
 * encoded otherwise, and the cursor was not moved.
 */
static inline bool take_common_field(struct kp_mp *c, enum field *field)
{
	static const char type[] = "\xa4type", ordinal[] = "\xa7ordinal",
			  metadata[] = "\xa8metadata",
			  original_size[] = "\xadoriginal_size";

	if (c->fault || (size_t)(c->end - c->pos) < sizeof(original_size))
		return false;
	switch (*c->pos) {
	case 0xa4:
		*field = TYPE;
		return take_name(c, type, sizeof(type) - 1);
	case 0xa7:
		*field = ORDINAL;
		return take_name(c, ordinal, sizeof(ordinal) - 1);
	case 0xa8:
		*field = METADATA;
		return take_name(c, metadata, sizeof(metadata) - 1);
	case 0xad:
		*field = ORIGINAL_SIZE;
		return take_name(c, original_size, sizeof(original_size) - 1);
	default:
		return false;
	}
}

/*
 * Find what decoding needs of the metadata at the cursor, and note where it is.  The
 * notes replace the last bytes of the field's name, which has been read.
 */
static bool parse_metadata(struct kp_toc_parser *p, struct raw_entry *r)
{
	size_t at = kp_mp_offset(&p->c);
	uint8_t *word = p->toc->bytes + at;
	struct kp_decoding_places found;

	_Static_assert(KP_TOC_SIZE_MAX - 1 <= KP_META_AT_MAX, "an offset fits");
	_Static_assert(sizeof("metadata") - 1 >= sizeof(found), "the name has room");
	if (!kp_meta_scan(&p->c, &found))
		return false;
	r->meta = (struct kp_meta_place){at & KP_META_AT_MAX, found.chunk != 0,
					 found.xxh3 != 0};
	if (found.xxh3)
		kp_put_le32(word -= 4, found.xxh3);
	if (found.chunk)
		kp_put_le32(word - 4, found.chunk);
	return true;
}

static bool parse_field(struct kp_toc_parser *p, enum field field, struct raw_entry *r)
{
	switch (field) {
	case ORDINAL:
		return take_integer(p, &r->ordinal);
	case ORIGINAL_SIZE:
		return take_integer(p, &r->original_size);
	case OFFSET:
		return kp_toc_integer(p, &r->offset);
	case SIZE:
		return kp_toc_integer(p, &r->size);
	case TYPE:
		if (kp_mp_peek(&p->c) == KP_MP_STR)
			return kp_mp_str(&p->c, &r->type);
		r->bad_type = true;
		return kp_mp_skip(&p->c);
	case METADATA:
		return parse_metadata(p, r);
	default:
		return kp_mp_skip(&p->c);
	}
}

/* Whether FIELD is known, with a value of a type that readers use. */
static bool is_known(const struct kp_toc_parser *p, enum field field)
{
	return field < METADATA || (field == METADATA && kp_mp_peek(&p->c) == KP_MP_MAP);
}

/* Skip the value of an entry's unknown pair that began at START, and note the pair. */
static bool skip_pair(struct kp_toc_parser *p, size_t start)
{
	const struct kp_more_run own = {
		.key = (uint32_t)(p->key.data - p->toc->bytes),
		.entry = (uint32_t)p->toc->n_entries,
	};

	return kp_mp_skip(&p->c) && kp_toc_more_add(p, &p->toc->entries_more, own, start);
}

/* Parse the PAIRS pairs of an entry's map. */
static bool parse_fields(struct kp_toc_parser *p, uint32_t pairs, struct raw_entry *r,
			 struct kp_span key, struct kp_span arch)
{
	*r = (struct raw_entry){
		.type = DEFAULT_TYPE,
		.more = p->toc->entries_more.n,
	};
	while (pairs--) {
		size_t start = kp_mp_offset(&p->c);
		struct kp_span name;
		enum field field;

		if (!take_common_field(&p->c, &field)) {
			if (kp_mp_peek(&p->c) != KP_MP_STR) {
				if (!kp_mp_skip(&p->c) || !skip_pair(p, start))
					return false;
				continue;
			}
			if (!kp_mp_str(&p->c, &name))
				return false;
			field = field_of(name);
		}
		if (field < FIELDS && r->seen & 1u << field) {
			add_fault(p, key, arch, false, "a field twice, the first counts");
			if (!kp_mp_skip(&p->c))
				return false;
			continue;
		}
		if (is_known(p, field) ? !parse_field(p, field, r) : !skip_pair(p, start))
			return false;
		r->seen |= 1u << field;
	}
	return true;
}

static bool add_own_blob(struct kp_toc_parser *p, const struct raw_entry *r)
{
	if (!kp_grow(&p->own, p->n_own, &p->own_cap, sizeof(*p->own)))
		return no_memory(p);
	p->own[p->n_own++] = (struct kp_own_blob){
		(uint32_t)p->toc->n_entries,
		(r->seen & 1u << ORDINAL) != 0,
		{r->offset, r->size},
	};
	return true;
}

/* Why a parsed entry cannot be kept; NULL: it can. */
static const char *refusal(const struct kp_toc_parser *p, const struct raw_entry *r,
			   bool own, const struct kp_toc_entry *e)
{
	bool has_ordinal = r->seen & 1u << ORDINAL;

	if (!p->strings.info[e->arch].is_name)
		return "architecture is not UTF-8 without control bytes, or empty, or "
		       "too long";
	if (r->bad_type || !p->strings.info[e->type].is_name)
		return "type is not a valid name";
	if (!own && !has_ordinal)
		return "no ordinal";
	if (has_ordinal && r->ordinal > UINT32_MAX)
		return "ordinal is negative or beyond 32 bits";
	return NULL;
}

static bool number_string(struct kp_toc_parser *p, struct kp_string_chain *chain,
			  struct kp_span text, uint16_t *out)
{
	enum kp_strings_result result = kp_string_next(&p->strings, chain, text, out);

	if (result == KP_STRINGS_FULL)
		return kp_mp_fault(&p->c,
				   "more than 65535 distinct architectures and types");
	return result == KP_STRINGS_OK || no_memory(p);
}

/*
 * Add a binary for the current key, which has an entry.  Keys without entries get none.
 */
static bool add_binary(struct kp_toc_parser *p)
{
	struct kp_toc *toc = p->toc;
	struct kp_span key = p->key;

	if (p->key_added)
		return true;
	/* plus one: kp_toc_index adds a sentinel after the last binary */
	if (!kp_grow(&toc->binaries, toc->n_binaries + 1, &p->binaries_cap,
		     sizeof(*toc->binaries)))
		return no_memory(p);
	toc->binaries[toc->n_binaries++] =
		(struct kp_toc_binary){(uint32_t)(key.data - toc->bytes),
				       (uint32_t)key.size, (uint32_t)toc->n_entries};
	p->key_added = true;
	return true;
}

/* Append the entry, or note why it is refused. */
static bool add_entry(struct kp_toc_parser *p, struct kp_span key, struct kp_span arch,
		      const struct raw_entry *r)
{
	const unsigned place = 1u << OFFSET | 1u << SIZE;
	bool own = (r->seen & place) == place;
	struct kp_toc *toc = p->toc;
	struct kp_toc_entry e = {.size = KP_TOC_NO_SIZE, .meta = r->meta};
	const char *why;

	if (!number_string(p, &p->arch_chain, arch, &e.arch) ||
	    !number_string(p, &p->type_chain, r->type, &e.type))
		return false;
	why = refusal(p, r, own, &e);
	if (why) {
		add_fault(p, key, arch, true, why);
		toc->entries_more.n = r->more;
		return true;
	}
	for (size_t i = r->more; i < toc->entries_more.n; i++)
		toc->entries_more.runs[i].arch = e.arch;
	if (r->seen & 1u << ORIGINAL_SIZE) /* a negative size exceeds every limit */
		e.size = r->original_size == UINT64_MAX ? UINT64_MAX - 1
							: r->original_size;
	if (!add_binary(p))
		return false;
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

/* The architecture in a key: its first component that looks like an architecture. */
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
 * Whether the map at the cursor is itself an entry, without the arch level: one of its
 * keys is a field of entries and has a value that is not a map.  An architecture's value
 * is always a map.
 */
static bool is_bare_entry(const struct kp_toc_parser *p, uint32_t pairs)
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

static bool parse_bare_entry(struct kp_toc_parser *p, uint32_t pairs, struct kp_span key)
{
	struct kp_span arch = {0};
	struct raw_entry r;

	if (!parse_fields(p, pairs, &r, key, arch))
		return false;
	if (arch_in_key(key, &arch))
		return add_entry(p, key, arch, &r);
	add_fault(p, key, arch, true, "no architecture, neither under the key nor in it");
	return true;
}

/*
 * Read an architecture and the head of its map as every writer encodes them, with their
 * sizes in their heads.  false: they are encoded otherwise, or there is something else,
 * and the cursor was not moved.
 */
static inline bool take_arch(struct kp_mp *c, struct kp_span *arch, uint32_t *pairs)
{
	enum { LONGEST = 1 + 31 + 1 + 2 * 15 }; /* and a byte for each key and value */
	const uint8_t *at = c->pos;
	size_t n;

	if (c->fault || c->end - at < LONGEST || (*at & 0xe0) != 0xa0)
		return false;
	n = *at & 0x1f;
	if ((at[1 + n] & 0xf0) != 0x80)
		return false;
	*arch = (struct kp_span){at + 1, n};
	*pairs = at[1 + n] & 0x0f;
	c->pos += 1 + n + 1;
	return true;
}

static bool parse_arch(struct kp_toc_parser *p, struct kp_span key)
{
	struct kp_span arch;
	struct raw_entry r;
	uint32_t pairs;

	if (take_arch(&p->c, &arch, &pairs))
		return parse_fields(p, pairs, &r, key, arch) &&
		       add_entry(p, key, arch, &r);
	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c) && kp_mp_skip(&p->c);
	if (!kp_mp_str(&p->c, &arch))
		return false;
	if (kp_mp_peek(&p->c) != KP_MP_MAP) {
		add_fault(p, key, arch, true, "entry is not a map");
		return kp_mp_skip(&p->c);
	}
	return kp_mp_map(&p->c, &pairs) && parse_fields(p, pairs, &r, key, arch) &&
	       add_entry(p, key, arch, &r);
}

bool kp_toc_parse_binary(struct kp_toc_parser *p)
{
	struct kp_span key;
	uint32_t pairs;

	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c) && kp_mp_skip(&p->c);
	if (!kp_mp_str(&p->c, &key))
		return false;
	if (key.size > KP_NAME_MAX || !kp_text_ok(key)) {
		add_fault(p, key, (struct kp_span){0}, true,
			  "key is not UTF-8 without control bytes, or longer than 4096 "
			  "bytes");
		return kp_mp_skip(&p->c);
	}
	if (kp_mp_peek(&p->c) != KP_MP_MAP) {
		add_fault(p, key, (struct kp_span){0}, true, "value is not a map");
		return kp_mp_skip(&p->c);
	}
	if (!kp_mp_map(&p->c, &pairs))
		return false;
	p->key = key;
	p->key_added = false;
	/* The head of the map after the key has been read: its byte becomes the NUL. */
	p->toc->bytes[key.data + key.size - p->toc->bytes] = 0;
	if (is_bare_entry(p, pairs))
		return parse_bare_entry(p, pairs, key);
	while (pairs--)
		if (!parse_arch(p, key))
			return false;
	return true;
}
