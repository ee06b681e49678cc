/* SPDX-License-Identifier: MIT */
/*
 * The parser of a table of contents (its fields: toc.h): one pass over its bytes, in which keys
 * get their NULs in place and everything else stays where it is.  A fault of the table itself
 * ends it; a fault of one entry refuses that one.
 *
 *   table hash   compared first, as the NULs change the bytes that it covers
 *   top level    parse_top: a row of top_fields for each known name
 *   "toc"        parse_binary for a key, parse_entry for a map of fields, add_entry to judge
 *                them: what is wrong with an entry is only known when all of it was read
 *   places       settle_blobs: entries of scheme none may have places instead of ordinals
 *   strings      copied, with a NUL each
 *   order        toc_index.c
 *
 * What one does not know is no fault: unknown pairs are skipped and noted, so that a program
 * that rewrites the archive keeps them.  A known name with a value of a wrong type is one,
 * except where nothing depends on it.
 *
 * A table can have a million entries, so that this is what opening an archive takes: numbers
 * are read as nearly every writer encodes them, and MessagePack's other forms are left to
 * core/base/msgpack_read.h.  Counts are never trusted: an array is as large as the bytes that
 * are left can fill.
 */
#include "toc.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/msgpack_read.h"
#include "core/base/text.h"
#include "string_table.h"

/* The shortest entry is its architecture's and its map's head, "ordinal", a number. */
enum { SHORTEST = 1 + 1 + 8 + 1 };

/* The place of an entry of scheme none that has its own "offset" and "size". */
struct own_blob {
	uint32_t entry;
	bool has_ordinal;
	struct kp_toc_blob at;
};

struct parser {
	struct kp_mp c;
	struct kp_toc *toc;
	struct kpackx_error *why;
	struct kpackx_error scheme; /* why the scheme is not supported */
	bool no_memory, parsed;
	size_t entries_cap, binaries_cap;
	struct kp_span key; /* current key; becomes a binary with its first entry */
	bool key_added;
	struct own_blob *own;
	size_t n_own, own_cap;
	struct kp_string_table strings;
	struct kp_string_chain arch_chain, type_chain;
	size_t hash_end; /* of table_hash, wherever it is; 0: there is none */
};

static void parser_fini(struct parser *p)
{
	kp_string_table_fini(&p->strings);
	free(p->own);
	if (!p->parsed)
		kp_toc_fini(p->toc);
}

static bool no_memory(struct parser *p)
{
	p->no_memory = true;
	return false;
}

/* Read an integer; a negative one becomes UINT64_MAX, which is out of every range. */
static inline bool take_integer(struct parser *p, uint64_t *out)
{
	const uint8_t *at = p->c.pos;
	struct kp_mp_value v;

	if (!p->c.fault && p->c.end - at >= 5) {
		size_t used = 0;

		if (*at < 0x80) { /* a small number is its own head */
			*out = *at;
			used = 1;
		} else if (*at == 0xcc) { /* 8 bits */
			*out = at[1];
			used = 2;
		} else if (*at == 0xcd) { /* 16 bits */
			*out = (uint64_t)at[1] << 8 | at[2];
			used = 3;
		} else if (*at == 0xce) { /* 32 bits */
			*out = __builtin_bswap32(kp_le32(at + 1));
			used = 5;
		}
		p->c.pos += used;
		if (used)
			return true;
	}
	if (!kp_mp_next(&p->c, &v))
		return false;
	if (v.type != KP_MP_UINT && v.type != KP_MP_INT)
		return kp_mp_fault(&p->c, "not an integer");
	*out = v.type == KP_MP_UINT ? v.num : UINT64_MAX;
	return true;
}

/* Read the name of a pair; it is empty, as no known name is, if it is not a string. */
static inline bool take_name(struct kp_mp *c, struct kp_span *name)
{
	if (c->pos < c->end && (*c->pos & 0xe0) == 0xa0) /* as nearly all names begin */
		return kp_mp_str(c, name);
	*name = (struct kp_span){0};
	return kp_mp_peek(c) == KP_MP_STR ? kp_mp_str(c, name) : kp_mp_skip(c);
}

/*
 * Skip the value of an unknown pair that began at START, and note the pair.  RUN has its
 * owner: for an entry, the offset of its key, the number of entries before it, and, once
 * known, its arch.
 */
