/* SPDX-License-Identifier: MIT */
/*
 * Parsing the stored form of recipes, which kpack-format(5) describes: a zstd frame of one
 * MessagePack map, then the tables in its bins, then the parts.  A parsed recipe is sound: its parts
 * add up to the original, what they refer to exists, and what they make is bounded.
 */
#include "recipe.h"
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "core/archive/frames.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "core/format/bundle.h"

/* Parts of one recipe: a bundle has two for each object, and a few more. */
#define PARTS_MAX (4 * (size_t)KP_IMAGES_MAX)

/* Bytes before those of a skippable frame: magic and size. */
#define SKIP_HEADER 8

/* How many operands the kinds of parts have. */
static const uint8_t n_operands[KP_PART_KINDS] = {
	[KP_PART_COPY] = 2,   [KP_PART_BYTES] = 1, [KP_PART_ZEROS] = 1,
	[KP_PART_OBJECT] = 1, [KP_PART_RANGE] = 3, [KP_PART_COMPRESSED] = 2,
};

const char *const kp_recipe_bins[KP_BINS] = {
	"copied",   "objects",    "unknown", "hashes", "containers",
	"wrappers", "compressed", "parts",   "bytes",
};

void kp_recipe_fini(struct kp_recipe *r)
{
	for (size_t i = 0; i < r->n_targets; i++) {
		free(r->targets[i].id);
		free(r->targets[i].arch);
	}
	free(r->targets);
	free(r->target_slots.slots);
	free(r->parts);
	free(r->images);
	free(r->containers);
	free(r->forms);
	free(r->wrapper_container);
	free(r->bytes);
	free(r->kept);
	*r = (struct kp_recipe){0};
}

/* Number the containers as archives do: by wrapper, then containers without a wrapper. */
static void number_containers(struct kp_recipe *r)
{
	uint32_t next = (uint32_t)r->n_wrappers;

	for (size_t c = 0; c < r->n_containers; c++)
		r->containers[c].index = UINT32_MAX;
	for (size_t w = r->n_wrappers; w-- > 0;)
		r->containers[r->wrapper_container[w]].index = (uint32_t)w;
	for (size_t c = 0; c < r->n_containers; c++)
		if (r->containers[c].index == UINT32_MAX)
			r->containers[c].index = next++;
}

uint32_t kp_recipe_index(const struct kp_recipe *r, uint32_t container)
{
	return r->containers[container].index;
}

/* ---- parsing the map ---- */

struct parser {
	struct kp_mp c;
	struct kp_recipe r;
	struct kp_span bins[KP_BINS];
	const char *name;  /* of the bin that is read */
	struct kp_span at; /* what is left of it */
	struct kpackx_error *why;
};

static kpack_error_t fail_invalid(const struct parser *p, const char *what)
{
	return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA, "recipe: %s: %s", p->name,
		       what);
}

/* Fail because the next value is none of the wanted type, or is broken. */
static kpack_error_t fail_value(struct parser *p, const char *wanted)
{
	if (p->c.fault)
		return kp_mp_fail(&p->c, "recipe", p->why);
	return fail_invalid(p, wanted);
}

static kpack_error_t read_uint(struct parser *p, uint64_t most, uint64_t *n)
{
	if (kp_mp_peek(&p->c) != KP_MP_UINT && kp_mp_peek(&p->c) != KP_MP_BAD)
		return fail_invalid(p, "not a number");
	if (!kp_mp_uint(&p->c, n))
		return fail_value(p, "");
	return *n <= most ? KPACK_SUCCESS : fail_invalid(p, "too large a number");
}

static kpack_error_t read_bin(struct parser *p, struct kp_span *bytes)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v) || v.type != KP_MP_BIN)
		return fail_value(p, "not bytes");
	*bytes = v.span;
	return KPACK_SUCCESS;
}

static kpack_error_t read_hash(struct parser *p, uint8_t hash[16])
{
	struct kp_span bytes = {0};

	KP_TRY(read_bin(p, &bytes));
	if (bytes.size != 16)
		return fail_invalid(p, "a hash has 16 bytes");
	memcpy(hash, bytes.data, 16);
	return KPACK_SUCCESS;
}