static bool skip_unknown(struct parser *p, struct kp_toc_more *list,
			 struct kp_more_run run, size_t start)
{
	struct kp_more_run *last = list->n ? &list->runs[list->n - 1] : NULL;

	if (!kp_mp_skip(&p->c))
		return false;
	run.at = (uint32_t)start;
	run.size = (uint32_t)(kp_mp_offset(&p->c) - start);
	run.count = 1;
	if (last && last->at + last->size == run.at) {
		last->size += run.size;
		last->count++;
		return true;
	}
	if (!kp_grow(&list->runs, list->n, &list->cap, sizeof(*list->runs)))
		return no_memory(p);
	list->runs[list->n++] = run;
	return true;
}

/* --- metadata ------------------------------------------------------------------------- */

/*
 * Find what decoding needs of the metadata at the cursor, and note where it is: the notes
 * replace the last bytes of the field's name, which has been read.
 */
static bool parse_metadata(struct parser *p, struct kp_meta_place *place)
{
	uint32_t xxh3 = 0, chunk = 0; /* offsets in the map of their values */
	bool seen_xxh3 = false, seen_chunk = false;
	size_t at = kp_mp_offset(&p->c);
	uint8_t *map = p->toc->bytes + at, *word = map;
	uint32_t pairs;

	_Static_assert(KP_TOC_SIZE_MAX - 1 <= KP_META_AT_MAX, "an offset fits");
	_Static_assert(sizeof("metadata") - 1 >= 2 * sizeof(xxh3), "the name has room");
	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--) {
		struct kp_span name = {0};
		struct kp_mp value;
		struct kp_mp_value v;

		if (kp_mp_peek(&p->c) == KP_MP_STR ? !kp_mp_str(&p->c, &name)
						   : !kp_mp_skip_nested(&p->c, 1))
			return false;
		value = p->c;
		if (!kp_mp_skip_nested(&p->c, 1))
			return false;
		if (!seen_xxh3 && kp_span_is(name, "xxh3")) {
			seen_xxh3 = true;
			if (kp_mp_next(&value, &v) && v.type == KP_MP_BIN &&
			    v.span.size == 16)
				xxh3 = (uint32_t)(v.span.data - map);
		} else if (!seen_chunk && kp_span_is(name, "chunk")) {
			const uint8_t *number = value.pos;

			seen_chunk = true;
			if (kp_mp_next(&value, &v) && v.type == KP_MP_UINT && v.num)
				chunk = (uint32_t)(number - map);
		}
	}
	*place = (struct kp_meta_place){at & KP_META_AT_MAX, chunk != 0, xxh3 != 0};
	if (xxh3)
		kp_put_le32(word -= 4, xxh3);
	if (chunk)
		kp_put_le32(word - 4, chunk);
	return true;
}

struct kp_decoding_facts kp_toc_decoding_facts(const struct kp_toc *toc,
					       const struct kp_toc_entry *e)
{
	const uint8_t *map = toc->bytes + e->meta.at, *word = map;
	struct kp_decoding_facts facts = {0};

	if (e->meta.has_xxh3) {
		word -= 4;
		facts.xxh3 = map + kp_le32(word);
	}
	if (e->meta.has_chunk && toc->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL) {
		struct kp_mp c = kp_mp_over(kp_toc_meta_map(toc, e));

		c.pos += kp_le32(word - 4);
		kp_mp_uint(&c, &facts.chunk);
	}
	return facts;
}

void kp_meta_texts(struct kp_span map, struct kp_meta *out)
{
	bool has_path = false, has_target = false, has_mode = false, ok;
	struct kp_mp c = kp_mp_over(map);
	uint32_t pairs;

	if (!map.size || !kp_mp_map(&c, &pairs))
		return;
	for (ok = true; ok && pairs; pairs--) {
		struct kp_span name, *text = NULL;
		enum kp_mp_type type;
		uint64_t mode = 0;

		if (!take_name(&c, &name))
			return;
		type = kp_mp_peek(&c);
		if (!has_path && kp_span_is(name, "path")) {
			has_path = true;
			text = &out->path;
		} else if (!has_target && kp_span_is(name, "target")) {
			has_target = true;
			text = &out->target;
		} else if (!has_mode && kp_span_is(name, "mode")) {
			has_mode = true;
			if (type == KP_MP_UINT) {
				ok = kp_mp_uint(&c, &mode);
				out->mode = (uint32_t)mode & 07777;
				continue;
			}
		}
		ok = text && type == KP_MP_STR ? kp_mp_str(&c, text) : kp_mp_skip(&c);
	}
}

/* --- one entry -------------------------------------------------------------------- */

enum field { ORDINAL, ORIGINAL_SIZE, OFFSET, SIZE, TYPE, METADATA, FIELDS };

/* The fields of one entry as read. */
struct raw_entry {
	uint64_t ordinal, original_size, offset, size;
	struct kp_span type;
	size_t more; /* its first run of unknown pairs */
	struct kp_meta_place meta;
	unsigned seen; /* bits of enum field */
	bool bad_type; /* "type" is not a string */
};

/* The length distinguishes all names but two; then one comparison of known size decides. */
static inline enum field field_of(struct kp_span name)
{
	switch (name.size) {
	case 4:
		return memcmp(name.data, "type", 4) == 0   ? TYPE
		       : memcmp(name.data, "size", 4) == 0 ? SIZE
							   : FIELDS;
	case 6:
		return memcmp(name.data, "offset", 6) == 0 ? OFFSET : FIELDS;
	case 7:
		return memcmp(name.data, "ordinal", 7) == 0 ? ORDINAL : FIELDS;
	case 8:
		return memcmp(name.data, "metadata", 8) == 0 ? METADATA : FIELDS;
	case 13:
		return memcmp(name.data, "original_size", 13) == 0 ? ORIGINAL_SIZE
								   : FIELDS;
	default:
		return FIELDS;
	}
}

/* Parse the PAIRS pairs of an entry's map. */
static bool parse_entry(struct parser *p, uint32_t pairs, struct raw_entry *r,
			struct kp_span key, struct kp_span arch)
{
	const struct kp_more_run own = {
		.key = (uint32_t)(p->key.data - p->toc->bytes),
		.entry = (uint32_t)p->toc->n_entries,
	};

	*r = (struct raw_entry){
		.type = {(const uint8_t *)"hsaco", 5},
		.more = p->toc->entries_more.n,
	};
	while (pairs--) {
		size_t start = kp_mp_offset(&p->c);
		enum field field;
		struct kp_span name;
		bool ok;

		if (!take_name(&p->c, &name))
			return false;
		field = field_of(name);
		if (field < FIELDS && r->seen & 1u << field) {
			kp_faults_add_entry(&p->toc->faults, key, arch, false,
					    "a field twice, the first counts");
			if (!kp_mp_skip(&p->c))
				return false;
			continue;
		}
		switch (field) {
		case ORDINAL:
			ok = take_integer(p, &r->ordinal);
			break;
		case ORIGINAL_SIZE:
			ok = take_integer(p, &r->original_size);
			break;
		case OFFSET:
			ok = take_integer(p, &r->offset);
			break;
		case SIZE:
			ok = take_integer(p, &r->size);
			break;
		case TYPE:
			r->bad_type = kp_mp_peek(&p->c) != KP_MP_STR;
			ok = r->bad_type ? kp_mp_skip(&p->c) : kp_mp_str(&p->c, &r->type);
			break;
		case METADATA:
			if (kp_mp_peek(&p->c) == KP_MP_MAP) {
				ok = parse_metadata(p, &r->meta);
				break;
			} /* fall through */
		default:
			ok = skip_unknown(p, &p->toc->entries_more, own, start);
		}
		if (!ok)
			return false;
		r->seen |= 1u << field;
	}
	return true;
}

static bool number_string(struct parser *p, struct kp_string_chain *chain,
			  struct kp_span text, uint16_t *out)
{
	enum kp_strings_result result = kp_string_next(&p->strings, chain, text, out);

	if (result == KP_STRINGS_FULL)
		return kp_mp_fault(&p->c,
				   "more than 65535 distinct architectures and types");
	return result == KP_STRINGS_OK || no_memory(p);
}

/*
 * Append the entry, or note why it is refused.  Its key becomes a binary only with its first
 * entry, so that a key whose entries are all refused leaves nothing behind.
 */