static kpack_error_t read_array(struct parser *p, uint32_t least, uint32_t most,
				uint32_t *n)
{
	if (kp_mp_peek(&p->c) != KP_MP_ARRAY || !kp_mp_array(&p->c, n))
		return fail_value(p, "not an array");
	return *n >= least && *n <= most ? KPACK_SUCCESS
					 : fail_invalid(p, "a wrong number of members");
}

/* Read a text of at most MOST bytes without a NUL to the heap. */
static kpack_error_t read_text(struct parser *p, size_t most, char **out)
{
	struct kp_span text;

	if (kp_mp_peek(&p->c) != KP_MP_STR || !kp_mp_str(&p->c, &text))
		return fail_value(p, "not a text");
	if (text.size > most || (text.size && memchr(text.data, '\0', text.size)))
		return fail_invalid(p, "a text that is too long, or has a NUL");
	*out = strndup(text.size ? (const char *)text.data : "", text.size);
	return *out ? KPACK_SUCCESS : kp_fail_memory(p->why, text.size, "a recipe");
}

static kpack_error_t read_targets(struct parser *p)
{
	struct kp_recipe *r = &p->r;
	uint32_t n, three;

	KP_TRY(read_array(p, 0, KP_IMAGES_MAX, &n));
	while (n--) {
		struct kp_recipe_target *t;
		struct kp_mp_value host;

		KP_TRY(kp_room(&r->targets, r->n_targets, &r->targets_cap, "a recipe",
			       p->why));
		t = &r->targets[r->n_targets++];
		*t = (struct kp_recipe_target){0};
		KP_TRY(read_array(p, 3, 3, &three));
		if (kp_mp_peek(&p->c) == KP_MP_NIL)
			kp_mp_skip(&p->c);
		else
			KP_TRY(read_text(p, KP_ENTRY_ID_MAX, &t->id));
		KP_TRY(read_text(p, KP_TARGET_TEXT_MAX - 1, &t->arch));
		if (!kp_mp_next(&p->c, &host) || host.type != KP_MP_BOOL)
			return fail_value(p, "neither true nor false");
		t->host = host.num;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_section(struct parser *p)
{
	uint32_t two;

	KP_TRY(read_array(p, 2, 2, &two));
	KP_TRY(read_uint(p, INT64_MAX, &p->r.section_offset));
	KP_TRY(read_uint(p, KP_LAYOUT_SECTION_MAX, &p->r.section_size));
	p->r.has_section = true;
	return KPACK_SUCCESS;
}

static kpack_error_t read_time(struct parser *p, struct timespec *out)
{
	struct kp_mp_value seconds;
	uint64_t ns;

	if (!kp_mp_next(&p->c, &seconds) ||
	    (seconds.type != KP_MP_UINT && seconds.type != KP_MP_INT))
		return fail_value(p, "not a time");
	KP_TRY(read_uint(p, 999999999, &ns));
	*out = (struct timespec){(time_t)seconds.num, (long)ns};
	return KPACK_SUCCESS;
}

static kpack_error_t read_file(struct parser *p)
{
	struct kp_recipe_file *f = &p->r.file;
	uint64_t mode, uid, gid;
	uint32_t ten;

	KP_TRY(read_array(p, 10, 10, &ten));
	KP_TRY(read_hash(p, f->xxh3));
	KP_TRY(read_uint(p, INT64_MAX, &f->changed_size));
	f->removed = kp_mp_peek(&p->c) == KP_MP_NIL;
	if (f->removed)
		kp_mp_skip(&p->c);
	else
		KP_TRY(read_hash(p, f->changed_xxh3));
	KP_TRY(read_uint(p, 07777, &mode));
	KP_TRY(read_uint(p, UINT32_MAX, &uid));
	KP_TRY(read_uint(p, UINT32_MAX, &gid));
	f->mode = (unsigned)mode;
	f->uid = (unsigned)uid;
	f->gid = (unsigned)gid;
	KP_TRY(read_time(p, &f->mtime));
	KP_TRY(read_time(p, &f->kept));
	p->r.has_file = true;
	return KPACK_SUCCESS;
}

static kpack_error_t read_version(struct parser *p)
{
	uint64_t n;

	KP_TRY(read_uint(p, UINT64_MAX, &n));
	if (n == KP_RECIPE_VERSION)
		return KPACK_SUCCESS;
	return kp_fail(p->why, KPACK_ERROR_UNSUPPORTED_VERSION,
		       "recipe: version %" PRIu64 ", only %d is supported", n,
		       KP_RECIPE_VERSION);
}

static kpack_error_t read_size(struct parser *p)
{
	return read_uint(p, INT64_MAX, &p->r.size);
}

static const struct field {
	const char *name;
	bool required;
	kpack_error_t (*read)(struct parser *p);
} fields[] = {
	{"version", true, read_version},  {"size", true, read_size},
	{"section", false, read_section}, {"file", false, read_file},
	{"targets", true, read_targets},
};

static kpack_error_t read_map(struct parser *p)
{
	enum { FIELDS = KP_COUNT(fields) };
	unsigned seen = 0;
	uint32_t pairs;

	p->name = "the map";
	if (kp_mp_peek(&p->c) != KP_MP_MAP || !kp_mp_map(&p->c, &pairs))
		return fail_value(p, "not a map");
	while (pairs--) {
		struct kp_span key = {0};
		size_t i = 0, b = 0;

		if (kp_mp_peek(&p->c) == KP_MP_STR)
			kp_mp_str(&p->c, &key);
		else
			kp_mp_skip(&p->c);
		while (i < FIELDS && !kp_span_is(key, fields[i].name))
			i++;
		while (b < KP_BINS && !kp_span_is(key, kp_recipe_bins[b]))
			b++;
		if (i == FIELDS && b == KP_BINS) {
			if (!kp_mp_skip(&p->c))
				return fail_value(p, "");
			continue;
		}
		p->name = i < FIELDS ? fields[i].name : kp_recipe_bins[b];
		if (seen & 1u << (i < FIELDS ? i : FIELDS + b))
			return fail_invalid(p, "for the second time");
		seen |= 1u << (i < FIELDS ? i : FIELDS + b);
		KP_TRY(i < FIELDS ? fields[i].read(p) : read_bin(p, &p->bins[b]));
	}
	for (size_t i = 0; i < FIELDS; i++) {
		p->name = fields[i].name;
		if (fields[i].required && !(seen & 1u << i))
			return fail_invalid(p, "is missing");
	}
	return KPACK_SUCCESS;
}

/* ---- parsing its tables ---- */

static void begin_bin(struct parser *p, enum kp_recipe_bin b)
{
	p->name = kp_recipe_bins[b];
	p->at = p->bins[b];
}

static kpack_error_t get_number(struct parser *p, uint64_t most, uint64_t *n)
{
	*n = 0;
	for (unsigned shift = 0; p->at.size && shift < 63; shift += 7) {
		uint8_t byte = *p->at.data;

		p->at = kp_span_tail(p->at, 1);
		*n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return *n <= most ? KPACK_SUCCESS
					  : fail_invalid(p, "a number is too large");
	}
	return fail_invalid(p, "a number has no end");
}

static kpack_error_t get_signed(struct parser *p, uint64_t *d)
{
	KP_TRY(get_number(p, INT64_MAX, d));
	*d = *d >> 1 ^ (0 - (*d & 1));
	return KPACK_SUCCESS;
}

static kpack_error_t get_bytes(struct parser *p, void *out, size_t n)
{
	if (n > p->at.size)
		return fail_invalid(p, "bytes are missing");
	memcpy(out, p->at.data, n);
	p->at = kp_span_tail(p->at, n);
	return KPACK_SUCCESS;
}

/* Read the objects, whose number is that of all containers, or what KP_BIN_OBJECTS has. */
static kpack_error_t get_images(struct parser *p)
{
	struct kp_recipe *r = &p->r;
	uint64_t n, meant = 0;
	size_t numbers = 0;

	begin_bin(p, KP_BIN_OBJECTS);
	for (size_t i = 0; i < p->at.size; i++)
		numbers += p->at.data[i] < 0x80;
	if (numbers % 2 || numbers / 2 > KP_IMAGES_MAX)
		return fail_invalid(p, "a wrong number of numbers");
	r->n_images = numbers / 2;
	KP_TRY(kp_new(&r->images, r->n_images + 1, "a recipe", p->why));
	for (size_t i = 0; i < r->n_images; i++) {
		struct kp_recipe_image *image = &r->images[i];

		KP_TRY(get_number(p, UINT32_MAX, &n));
		if (n >= r->n_targets)
			return fail_invalid(p, "a target that is not listed");
		image->target = (uint32_t)n;
		image->id = r->targets[n].id;
		image->arch = r->targets[n].arch;
		image->host = r->targets[n].host;
	}
	for (size_t i = 0; i < r->n_images; i++) {
		struct kp_recipe_image *image = &r->images[i];

		KP_TRY(get_number(p, KP_OBJECT_MAX, &image->size));
		image->has_xxh3 = !image->host && image->size;
		meant += image->size;
		if (r->has_section && meant > KP_LAYOUT_SECTION_MAX)
			return fail_invalid(p, "too many bytes in all");
	}
	begin_bin(p, KP_BIN_UNKNOWN);
	while (p->at.size) {
		KP_TRY(get_number(p, UINT32_MAX, &n));
		if (n >= r->n_images)
			return fail_invalid(p, "an object that is not listed");
		r->images[n].has_xxh3 = false;
	}
	begin_bin(p, KP_BIN_HASHES);
	for (size_t i = 0; i < r->n_images; i++)
		if (r->images[i].has_xxh3)
			KP_TRY(get_bytes(p, r->images[i].xxh3, KP_RECIPE_HASH));
	return p->at.size ? fail_invalid(p, "more hashes than objects") : KPACK_SUCCESS;
}

static kpack_error_t get_containers(struct parser *p)
{
	struct kp_recipe *r = &p->r;
	size_t first = 0;
	uint64_t n, d;

	begin_bin(p, KP_BIN_CONTAINERS);
	if (p->at.size > KP_IMAGES_MAX * (size_t)2)
		return fail_invalid(p, "too many");
	while (p->at.size) {
		KP_TRY(get_number(p, KP_BUNDLE_ENTRIES_MAX, &n));
		if (n > r->n_images - first)
			return fail_invalid(p, "more objects than there are");
		KP_TRY(kp_room(&r->containers, r->n_containers, &r->containers_cap,
			       "a recipe", p->why));
		r->containers[r->n_containers] = (struct kp_recipe_container){
			.first_image = first, .n_images = (size_t)n};
		for (size_t i = first; i < first + n; i++)
			r->images[i].container = (uint32_t)r->n_containers;
		first += (size_t)n;
		r->n_containers++;
	}
	if (r->n_containers > KP_IMAGES_MAX)
		return fail_invalid(p, "too many");
	if (first != r->n_images && r->has_section)
		return fail_invalid(p, "fewer objects than there are");
	begin_bin(p, KP_BIN_WRAPPERS);
	KP_TRY(kp_new(&r->wrapper_container, p->at.size + 1, "a recipe", p->why));
	for (n = 0; p->at.size; n++) {
		KP_TRY(get_signed(p, &d));
		n += d;
		if (n >= r->n_containers || r->n_wrappers == KP_WRAPPERS_MAX)
			return fail_invalid(p, "a container that is not listed");
		r->wrapper_container[r->n_wrappers++] = (uint32_t)n;
	}
	number_containers(r);
	return KPACK_SUCCESS;
}

/* Read how bundles were compressed.  Their differences follow the recipe's FRAME bytes. */
static kpack_error_t get_forms(struct parser *p, uint64_t frame,
			       const struct kp_source *source)
{
	struct kp_recipe *r = &p->r;
	uint64_t version, method, level, long_range, at = frame;

	begin_bin(p, KP_BIN_COMPRESSED);
	while (p->at.size) {
		struct kp_recipe_form *f;
		uint8_t hash[8];

		KP_TRY(kp_room(&r->forms, r->n_forms, &r->forms_cap, "a recipe", p->why));
		f = &r->forms[r->n_forms++];
		*f = (struct kp_recipe_form){0};
		KP_TRY(get_number(p, UINT16_MAX, &version));
		KP_TRY(get_number(p, UINT16_MAX, &method));
		KP_TRY(get_number(p, UINT16_MAX, &level));
		KP_TRY(get_number(p, 1, &long_range));
		KP_TRY(get_number(p, UINT32_MAX, &f->kept));
		KP_TRY(get_bytes(p, hash, sizeof(hash)));
		KP_TRY(get_bytes(p, f->xxh3, sizeof(f->xxh3)));
		f->form = (struct kp_ccob_form){.version = (unsigned)version,
						.method = (unsigned)method,
						.hash = kp_le64(hash),
						.level = (int)level,
						.long_range = long_range};
		if (!kp_ccob_form_ok(&f->form))
			return kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "recipe: a compressed bundle of version %u, "
				       "method %u, level %d",
				       f->form.version, f->form.method, f->form.level);
		if (!f->kept)
			continue;
		f->kept_offset = at + SKIP_HEADER;
		if (!kp_range_ok(source->size, f->kept_offset, f->kept))
			return fail_invalid(p, "a difference is missing");
		at = f->kept_offset + f->kept;
	}
	return KPACK_SUCCESS;
}

/* ---- parsing the parts ---- */

/* Where the next part goes. */
struct place {
	uint64_t at, end;   /* in the original, or in a payload, which has no end */
	uint64_t outer;     /* in a payload: where the original goes on */
	size_t payload_end; /* in a payload: the part behind it; 0: not in one */
	size_t payload;     /* the part KP_BIN_COMPRESSED */
	uint64_t shift; /* of COPY: offset in the changed file - offset in the original */
	uint64_t next;  /* object */
	uint64_t work;  /* bytes of objects and payloads that are made */
	uint32_t form, container;
	bool in_section;
};

static bool is_payload(const struct place *l)
{
	return l->payload_end != 0;
}

/* Fill in PART of its kind and OPERANDS. */
static kpack_error_t settle_part(struct parser *p, struct place *l, struct kp_part *part,
				 const uint64_t operands[3])
{
	struct kp_recipe *r = &p->r;
	struct kp_recipe_image *image;

	part->at = l->at;
	switch (part->kind) {
	case KP_PART_COPY:
		part->size = operands[1];
		l->shift += operands[0];
		part->from = l->at + l->shift;
		if (is_payload(l) || part->from > INT64_MAX - part->size)
			return fail_invalid(p, "a copy of no bytes of a file");
		break;
	case KP_PART_BYTES:
		part->size = operands[0];
		part->from = r->n_bytes;
		if (part->size > p->bins[KP_BIN_BYTES].size - r->n_bytes)
			return fail_invalid(p, "more bytes than there are");
		r->n_bytes += (size_t)part->size;
		break;
	case KP_PART_PAD:
		part->kind = KP_PART_ZEROS;
		part->size = -l->at & 4095;
		break;
	case KP_PART_ZEROS:
		part->size = operands[0];
		break;
	case KP_PART_OBJECT:
	case KP_PART_RANGE:
		part->number = (uint32_t)(l->next + operands[0]);
		if (l->next + operands[0] >= r->n_images)
			return fail_invalid(p, "an object that is not listed");
		image = &r->images[part->number];
		if (l->next != part->number + UINT64_C(1))
			l->work += image->size; /* or it is the one that is at hand */
		l->next = part->number + UINT64_C(1);
		image->placed = true;
		part->size = image->size;
		if (part->kind == KP_PART_RANGE) {
			part->from = operands[1];
			part->size = operands[2];
			if (image->host ||
			    !kp_range_ok(image->size, part->from, part->size))
				return fail_invalid(p, "bytes outside of an object");
			break;
		}
		image->at = l->at;
		if (!image->host)
			break;
		image->from = r->n_bytes;
		if (image->size > p->bins[KP_BIN_BYTES].size - r->n_bytes)
			return fail_invalid(p, "more bytes than there are");
		r->n_bytes += (size_t)image->size;
		break;
	case KP_PART_CONTAINER:
		part->number = l->container;
		if (l->container == r->n_containers || is_payload(l) || !l->in_section)
			return fail_invalid(p, "a container that is not listed");
		r->containers[l->container++].offset = l->at;
		break;
	case KP_PART_HEADER:
		part->number = l->container - 1;
		if (l->container == 0)
			return fail_invalid(p, "a header in no container");
		part->size = KP_BUNDLE_HEADER_MIN;
		image = &r->images[r->containers[part->number].first_image];
		for (size_t i = 0; i < r->containers[part->number].n_images; i++) {
			if (!image[i].id)
				return fail_invalid(p, "a header without an ID");
			part->size += KP_BUNDLE_ROW_SIZE + strlen(image[i].id);
		}
		l->work += part->size;
		break;
	case KP_PART_COMPRESSED:
		part->number = l->form;
		part->inside = (uint32_t)operands[0];
		part->size = operands[1];
		if (l->form++ == r->n_forms || is_payload(l) || l->container == 0 ||
		    operands[0] > PARTS_MAX)
			return fail_invalid(p, "a compressed bundle that is not listed");
		/* its own bytes must be about as many as its payload's */
		if (r->forms[part->number].kept > part->size + part->size / 256 + 1024 ||
		    (r->forms[part->number].kept &&
		     part->size / KP_ZSTD_RATIO_MAX > r->forms[part->number].kept))
			return fail_invalid(p, "a difference of too many bytes");
		break;
	default:
		return kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "recipe: a part of kind %u", part->kind);
	}
	return KPACK_SUCCESS;
}