static bool add_entry(struct parser *p, struct kp_span key, struct kp_span arch,
		      const struct raw_entry *r)
{
	const unsigned place = 1u << OFFSET | 1u << SIZE;
	bool own = (r->seen & place) == place, has_ordinal = r->seen & 1u << ORDINAL;
	struct kp_toc *toc = p->toc;
	struct kp_toc_entry e = {.size = KP_TOC_NO_SIZE, .meta = r->meta};
	const char *why = NULL;

	if (!number_string(p, &p->arch_chain, arch, &e.arch) ||
	    !number_string(p, &p->type_chain, r->type, &e.type))
		return false;
	if (!p->strings.info[e.arch].is_name)
		why = "architecture is not UTF-8 without control bytes, or empty, or "
		      "too long";
	else if (r->bad_type || !p->strings.info[e.type].is_name)
		why = "type is not a valid name";
	else if (!own && !has_ordinal)
		why = "no ordinal";
	else if (has_ordinal && r->ordinal > UINT32_MAX)
		why = "ordinal is negative or beyond 32 bits";
	if (why) {
		kp_faults_add_entry(&p->toc->faults, key, arch, true, why);
		toc->entries_more.n = r->more;
		return true;
	}
	for (size_t i = r->more; i < toc->entries_more.n; i++)
		toc->entries_more.runs[i].arch = e.arch;
	if (r->seen & 1u << ORIGINAL_SIZE) /* a negative size exceeds every limit */
		e.size = r->original_size == UINT64_MAX ? UINT64_MAX - 1
							: r->original_size;
	if (!p->key_added) {
		/* plus one: kp_toc_index adds a sentinel after the last binary */
		if (!kp_grow(&toc->binaries, toc->n_binaries + 1, &p->binaries_cap,
			     sizeof(*toc->binaries)))
			return no_memory(p);
		toc->binaries[toc->n_binaries++] = (struct kp_toc_binary){
			(uint32_t)(p->key.data - toc->bytes), (uint32_t)p->key.size,
			(uint32_t)toc->n_entries};
		p->key_added = true;
	}
	e.ordinal = (uint32_t)r->ordinal;
	e.binary = (uint32_t)toc->n_binaries - 1;
	if (own) {
		if (!kp_grow(&p->own, p->n_own, &p->own_cap, sizeof(*p->own)))
			return no_memory(p);
		p->own[p->n_own++] = (struct own_blob){
			(uint32_t)toc->n_entries, has_ordinal, {r->offset, r->size}};
	}
	if (toc->n_entries == p->entries_cap)
		return kp_mp_fault(&p->c, "more entries than bytes can hold");
	toc->entries[toc->n_entries++] = e;
	return true;
}

/* --- one key ------------------------------------------------------------------------ */

/*
 * Whether the map at the cursor is itself an entry, without the arch level: one of its
 * keys is a field of entries and has a value that is not a map.  An architecture's value
 * is always a map.
 */
static bool is_bare_entry(const struct parser *p, uint32_t pairs)
{
	struct kp_mp c = p->c;

	while (pairs--) {
		struct kp_span name = {0};
		enum field field;
		bool is_map;

		if (kp_mp_peek(&c) != KP_MP_STR || !kp_mp_str(&c, &name))
			return false;
		field = field_of(name);
		is_map = kp_mp_peek(&c) == KP_MP_MAP;
		if (!is_map && field < METADATA)
			return true;
		if ((is_map && field != METADATA) || !kp_mp_skip(&c))
			return false;
	}
	return false;
}