/* The section must begin and end between two parts, and copy nothing. */
static kpack_error_t follow_section(struct parser *p, struct place *l,
				    const struct kp_part *part)
{
	const struct kp_recipe *r = &p->r;
	uint64_t end = r->section_offset + r->section_size;

	if (!r->has_section || is_payload(l))
		return KPACK_SUCCESS;
	if (l->at < r->section_offset ? part->size > r->section_offset - l->at
				      : l->at < end && part->size > end - l->at)
		return fail_invalid(p, "one that crosses the edge of the section");
	return KPACK_SUCCESS;
}

/* The next part begins at AT: it is the first one in the section, or behind it. */
static void find_section(struct kp_recipe *r, uint64_t at)
{
	if (r->section_first == SIZE_MAX && at >= r->section_offset)
		r->section_first = r->n_parts;
	if (r->section_end == SIZE_MAX && at >= r->section_offset + r->section_size)
		r->section_end = r->n_parts;
}

static kpack_error_t get_parts(struct parser *p)
{
	struct kp_recipe *r = &p->r;
	struct place l = {.end = r->size};

	r->section_first = r->section_end = SIZE_MAX;
	begin_bin(p, KP_BIN_PARTS);
	while (p->at.size) {
		uint64_t kind, operands[3] = {0};
		struct kp_part part = {0};

		l.in_section = r->has_section && l.at >= r->section_offset &&
			       l.at - r->section_offset < r->section_size;
		if (r->n_parts == PARTS_MAX)
			return fail_invalid(p, "too many");
		if (!is_payload(&l))
			find_section(r, l.at);
		KP_TRY(get_number(p, UINT16_MAX, &kind));
		part.kind =
			kind < KP_PART_KINDS ? (enum kp_part_kind)kind : KP_PART_KINDS;
		for (size_t i = 0; kind < KP_PART_KINDS && i < n_operands[kind]; i++) {
			bool is_signed = i == 0 && (kind == KP_PART_COPY ||
						    kind == KP_PART_OBJECT ||
						    kind == KP_PART_RANGE);

			KP_TRY(is_signed ? get_signed(p, &operands[i])
					 : get_number(p, INT64_MAX, &operands[i]));
		}
		KP_TRY(settle_part(p, &l, &part, operands));
		if (part.size > (is_payload(&l) ? KP_CCOB_MAX : l.end) - l.at)
			return fail_invalid(p, "more bytes than stated");
		KP_TRY(follow_section(p, &l, &part));
		KP_TRY(kp_room(&r->parts, r->n_parts, &r->parts_cap, "a recipe", p->why));
		r->parts[r->n_parts++] = part;
		l.at += part.size;
		if (part.kind == KP_PART_COMPRESSED) {
			l.outer = l.at;
			l.at = 0;
			l.payload = r->n_parts - 1;
			l.payload_end = r->n_parts + part.inside;
		}
		if (is_payload(&l) && r->n_parts == l.payload_end) {
			/* the payload's bytes are made for this part */
			r->parts[l.payload].from = l.at;
			if (l.at / KP_ZSTD_RATIO_MAX > r->parts[l.payload].size)
				return fail_invalid(
					p, "a compressed bundle of so many bytes");
			l.work += l.at;
			l.at = l.outer;
			l.payload_end = 0;
		}
		if (l.work > (r->has_section ? KP_LAYOUT_SECTION_MAX : r->size))
			return fail_invalid(p, "too much to make");
	}
	find_section(r, UINT64_MAX);
	if (is_payload(&l) || l.at != l.end)
		return fail_invalid(p, "fewer bytes than stated");
	if (l.container != r->n_containers || l.form != r->n_forms)
		return fail_invalid(p, "a container or a compressed bundle is missing");
	if (r->has_section && !kp_range_ok(r->size, r->section_offset, r->section_size))
		return fail_invalid(p, "the section passes the end");
	if (r->n_bytes != p->bins[KP_BIN_BYTES].size)
		return fail_invalid(p, "fewer bytes than there are");
	for (size_t i = 0; i < r->n_parts; i++) {
		const struct kp_part *part = &r->parts[i];
		const struct kp_recipe_container *c = &r->containers[part->number];

		if (part->kind != KP_PART_HEADER)
			continue;
		for (size_t k = c->first_image; k < c->first_image + c->n_images; k++)
			if (!r->images[k].placed || r->images[k].at < part->at)
				return fail_invalid(p, "a header of objects that are not "
						       "behind it");
	}
	return KPACK_SUCCESS;
}