/* Parse one key of the "toc" map with all its entries. */
static bool parse_binary(struct parser *p)
{
	const struct kp_span none = {0};
	struct kp_span key, arch = {0};
	const char *fault = NULL;
	struct raw_entry r;
	uint32_t pairs, n;
	size_t begin = 0;

	if (kp_mp_peek(&p->c) != KP_MP_STR)
		return kp_mp_skip(&p->c) && kp_mp_skip(&p->c);
	if (!kp_mp_str(&p->c, &key))
		return false;
	if (key.size > KP_NAME_MAX || !kp_text_ok(key))
		fault = "key is not UTF-8 without control bytes, or longer than 4096 "
			"bytes";
	else if (kp_mp_peek(&p->c) != KP_MP_MAP)
		fault = "value is not a map";
	if (fault) {
		kp_faults_add_entry(&p->toc->faults, key, none, true, fault);
		return kp_mp_skip(&p->c);
	}
	if (!kp_mp_map(&p->c, &pairs))
		return false;
	p->key = key;
	p->key_added = false;
	/* The head of the map after the key has been read: its byte becomes the NUL. */
	p->toc->bytes[key.data + key.size - p->toc->bytes] = 0;
	if (is_bare_entry(p, pairs)) {
		if (!parse_entry(p, pairs, &r, key, none))
			return false;
		/*
		 * The architecture is in the key, as kpack's design paper has it
		 * ("rocblas/gfx1100/kernel"): the first component that looks like one.
		 */
		for (size_t i = 0; i <= key.size; i++) {
			if (i < key.size && key.data[i] != '/')
				continue;
			arch = (struct kp_span){key.data + begin, i - begin};
			if ((arch.size > 3 && (kp_span_starts(arch, "gfx", 3) ||
					       kp_span_starts(arch, "sm_", 3))) ||
			    (arch.size > 8 && kp_span_starts(arch, "compute_", 8)) ||
			    kp_span_is(arch, "amdgcnspirv"))
				return add_entry(p, key, arch, &r);
			begin = i + 1;
		}
		kp_faults_add_entry(&p->toc->faults, key, none, true,
				    "no architecture, neither under the key nor in it");
		return true;
	}
	while (pairs--) {
		if (kp_mp_peek(&p->c) != KP_MP_STR) {
			if (!kp_mp_skip(&p->c) || !kp_mp_skip(&p->c))
				return false;
			continue;
		}
		if (!kp_mp_str(&p->c, &arch))
			return false;
		if (kp_mp_peek(&p->c) != KP_MP_MAP) {
			kp_faults_add_entry(&p->toc->faults, key, arch, true,
					    "entry is not a map");
			if (!kp_mp_skip(&p->c))
				return false;
			continue;
		}
		if (!kp_mp_map(&p->c, &n) || !parse_entry(p, n, &r, key, arch) ||
		    !add_entry(p, key, arch, &r))
			return false;
	}
	return true;
}

static bool parse_keys(struct parser *p)
{
	uint32_t pairs;
	size_t left;

	p->toc->has_toc = true;
	if (!kp_mp_map(&p->c, &pairs))
		return false;
	/* room for all binaries and their sentinel, as kp_grow would copy a table of many often */
	left = (size_t)(p->c.end - p->c.pos) / SHORTEST;
	p->binaries_cap = (pairs < left ? pairs : left) + 2;
	p->toc->binaries = kp_large_alloc(p->binaries_cap * sizeof(*p->toc->binaries));
	if (!p->toc->binaries)
		return no_memory(p);
	while (pairs--)
		if (!parse_binary(p))
			return false;
	return true;
}

/* --- maps with few known fields ----------------------------------------------------- */

/* How to read the value of a field into a struct. */
struct map_field {
	const char *name;
	enum { INTEGER, TEXT, BYTES, OWN } kind;
	uint16_t at;  /* offset in the struct of the value */
	uint16_t has; /* ... of a bool that becomes true; 0: none */
	const char *fault;
	bool (*parse)(struct parser *p); /* OWN */
};

/*
 * Parse a map's FIELDS into TO; SEEN gets a bit for each.  Of equal names the first counts: others
 * are a fault, and unknown pairs are noted in MORE; or OTHERS, unless NULL, says that there are any.
 */
static bool parse_fields(struct parser *p, const struct map_field *fields, size_t n,
			 void *to, unsigned *seen, struct kp_toc_more *more, bool *others)
{
	uint32_t pairs;

	if (!kp_mp_map(&p->c, &pairs))
		return false;
	while (pairs--) {
		size_t start = kp_mp_offset(&p->c), i = 0;
		struct kp_span name;
		bool ok = false;

		if (!take_name(&p->c, &name))
			return false;
		while (i < n && !kp_span_is(name, fields[i].name))
			i++;
		if (i < n && !(*seen & 1u << i)) {
			const struct map_field *f = &fields[i];
			uint8_t *at = (uint8_t *)to + f->at;
			struct kp_mp_value v;

			*seen |= 1u << i;
			switch (f->kind) {
			case INTEGER:
				ok = take_integer(p, (uint64_t *)(void *)at);
				break;
			case TEXT: /* only people read it: another type counts as absent */
				if (kp_mp_peek(&p->c) != KP_MP_STR) {
					if (!kp_mp_skip(&p->c))
						return false;
					continue;
				}
				ok = kp_mp_str(&p->c, (struct kp_span *)(void *)at);
				break;
			case BYTES:
				if (!kp_mp_next(&p->c, &v))
					return false;
				if (v.type != KP_MP_BIN)
					return kp_mp_fault(&p->c, f->fault);
				*(struct kp_span *)(void *)at = v.span;
				ok = true;
				break;
			case OWN:
				ok = f->parse(p);
				break;
			}
			if (ok && f->has)
				*((bool *)to + f->has) = true;
		} else if (others) {
			*others = true;
			ok = kp_mp_skip(&p->c);
		} else if (i == n) {
			ok = skip_unknown(p, more, (struct kp_more_run){0}, start);
		} else {
			kp_faults_add(&p->toc->faults, false,
				      "toc: %s twice, the first counts", fields[i].name);
			ok = kp_mp_skip(&p->c);
		}
		if (!ok)
			return false;
	}
	return true;
}

static bool parse_blobs(struct parser *p)
{
	static const struct map_field fields[] = {
		{.name = "offset", .at = offsetof(struct kp_toc_blob, offset)},
		{.name = "size", .at = offsetof(struct kp_toc_blob, size)},
	};
	struct kp_toc *toc = p->toc;
	uint64_t least, left;
	uint32_t n;

	toc->has_blobs = true;
	if (!kp_mp_array(&p->c, &n))
		return false;
	/* the shortest blob is the head of a map, "offset", "size" and two numbers */
	least = (uint64_t)n * (1 + 7 + 1 + 5 + 1);
	left = (size_t)(p->c.end - p->c.pos);
	if (least > left)
		return kp_mp_fault_at_end(&p->c, "more blobs than bytes can hold",
					  least - left);
	toc->blobs = calloc(n ? n : 1, sizeof(*toc->blobs));
	if (!toc->blobs)
		return no_memory(p);
	for (; toc->n_blobs < n; toc->n_blobs++) {
		unsigned seen = 0;

		if (!parse_fields(p, fields, KP_COUNT(fields), &toc->blobs[toc->n_blobs],
				  &seen, NULL, &toc->blobs_more))
			return false;
		if (seen != 3)
			return kp_mp_fault(&p->c, "a blob without offset and size");
	}
	return true;
}

/* A value of another type is of no use; without it the archive is refused. */
static bool parse_shared(struct parser *p)
{
#define IN_LAYOUT(field) offsetof(struct kp_shared_layout, field)
	static const char fault[] = "zstd_shared: a table is not bin";
	static const struct map_field fields[] = {
		{.name = "offset", .at = IN_LAYOUT(offset)},
		{.name = "size", .at = IN_LAYOUT(size)},
		{.name = "block_size", .at = IN_LAYOUT(block_size)},
		{.name = "unique_size", .at = IN_LAYOUT(unique_size)},
		{.name = "dictionary_size", .at = IN_LAYOUT(dictionary_size)},
		{"frames", BYTES, IN_LAYOUT(frames), 0, fault, NULL},
		{"objects", BYTES, IN_LAYOUT(objects), 0, fault, NULL},
		{"frame_hashes", BYTES, IN_LAYOUT(hashes), 0, fault, NULL}, /* optional */
	};
	const unsigned needed = (1u << (KP_COUNT(fields) - 1)) - 1;
	unsigned seen = 0;
	bool others;

	if (kp_mp_peek(&p->c) != KP_MP_MAP)
		return kp_mp_skip(&p->c);
	if (!parse_fields(p, fields, KP_COUNT(fields), &p->toc->shared, &seen, NULL,
			  &others))
		return false;
	p->toc->has_shared = (seen & needed) == needed;
	return true;
}

/* --- the top level ---------------------------------------------------------------- */