/* ---- the whole ---- */

/* Decompress the map in the first FRAME bytes of SOURCE, which the caller frees. */
static kpack_error_t decompress_map(const struct kp_source *source, uint64_t frame,
				    uint8_t **out, size_t *size, struct kpackx_error *why)
{
	struct kp_source part;
	uint8_t *bytes;
	unsigned long long n;
	kpack_error_t err;

	if (!kp_source_sub(source, 0, frame, &part))
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED,
			       "recipe: %" PRIu64 " bytes of a frame of %" PRIu64,
			       source->size, frame);
	KP_TRY(kp_source_load(&part, KP_LAYOUT_MAX, "a recipe", &bytes, why));
	n = ZSTD_getFrameContentSize(bytes, (size_t)frame);
	if (n > KP_LAYOUT_MAX || n / KP_ZSTD_RATIO_MAX > frame) {
		err = kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			      "recipe: %" PRIu64 " bytes that state a size of %llu",
			      frame, n);
		goto out;
	}
	*out = malloc((size_t)n + 1);
	if (!*out) {
		err = kp_fail_memory(why, n, "a recipe");
		goto out;
	}
	*size = ZSTD_decompress(*out, (size_t)n, bytes, (size_t)frame);
	err = KPACK_SUCCESS;
	if (ZSTD_getErrorCode(*size) == ZSTD_error_memory_allocation)
		err = kp_fail_memory(why, n, "a recipe");
	else if (*size != n)
		err = kp_fail(why, KPACK_ERROR_INVALID_METADATA, "recipe: %s",
			      ZSTD_isError(*size) ? ZSTD_getErrorName(*size)
						  : "smaller than stated");