static bool parse_arches(struct parser *p)
{
	struct kp_toc *toc = p->toc;
	uint32_t n;

	toc->has_arches = true;
	if (!kp_mp_array(&p->c, &n))
		return false;
	if (n > KP_STRINGS_MAX)
		return kp_mp_fault(&p->c, "more than 65535 gfx_arches");
	toc->arches = calloc(n ? n : 1, sizeof(*toc->arches));
	if (!toc->arches)
		return no_memory(p);
	for (; n; n--) {
		bool is_text = kp_mp_peek(&p->c) == KP_MP_STR;
		struct kp_span s;

		if (is_text ? !kp_mp_str(&p->c, &s) : !kp_mp_skip(&p->c))
			return false;
		if (is_text && kp_text_ok(s))
			toc->arches[toc->n_arches++] = s;
		else
			kp_faults_add(&toc->faults, false, "toc: gfx_arches: not %s",
				      is_text ? "UTF-8 without control bytes"
					      : "a string");
	}
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
	if (kp_scheme_find(s, &toc->scheme))
		return true;
	/* a later version, perhaps: that is another error than bytes that are no MessagePack */
	kp_fail(&p->scheme, KPACK_ERROR_NOT_IMPLEMENTED,
		"toc: compression_scheme '%s' is not supported",
		kp_text_escape(s, text, sizeof(text)));
	return kp_mp_fault(&p->c, "unknown scheme");
}

static bool parse_version(struct parser *p)
{
	if (kp_mp_peek(&p->c) != KP_MP_UINT)
		return kp_mp_skip(&p->c);
	return take_integer(p, &p->toc->format_version);
}

/* Its value was compared already if it is at the end, where it belongs. */
static bool parse_table_hash(struct parser *p)
{
	bool ok = kp_mp_skip(&p->c);

	p->hash_end = kp_mp_offset(&p->c);
	return ok;
}

#define IN_TOC(field) offsetof(struct kp_toc, field)
static const struct map_field top_fields[] = {
	{.name = "toc", OWN, .parse = parse_keys},
	{.name = "gfx_arches", OWN, .parse = parse_arches},
	{.name = "blobs", OWN, .parse = parse_blobs},
	{.name = "compression_scheme", OWN, .parse = parse_scheme},
	{.name = "zstd_offset", INTEGER, IN_TOC(zstd_offset), IN_TOC(has_zstd_offset)},
	{.name = "zstd_size", INTEGER, IN_TOC(zstd_size), IN_TOC(has_zstd_size)},
	{"frame_index", BYTES, IN_TOC(frame_index), 0, "frame_index is not bin", NULL},
	{"piece_hashes", BYTES, IN_TOC(piece_hashes), 0, "piece_hashes is not bin", NULL},
	{.name = "table_hash", OWN, .parse = parse_table_hash},
	{.name = "zstd_shared", OWN, .parse = parse_shared},
	{.name = "group_name", TEXT, IN_TOC(group), IN_TOC(has_group)},
	{.name = "gfx_arch_family", TEXT, IN_TOC(family), IN_TOC(has_family)},
	{.name = "format_version", OWN, .parse = parse_version},
};

/* Move a string over its head, already read, to make room for a NUL. */
static void end_string(struct kp_toc *toc, struct kp_span *s)
{
	uint8_t *to = toc->bytes + (s->data - toc->bytes) - 1;

	memmove(to, s->data, s->size);
	to[s->size] = 0;
	s->data = to;
}

static bool parse_top(struct parser *p)
{
	struct kp_toc *toc = p->toc;
	unsigned seen = 0;

	if (!parse_fields(p, top_fields, KP_COUNT(top_fields), toc, &seen, &toc->more,
			  NULL))
		return false;
	toc->used = toc->in_file = kp_mp_offset(&p->c);
	for (size_t i = 0; i < toc->n_arches; i++)
		end_string(toc, &toc->arches[i]);
	if (toc->group.data)
		end_string(toc, &toc->group);
	if (toc->family.data)
		end_string(toc, &toc->family);
	return true;
}

/* --- blobs ------------------------------------------------------------------------ */

/*
 * Check the array of blobs.  Without one: make blobs of the places that entries have
 * themselves, which are checked later.
 */
static kpack_error_t settle_blobs(struct parser *p, uint64_t file_size)
{
	struct kp_toc *toc = p->toc;
	struct kp_toc_blob *blobs;

	if (toc->scheme == KPACK_COMPRESSION_NOOP && !toc->has_blobs && p->n_own) {
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
	for (size_t i = 0; i < p->n_own;
	     i++) /* unusable: refused later as out of range */
		if (!p->own[i].has_ordinal)
			toc->entries[p->own[i].entry].ordinal = UINT32_MAX;
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

/* --- the calls -------------------------------------------------------------------- */

kpack_error_t kp_toc_parse(uint8_t *bytes, size_t size, uint64_t file_size,
			   struct kp_toc *toc, struct kpackx_error *why)
{
	KP_AUTO(parser) p = {.toc = toc, .why = why};
	size_t hashed = hashed_size(bytes, size), texts = 0;
	struct kp_hash hash = kp_hash_of(bytes, hashed);
	uint8_t *to;
	bool ok;

	p.c = kp_mp_over((struct kp_span){bytes, size});
	*toc = (struct kp_toc){.bytes = bytes, .size = size};
	/* before the table is parsed, which changes its bytes */
	toc->hash = kp_le64(hash.bytes);
	toc->has_table_hash = hashed < size;
	if (toc->has_table_hash && !kp_hash_is(&hash, bytes + hashed))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: does not match its table_hash: damaged");

	/* room for the most entries there can be; unused memory is given back later */
	p.entries_cap = size / SHORTEST + 1;
	toc->entries = kp_large_alloc(p.entries_cap * sizeof(*toc->entries));
	ok = toc->entries ? parse_top(&p) : no_memory(&p);
	/* the texts outlive the string table; they are borrowed from the bytes until they are copied */
	toc->strings = p.strings.texts;
	toc->n_strings = p.strings.n;
	p.strings.texts = NULL;
	if (p.no_memory)
		return kp_fail_memory(why, size, "the table of contents");
	if (p.scheme.code)
		return kp_fail(why, p.scheme.code, "%s", p.scheme.text);
	/*
	 * Where bytes are missing, the rest of the table is, unless its hash says that this is all
	 * of it, or no table is as long as would be needed.
	 */
	if (!ok)
		return kp_mp_fail(&p.c,
				  !toc->has_table_hash && p.c.missing &&
						  p.c.missing <= KP_TOC_SIZE_MAX
					  ? "truncated: its table of contents ends early"
					  : "toc",
				  why);
	toc->entries =
		kp_large_trim(toc->entries, toc->n_entries * sizeof(*toc->entries));
	/*
	 * If names follow table_hash, a program that does not know it copied it from the archive
	 * that it changed, and with it hashes and offsets of objects that this one does not have.
	 * No flipped bit makes such a table of another.
	 */
	if (!toc->has_table_hash && p.hash_end && p.hash_end < toc->used) {
		toc->piece_hashes = toc->frame_index = (struct kp_span){0};
		toc->copied_hashes = true;
	}
	/*
	 * A writer of piece_hashes or frame_hashes also writes table_hash.  Where that is not at
	 * the end, its name or value was damaged, or bytes follow the table.
	 */
	if (!toc->has_table_hash && (p.hash_end == toc->used || toc->piece_hashes.data ||
				     toc->shared.hashes.data))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: does not end with its table_hash: damaged");
	KP_TRY(settle_blobs(&p, file_size));

	/*
	 * Copy the strings and give each a NUL, for which an architecture inside a key has no
	 * room.  Those that are too long for names are left out, since no entry has them.
	 */
	for (size_t i = 0; i < toc->n_strings; i++)
		if (toc->strings[i].size <= KP_NAME_MAX)
			texts += toc->strings[i].size + 1;
	KP_TRY(kp_new(&toc->texts, texts, "architectures", why));
	to = toc->texts;
	for (size_t i = 0; i < toc->n_strings; i++) {
		struct kp_span *s = &toc->strings[i];

		if (s->size > KP_NAME_MAX)
			continue;
		memcpy(to, s->data, s->size);
		s->data = to;
		to += s->size + 1;
	}
	KP_TRY(kp_toc_index(toc, why));
	p.parsed = true;
	return KPACK_SUCCESS;
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

bool kp_toc_entry_fault(struct kp_toc *toc, const struct kp_toc_entry *e, bool refused,
			const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	kp_faults_add_entry(&toc->faults, kp_toc_key(toc, e->binary),
			    toc->strings[e->arch], refused, text);
	return refused;
}