out:
	free(bytes);
	return err;
}

static kpack_error_t parse_all(struct parser *p, uint64_t frame,
			       const struct kp_source *source)
{
	struct kp_recipe *r = &p->r;

	KP_TRY(read_map(p));
	begin_bin(p, KP_BIN_COPIED);
	if (p->at.size != sizeof(r->copied))
		return fail_invalid(p, "a hash has 16 bytes");
	memcpy(r->copied, p->at.data, sizeof(r->copied));
	KP_TRY(get_images(p));
	KP_TRY(get_containers(p));
	KP_TRY(get_forms(p, frame, source));
	KP_TRY(get_parts(p));
	r->bytes = malloc(r->n_bytes + 1);
	if (!r->bytes)
		return kp_fail_memory(p->why, r->n_bytes, "a recipe");
	if (r->n_bytes)
		memcpy(r->bytes, p->bins[KP_BIN_BYTES].data, r->n_bytes);
	r->source = *source;
	return KPACK_SUCCESS;
}

kpack_error_t kp_recipe_read(const struct kp_source *source, struct kp_recipe *out,
			     struct kpackx_error *why)
{
	struct parser p = {.why = why};
	struct kp_window *w = malloc(sizeof(*w));
	struct kp_frame_header header;
	uint8_t *map = NULL;
	uint64_t frame;
	size_t size = 0;
	kpack_error_t err;

	if (!w)
		return kp_fail_memory(why, sizeof(*w), "a recipe");
	kp_window_init(w, source);
	err = kp_frame_measure(w, 0, &header, &frame, why);
	free(w);
	if (err == KPACK_ERROR_DECOMPRESSION_FAILED || (!err && header.skippable))
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED,
			       "recipe: it does not begin with a frame of zstd");
	KP_TRY(err);
	err = decompress_map(source, frame, &map, &size, why);
	if (!err) {
		p.c = kp_mp_over((struct kp_span){map, size});
		err = parse_all(&p, frame, source);
	}
	free(map);
	if (err)
		kp_recipe_fini(&p.r);
	else
		*out = p.r;
	return err;
}
