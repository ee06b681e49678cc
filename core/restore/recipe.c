/* SPDX-License-Identifier: MIT */
/*
 * The stored form of recipes, which kpack-recipe(5) describes: a zstd frame of one MessagePack map,
 * whose bins are tables, and skippable frames with differences.  Tables are columns of LEB128
 * numbers, because equal columns next to each other nearly vanish in zstd, and a library can have
 * thousands of objects.
 *
 *	map    version, size of the original, [offset, size] of .hip_fatbin, [what thin --keep states],
 *	       targets: [entry ID or nil, architecture, whether it is the host's] ...
 *	bins   objects: a column of target numbers, then a column of sizes
 *	       unknown, hashes: which objects have no hash; 6 bytes for each other one
 *	       containers: how many objects each has; wrappers: the container that each leads to
 *	       compressed: version, method, level, long window, size of the difference, two hashes
 *	       parts: kind, and its operands; bytes: what the recipe has itself
 *
 *	part         operands                              makes
 *	COPY         offset difference, size               bytes of the changed file
 *	BYTES        size                                  the next of the recipe's bytes
 *	ZEROS, PAD   size; none: up to the next 4096       zeros
 *	OBJECT       number difference                     a whole object
 *	RANGE        number difference, offset, size       a part of one
 *	CONTAINER    -                                     nothing: the next container begins here
 *	HEADER       -                                     the header of a bundle, from its objects
 *	COMPRESSED   number of parts, size                 what those parts make, compressed
 *
 * A parsed recipe is sound: its parts add up to the original, what they refer to exists, and what
 * they make is bounded.  So whoever applies one checks only what the changed file and the archives
 * have.  A recipe comes from a file that anybody may have written: each number is checked where it
 * is read, and memory is taken for what is there, not for what is stated.
 */
#include "recipe.h"
#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "core/archive/frames.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "core/base/text.h"
#include "core/format/bundle.h"

#define VERSION 1

/* Parts of one recipe: a bundle has two for each object, and a few more. */
#define PARTS_MAX (4 * (size_t)KP_IMAGES_MAX)

/* Most bytes for which a slow level of zstd is still fast enough. */
#define SLOW_MAX (1 << 20)

/* The fields of the map: values, then bins, in their order. */
enum field {
	F_VERSION,
	F_SIZE,
	F_SECTION,
	F_FILE,
	F_TARGETS,    /* [entry ID or nil, architecture, whether it is the host's], ... */
	F_COPIED,     /* the hash of all that is copied, in the order of the parts */
	F_OBJECTS,    /* two columns: of all objects the target's number, then the size */
	F_UNKNOWN,    /* numbers of objects with bytes, but without a hash */
	F_HASHES,     /* the first bytes of the hash of each other object */
	F_CONTAINERS, /* how many objects each has: objects are listed by container */
	F_WRAPPERS,   /* containers, as differences from one more than the last */
	F_COMPRESSED, /* a row for each compressed bundle */
	F_PARTS,      /* kind and operands of each */
	F_BYTES,      /* what parts of kind BYTES, and the host's objects, have */
	FIELDS,
	F_FIRST_BIN = F_COPIED,
};

static const char *const field_names[FIELDS] = {
	"version", "size",   "section",    "file",     "targets",    "copied", "objects",
	"unknown", "hashes", "containers", "wrappers", "compressed", "parts",  "bytes",
};

void kp_recipe_fini(struct kp_recipe *r)
{
	for (size_t i = 0; i < r->n_targets; i++) {
		free(r->targets[i].id);
		free(r->targets[i].arch);
	}
	free(r->targets);
	free(r->parts);
	free(r->images);
	free(r->containers);
	free(r->forms);
	free(r->wrapper_container);
	free(r->bytes);
	free(r->kept);
	*r = (struct kp_recipe){0};
}

kpack_error_t kp_recipe_hash(struct kp_hasher *hash, const struct kp_source *source,
			     uint64_t off, uint64_t size, struct kpackx_error *why)
{
	size_t piece = size < (256 << 10) ? (size_t)size : 256 << 10;
	KP_AUTO_FREE uint8_t *buf = malloc(piece + 1);

	if (!buf || !hash)
		return kp_fail_memory(why, piece, "a recipe");
	for (uint64_t n; size; size -= n, off += n) {
		n = size < piece ? size : piece;
		KP_TRY(kp_source_read(source, off, buf, (size_t)n, why));
		kp_hasher_add(hash, buf, (size_t)n);
	}
	return KPACK_SUCCESS;
}

/* ---- parsing the map ---- */

struct parser {
	struct kp_mp c;
	struct kp_recipe r;
	struct kp_span bins[FIELDS];
	const char *name;  /* of the field that is read */
	struct kp_span at; /* what is left of its bin */
	struct kpackx_error *why;
};

static kpack_error_t fail_invalid(const struct parser *p, const char *what)
{
	return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA, "recipe: %s: %s", p->name,
		       what);
}

/* Read the next value, which must be of TYPE; else it is WRONG. */
static kpack_error_t read_value(struct parser *p, enum kp_mp_type type, const char *wrong,
				struct kp_mp_value *v)
{
	if (kp_mp_next(&p->c, v) && v->type == type)
		return KPACK_SUCCESS;
	return p->c.fault ? kp_mp_fail(&p->c, "recipe", p->why) : fail_invalid(p, wrong);
}

static kpack_error_t read_uint(struct parser *p, uint64_t most, uint64_t *n)
{
	struct kp_mp_value v;

	KP_TRY(read_value(p, KP_MP_UINT, "not a number", &v));
	*n = v.num;
	return *n <= most ? KPACK_SUCCESS : fail_invalid(p, "too large a number");
}

static kpack_error_t read_hash(struct parser *p, uint8_t hash[16])
{
	struct kp_mp_value v;

	KP_TRY(read_value(p, KP_MP_BIN, "not bytes", &v));
	if (v.span.size != 16)
		return fail_invalid(p, "a hash has 16 bytes");
	memcpy(hash, v.span.data, 16);
	return KPACK_SUCCESS;
}

static kpack_error_t read_array(struct parser *p, uint64_t least, uint64_t most,
				uint64_t *n)
{
	struct kp_mp_value v;

	KP_TRY(read_value(p, KP_MP_ARRAY, "not an array", &v));
	*n = v.num;
	return *n >= least && *n <= most ? KPACK_SUCCESS
					 : fail_invalid(p, "a wrong number of members");
}

/* Read a text of at most MOST bytes without a NUL to the heap. */
static kpack_error_t read_text(struct parser *p, size_t most, char **out)
{
	struct kp_mp_value v;

	KP_TRY(read_value(p, KP_MP_STR, "not a text", &v));
	if (v.span.size > most || (v.span.size && memchr(v.span.data, '\0', v.span.size)))
		return fail_invalid(p, "a text that is too long, or has a NUL");
	*out = strndup(v.span.size ? (const char *)v.span.data : "", v.span.size);
	return *out ? KPACK_SUCCESS : kp_fail_memory(p->why, v.span.size, "a recipe");
}

static kpack_error_t read_time(struct parser *p, struct timespec *out)
{
	struct kp_mp_value seconds;
	uint64_t ns;

	KP_TRY(read_value(p, kp_mp_peek(&p->c) == KP_MP_INT ? KP_MP_INT : KP_MP_UINT,
			  "not a time", &seconds));
	KP_TRY(read_uint(p, 999999999, &ns));
	*out = (struct timespec){(time_t)seconds.num, (long)ns};
	return KPACK_SUCCESS;
}

/* Read the value of FIELD; of a bin only where it is, because the tables depend on each other. */
static kpack_error_t read_field(struct parser *p, enum field field)
{
	struct kp_recipe *r = &p->r;
	struct kp_recipe_file *f = &r->file;
	uint64_t n, three, ids[3]; /* mode, user, group */
	struct kp_recipe_target *t;
	struct kp_mp_value v;

	switch (field) {
	case F_VERSION:
		KP_TRY(read_uint(p, UINT64_MAX, &n));
		if (n != VERSION)
			return kp_fail(p->why, KPACK_ERROR_UNSUPPORTED_VERSION,
				       "recipe: version %" PRIu64
				       ", only %d is supported",
				       n, VERSION);
		return KPACK_SUCCESS;
	case F_SIZE:
		return read_uint(p, INT64_MAX, &r->size);
	case F_SECTION:
		r->has_section = true;
		KP_TRY(read_array(p, 2, 2, &n));
		KP_TRY(read_uint(p, INT64_MAX, &r->section_offset));
		return read_uint(p, KP_LAYOUT_SECTION_MAX, &r->section_size);
	case F_FILE:
		r->has_file = true;
		KP_TRY(read_array(p, 10, 10, &n));
		KP_TRY(read_hash(p, f->xxh3));
		KP_TRY(read_uint(p, INT64_MAX, &f->changed_size));
		f->removed = kp_mp_peek(&p->c) == KP_MP_NIL;
		if (f->removed)
			kp_mp_skip(&p->c);
		else
			KP_TRY(read_hash(p, f->changed_xxh3));
		for (size_t i = 0; i < KP_COUNT(ids); i++)
			KP_TRY(read_uint(p, i ? UINT32_MAX : 07777, &ids[i]));
		f->mode = (unsigned)ids[0];
		f->uid = (unsigned)ids[1];
		f->gid = (unsigned)ids[2];
		KP_TRY(read_time(p, &f->mtime));
		return read_time(p, &f->kept);
	case F_TARGETS:
		KP_TRY(read_array(p, 0, KP_IMAGES_MAX, &n));
		while (n--) {
			KP_TRY(kp_room(&r->targets, r->n_targets, &r->targets_cap,
				       "a recipe", p->why));
			t = &r->targets[r->n_targets++];
			*t = (struct kp_recipe_target){0};
			KP_TRY(read_array(p, 3, 3, &three));
			if (kp_mp_peek(&p->c) == KP_MP_NIL)
				kp_mp_skip(&p->c);
			else
				KP_TRY(read_text(p, KP_ENTRY_ID_MAX, &t->id));
			KP_TRY(read_text(p, KP_TARGET_TEXT_MAX - 1, &t->arch));
			KP_TRY(read_value(p, KP_MP_BOOL, "neither true nor false", &v));
			t->host = v.num;
		}
		return KPACK_SUCCESS;
	default:
		KP_TRY(read_value(p, KP_MP_BIN, "not bytes", &v));
		p->bins[field] = v.span;
		return KPACK_SUCCESS;
	}
}

static kpack_error_t read_map(struct parser *p)
{
	static const enum field required[] = {F_VERSION, F_SIZE, F_TARGETS};
	struct kp_mp_value map;
	unsigned seen = 0;

	p->name = "the map";
	KP_TRY(read_value(p, KP_MP_MAP, "not a map", &map));
	for (uint64_t pair = 0; pair < map.num; pair++) {
		struct kp_span key = {0};
		unsigned i = 0;

		if (kp_mp_peek(&p->c) == KP_MP_STR)
			kp_mp_str(&p->c, &key);
		else
			kp_mp_skip(&p->c);
		while (i < FIELDS && !kp_span_is(key, field_names[i]))
			i++;
		if (i == FIELDS) {
			if (!kp_mp_skip(&p->c))
				return kp_mp_fail(&p->c, "recipe", p->why);
			continue;
		}
		p->name = field_names[i];
		if (seen & 1u << i)
			return fail_invalid(p, "for the second time");
		seen |= 1u << i;
		KP_TRY(read_field(p, (enum field)i));
	}
	for (size_t i = 0; i < KP_COUNT(required); i++) {
		p->name = field_names[required[i]];
		if (!(seen & 1u << required[i]))
			return fail_invalid(p, "is missing");
	}
	return KPACK_SUCCESS;
}

/* ---- parsing its tables ---- */

static void begin_bin(struct parser *p, enum field f)
{
	p->name = field_names[f];
	p->at = p->bins[f];
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

/*
 * Read the objects, whose number is that of all containers, or what F_OBJECTS has.  The last byte of
 * each LEB128 number is below 0x80, so that numbers can be counted before there is memory for them.
 */
static kpack_error_t get_images(struct parser *p)
{
	struct kp_recipe *r = &p->r;
	uint64_t n, meant = 0;
	size_t numbers = 0;

	begin_bin(p, F_OBJECTS);
	for (size_t i = 0; i < p->at.size; i++)
		numbers += p->at.data[i] < 0x80;
	if (numbers % 2 || numbers / 2 > KP_IMAGES_MAX)
		return fail_invalid(p, "a wrong number of numbers");
	r->n_images = numbers / 2;
	KP_TRY(kp_new(&r->images, r->n_images, "a recipe", p->why));
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
	begin_bin(p, F_UNKNOWN);
	while (p->at.size) {
		KP_TRY(get_number(p, UINT32_MAX, &n));
		if (n >= r->n_images)
			return fail_invalid(p, "an object that is not listed");
		r->images[n].has_xxh3 = false;
	}
	begin_bin(p, F_HASHES);
	for (size_t i = 0; i < r->n_images; i++)
		if (r->images[i].has_xxh3)
			KP_TRY(get_bytes(p, r->images[i].xxh3, KP_RECIPE_HASH));
	return p->at.size ? fail_invalid(p, "more hashes than objects") : KPACK_SUCCESS;
}

static kpack_error_t get_containers(struct parser *p)
{
	struct kp_recipe *r = &p->r;
	uint32_t next;
	size_t first = 0;
	uint64_t n, d;

	begin_bin(p, F_CONTAINERS);
	if (p->at.size > KP_IMAGES_MAX * (size_t)2)
		return fail_invalid(p, "too many");
	for (; p->at.size; r->n_containers++) {
		KP_TRY(get_number(p, KP_BUNDLE_ENTRIES_MAX, &n));
		if (n > r->n_images - first)
			return fail_invalid(p, "more objects than there are");
		KP_TRY(kp_room(&r->containers, r->n_containers, &r->containers_cap,
			       "a recipe", p->why));
		r->containers[r->n_containers] = (struct kp_recipe_container){
			.first_image = first, .n_images = (size_t)n, .index = UINT32_MAX};
		for (; n; n--)
			r->images[first++].container = (uint32_t)r->n_containers;
	}
	if (r->n_containers > KP_IMAGES_MAX)
		return fail_invalid(p, "too many");
	if (first != r->n_images && r->has_section)
		return fail_invalid(p, "fewer objects than there are");
	begin_bin(p, F_WRAPPERS);
	KP_TRY(kp_new(&r->wrapper_container, p->at.size, "a recipe", p->why));
	for (n = 0; p->at.size; n++) {
		KP_TRY(get_signed(p, &d));
		n += d;
		if (n >= r->n_containers || r->n_wrappers == KP_WRAPPERS_MAX)
			return fail_invalid(p, "a container that is not listed");
		r->wrapper_container[r->n_wrappers++] = (uint32_t)n;
	}
	/*
	 * number them as archives do: by wrapper, the first of those that lead there; then those
	 * without a wrapper
	 */
	for (size_t w = r->n_wrappers; w-- > 0;)
		r->containers[r->wrapper_container[w]].index = (uint32_t)w;
	next = (uint32_t)r->n_wrappers;
	for (size_t c = 0; c < r->n_containers; c++)
		if (r->containers[c].index == UINT32_MAX)
			r->containers[c].index = next++;
	return KPACK_SUCCESS;
}

/* Read how bundles were compressed.  Their differences follow the recipe's FRAME bytes. */
static kpack_error_t get_forms(struct parser *p, uint64_t frame,
			       const struct kp_source *source)
{
	struct kp_recipe *r = &p->r;
	/* version, method, level, whether the window is long, bytes of the difference */
	static const uint64_t most[5] = {UINT16_MAX, UINT16_MAX, UINT16_MAX, 1,
					 UINT32_MAX};
	uint64_t at = frame, n[5];

	begin_bin(p, F_COMPRESSED);
	while (p->at.size) {
		struct kp_recipe_form *f;
		uint8_t hash[8] = {0};

		KP_TRY(kp_room(&r->forms, r->n_forms, &r->forms_cap, "a recipe", p->why));
		f = &r->forms[r->n_forms++];
		for (size_t i = 0; i < KP_COUNT(n); i++)
			KP_TRY(get_number(p, most[i], &n[i]));
		KP_TRY(get_bytes(p, hash, sizeof(hash)));
		*f = (struct kp_recipe_form){.form = {.version = (unsigned)n[0],
						      .method = (unsigned)n[1],
						      .hash = kp_le64(hash),
						      .level = (int)n[2],
						      .long_range = n[3]},
					     .kept = n[4]};
		KP_TRY(get_bytes(p, f->xxh3, sizeof(f->xxh3)));
		if (!kp_ccob_form_ok(&f->form))
			return kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "recipe: a compressed bundle of version %u, "
				       "method %u, level %d",
				       f->form.version, f->form.method, f->form.level);
		if (!f->kept)
			continue;
		f->kept_offset = at + KP_RECIPE_SKIP_HEADER;
		if (!kp_range_ok(source->size, f->kept_offset, f->kept))
			return fail_invalid(p, "a difference is missing");
		at = f->kept_offset + f->kept;
	}
	return KPACK_SUCCESS;
}

/* ---- parsing the parts ---- */

/* Where the next part goes. */
struct place {
	uint64_t at;        /* in the original, or in a payload, which has no end */
	uint64_t outer;     /* in a payload: where the original goes on */
	size_t payload_end; /* in a payload: the part behind it; 0: not in one */
	size_t payload;     /* its part COMPRESSED */
	uint64_t shift; /* of COPY: offset in the changed file - offset in the original */
	uint64_t next;  /* object */
	uint64_t work;  /* bytes of objects and payloads that are made */
	uint32_t form, container;
	bool in_section;
};

/* Take SIZE of the recipe's bytes; *FROM is where they are. */
static kpack_error_t take_bytes(struct parser *p, uint64_t size, uint64_t *from)
{
	*from = p->r.n_bytes;
	if (size > p->bins[F_BYTES].size - p->r.n_bytes)
		return fail_invalid(p, "more bytes than there are");
	p->r.n_bytes += (size_t)size;
	return KPACK_SUCCESS;
}

/*
 * Read the operands of PART, of whose kind it is.  Numbers of objects and offsets of copies are stored
 * as differences from what would come next, which is mostly 0; containers, headers and compressed
 * bundles come in order and have no number.  Whatever costs more to make than to state is added to
 * l->work.
 */
static kpack_error_t get_operands(struct parser *p, struct place *l, struct kp_part *part)
{
	struct kp_recipe *r = &p->r;
	bool in_payload = l->payload_end != 0;
	const struct kp_recipe_container *c;
	struct kp_recipe_image *image;
	uint64_t n, kept;

	part->at = l->at;
	switch (part->kind) {
	case KP_PART_COPY:
		KP_TRY(get_signed(p, &n));
		KP_TRY(get_number(p, INT64_MAX, &part->size));
		l->shift += n;
		part->from = l->at + l->shift;
		if (in_payload || part->from > INT64_MAX - part->size)
			return fail_invalid(p, "a copy of no bytes of a file");
		return KPACK_SUCCESS;
	case KP_PART_BYTES:
		KP_TRY(get_number(p, INT64_MAX, &part->size));
		return take_bytes(p, part->size, &part->from);
	case KP_PART_PAD:
		part->kind = KP_PART_ZEROS;
		part->size = -l->at & 4095;
		return KPACK_SUCCESS;
	case KP_PART_ZEROS:
		return get_number(p, INT64_MAX, &part->size);
	case KP_PART_OBJECT:
	case KP_PART_RANGE:
		KP_TRY(get_signed(p, &n));
		n += l->next;
		if (n >= r->n_images)
			return fail_invalid(p, "an object that is not listed");
		part->number = (uint32_t)n;
		image = &r->images[n];
		if (l->next != n + 1)
			l->work += image->size; /* or it is the one that is at hand */
		l->next = n + 1;
		image->placed = true;
		part->size = image->size;
		if (part->kind == KP_PART_OBJECT) {
			image->at = l->at;
			return image->host ? take_bytes(p, image->size, &image->from)
					   : KPACK_SUCCESS;
		}
		KP_TRY(get_number(p, INT64_MAX, &part->from));
		KP_TRY(get_number(p, INT64_MAX, &part->size));
		if (image->host || !kp_range_ok(image->size, part->from, part->size))
			return fail_invalid(p, "bytes outside of an object");
		return KPACK_SUCCESS;
	case KP_PART_CONTAINER:
		part->number = l->container;
		if (l->container == r->n_containers || in_payload || !l->in_section)
			return fail_invalid(p, "a container that is not listed");
		r->containers[l->container++].offset = l->at;
		return KPACK_SUCCESS;
	case KP_PART_HEADER:
		part->number = l->container - 1;
		if (l->container == 0)
			return fail_invalid(p, "a header in no container");
		part->size = KP_BUNDLE_HEADER_MIN;
		c = &r->containers[part->number];
		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
			if (!r->images[i].id)
				return fail_invalid(p, "a header without an ID");
			part->size += KP_BUNDLE_ROW_SIZE + strlen(r->images[i].id);
		}
		l->work += part->size;
		return KPACK_SUCCESS;
	case KP_PART_COMPRESSED:
		KP_TRY(get_number(p, INT64_MAX, &n));
		KP_TRY(get_number(p, INT64_MAX, &part->size));
		part->number = l->form;
		part->inside = (uint32_t)n;
		if (l->form++ == r->n_forms || in_payload || l->container == 0 ||
		    n > PARTS_MAX)
			return fail_invalid(p, "a compressed bundle that is not listed");
		/* its own bytes must be about as many as its payload's */
		kept = r->forms[part->number].kept;
		if (kept > part->size + part->size / 256 + 1024 ||
		    (kept && part->size / KP_ZSTD_RATIO_MAX > kept))
			return fail_invalid(p, "a difference of too many bytes");
		return KPACK_SUCCESS;
	default:
		return kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "recipe: a part of kind %u", part->kind);
	}
}

/* Read a part, put it where L says, and move L behind it. */
static kpack_error_t get_part(struct parser *p, struct place *l)
{
	struct kp_recipe *r = &p->r;
	uint64_t section_end = r->section_offset + r->section_size;
	uint64_t kind;
	struct kp_part part = {0};

	l->in_section = r->has_section && l->at >= r->section_offset &&
			l->at - r->section_offset < r->section_size;
	if (r->n_parts == PARTS_MAX)
		return fail_invalid(p, "too many");
	if (!l->payload_end && r->section_first == SIZE_MAX && l->at >= r->section_offset)
		r->section_first = r->n_parts;
	if (!l->payload_end && r->section_end == SIZE_MAX && l->at >= section_end)
		r->section_end = r->n_parts;
	/* a kind of a later version is refused by get_operands, which names it */
	KP_TRY(get_number(p, UINT16_MAX, &kind));
	part.kind = kind < KP_PART_KINDS ? (enum kp_part_kind)kind : KP_PART_KINDS;
	KP_TRY(get_operands(p, l, &part));
	if (part.size > (l->payload_end ? KP_CCOB_MAX : r->size) - l->at)
		return fail_invalid(p, "more bytes than stated");
	/* the section must begin and end between two parts */
	if (r->has_section && !l->payload_end &&
	    (l->at < r->section_offset
		     ? part.size > r->section_offset - l->at
		     : l->at < section_end && part.size > section_end - l->at))
		return fail_invalid(p, "one that crosses the edge of the section");
	KP_TRY(kp_room(&r->parts, r->n_parts, &r->parts_cap, "a recipe", p->why));
	r->parts[r->n_parts++] = part;
	l->at += part.size;
	/* the parts behind it make its payload, where offsets begin at 0 again */
	if (part.kind == KP_PART_COMPRESSED) {
		l->outer = l->at;
		l->at = 0;
		l->payload = r->n_parts - 1;
		l->payload_end = r->n_parts + part.inside;
	}
	if (r->n_parts == l->payload_end) {
		/* the payload's bytes are made for this part */
		r->parts[l->payload].from = l->at;
		if (l->at / KP_ZSTD_RATIO_MAX > r->parts[l->payload].size)
			return fail_invalid(p, "a compressed bundle of so many bytes");
		l->work += l->at;
		l->at = l->outer;
		l->payload_end = 0;
	}
	/*
	 * A part of few bytes can make much: an object again and again, or a large payload.  All
	 * that is made is limited like what it is made for, so that no recipe costs more time than
	 * an honest one of its size.
	 */
	if (l->work > (r->has_section ? KP_LAYOUT_SECTION_MAX : r->size))
		return fail_invalid(p, "too much to make");
	return KPACK_SUCCESS;
}

static kpack_error_t get_parts(struct parser *p)
{
	struct kp_recipe *r = &p->r;
	struct place l = {0};

	r->section_first = r->section_end = SIZE_MAX;
	begin_bin(p, F_PARTS);
	while (p->at.size)
		KP_TRY(get_part(p, &l));
	if (r->section_first == SIZE_MAX)
		r->section_first = r->n_parts;
	if (r->section_end == SIZE_MAX)
		r->section_end = r->n_parts;
	if (l.payload_end || l.at != r->size)
		return fail_invalid(p, "fewer bytes than stated");
	if (l.container != r->n_containers || l.form != r->n_forms)
		return fail_invalid(p, "a container or a compressed bundle is missing");
	if (r->has_section && !kp_range_ok(r->size, r->section_offset, r->section_size))
		return fail_invalid(p, "the section passes the end");
	if (r->n_bytes != p->bins[F_BYTES].size)
		return fail_invalid(p, "fewer bytes than there are");
	/* a header states where its objects are, which is known only now */
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

static void parser_fini(struct parser *p)
{
	kp_recipe_fini(&p->r);
}

kpack_error_t kp_recipe_read(const struct kp_source *source, struct kp_recipe *out,
			     struct kpackx_error *why)
{
	KP_AUTO(parser) p = {.why = why};
	KP_AUTO_FREE uint8_t *map = NULL, *bytes = NULL;
	struct kp_recipe *r = &p.r;
	struct kp_frame_header header;
	struct kp_source part;
	struct kp_window w;
	unsigned long long n;
	uint64_t frame;
	kpack_error_t err;
	size_t size;

	kp_window_init(&w, source);
	err = kp_frame_measure(&w, 0, &header, &frame, why);
	if (err == KPACK_ERROR_DECOMPRESSION_FAILED || (!err && header.skippable))
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED,
			       "recipe: it does not begin with a frame of zstd");
	KP_TRY(err);
	if (!kp_source_sub(source, 0, frame, &part))
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED,
			       "recipe: %" PRIu64 " bytes of a frame of %" PRIu64,
			       source->size, frame);
	KP_TRY(kp_source_load(&part, KP_LAYOUT_MAX, "a recipe", &bytes, why));
	/* an unknown or wrong size is an even larger number */
	n = ZSTD_getFrameContentSize(bytes, (size_t)frame);
	if (n > KP_LAYOUT_MAX || n / KP_ZSTD_RATIO_MAX > frame)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "recipe: %" PRIu64 " bytes that state a size of %llu",
			       frame, n);
	map = malloc((size_t)n + 1);
	size = map ? ZSTD_decompress(map, (size_t)n, bytes, (size_t)frame) : 0;
	if (!map || ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
		return kp_fail_memory(why, n, "a recipe");
	if (size != n)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA, "recipe: %s",
			       ZSTD_isError(size) ? ZSTD_getErrorName(size)
						  : "smaller than stated");
	p.c = kp_mp_over((struct kp_span){map, size});
	KP_TRY(read_map(&p));
	begin_bin(&p, F_COPIED);
	if (p.at.size != sizeof(r->copied))
		return fail_invalid(&p, "a hash has 16 bytes");
	memcpy(r->copied, p.at.data, sizeof(r->copied));
	/* in this order: containers count images, and parts refer to all */
	KP_TRY(get_images(&p));
	KP_TRY(get_containers(&p));
	KP_TRY(get_forms(&p, frame, source));
	KP_TRY(get_parts(&p));
	KP_TRY(kp_new(&r->bytes, r->n_bytes, "a recipe", why));
	if (r->n_bytes)
		memcpy(r->bytes, p.bins[F_BYTES].data, r->n_bytes);
	r->source = *source;
	*out = *r;
	*r = (struct kp_recipe){0};
	return KPACK_SUCCESS;
}

/* ---- storing ---- */

static void put_number(struct kp_compose *c, uint64_t n)
{
	uint8_t bytes[10];
	size_t size = 0;

	do {
		bytes[size++] = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
		n >>= 7;
	} while (n);
	kp_compose_span(c, (struct kp_span){bytes, size});
}

static void put_signed(struct kp_compose *c, uint64_t d)
{
	put_number(c, d << 1 ^ (0 - (d >> 63)));
}

/* The reverse of get_part: AT, SHIFT and NEXT are what struct place has there. */
static void put_parts(struct kp_compose *c, const struct kp_recipe *r)
{
	uint64_t at = 0, outer = 0, shift = 0, next = 0;
	size_t payload_end = 0;

	for (size_t i = 0; i < r->n_parts; i++) {
		const struct kp_part *p = &r->parts[i];
		bool pads = p->kind == KP_PART_ZEROS && (at + p->size) % 4096 == 0 &&
			    p->size < 4096;

		put_number(c, pads ? KP_PART_PAD : p->kind);
		switch (p->kind) {
		case KP_PART_COPY:
			put_signed(c, p->from - at - shift);
			put_number(c, p->size);
			shift = p->from - at;
			break;
		case KP_PART_OBJECT:
		case KP_PART_RANGE:
			put_signed(c, p->number - next);
			next = p->number + 1;
			if (p->kind == KP_PART_RANGE) {
				put_number(c, p->from);
				put_number(c, p->size);
			}
			break;
		case KP_PART_COMPRESSED:
			put_number(c, p->inside);
			put_number(c, p->size);
			break;
		case KP_PART_BYTES:
		case KP_PART_ZEROS:
			if (!pads)
				put_number(c, p->size);
			break;
		default:
			break;
		}
		at += p->size;
		if (p->kind == KP_PART_COMPRESSED) {
			outer = at;
			at = 0;
			payload_end = i + 1 + p->inside;
		}
		if (i + 1 == payload_end)
			at = outer;
	}
}

/* The buffer remembers when there is no memory, so that the packer's results need no look. */
static int append_bytes(void *out, const char *bytes, size_t size)
{
	kp_compose_span(out, (struct kp_span){(const uint8_t *)bytes, size});
	return 0;
}

static void pack_text(msgpack_packer *pk, const char *text)
{
	msgpack_pack_str_with_body(pk, text, strlen(text));
}

/* Pack the map to OUT.  Empty bins are left out. */
static void pack_recipe(struct kp_compose *out, const struct kp_recipe *r,
			const struct kp_compose bins[FIELDS])
{
	const struct kp_recipe_file *f = &r->file;
	size_t n = 3 + r->has_section + r->has_file;
	msgpack_packer pk;

	for (size_t i = F_FIRST_BIN; i < FIELDS; i++) {
		n += bins[i].size != 0;
		out->no_memory |= bins[i].no_memory;
	}
	msgpack_packer_init(&pk, out, append_bytes);
	msgpack_pack_map(&pk, n);
	pack_text(&pk, field_names[F_VERSION]);
	msgpack_pack_uint64(&pk, VERSION);
	pack_text(&pk, field_names[F_SIZE]);
	msgpack_pack_uint64(&pk, r->size);
	if (r->has_section) {
		pack_text(&pk, field_names[F_SECTION]);
		msgpack_pack_array(&pk, 2);
		msgpack_pack_uint64(&pk, r->section_offset);
		msgpack_pack_uint64(&pk, r->section_size);
	}
	if (r->has_file) {
		pack_text(&pk, field_names[F_FILE]);
		msgpack_pack_array(&pk, 10);
		msgpack_pack_bin_with_body(&pk, f->xxh3, sizeof(f->xxh3));
		msgpack_pack_uint64(&pk, f->changed_size);
		if (f->removed)
			msgpack_pack_nil(&pk);
		else
			msgpack_pack_bin_with_body(&pk, f->changed_xxh3,
						   sizeof(f->changed_xxh3));
		msgpack_pack_uint32(&pk, f->mode);
		msgpack_pack_uint32(&pk, f->uid);
		msgpack_pack_uint32(&pk, f->gid);
		msgpack_pack_int64(&pk, f->mtime.tv_sec);
		msgpack_pack_int64(&pk, f->mtime.tv_nsec);
		msgpack_pack_int64(&pk, f->kept.tv_sec);
		msgpack_pack_int64(&pk, f->kept.tv_nsec);
	}
	pack_text(&pk, field_names[F_TARGETS]);
	msgpack_pack_array(&pk, r->n_targets);
	for (size_t i = 0; i < r->n_targets; i++) {
		const struct kp_recipe_target *t = &r->targets[i];

		msgpack_pack_array(&pk, 3);
		if (t->id)
			pack_text(&pk, t->id);
		else
			msgpack_pack_nil(&pk);
		pack_text(&pk, t->arch);
		if (t->host)
			msgpack_pack_true(&pk);
		else
			msgpack_pack_false(&pk);
	}
	for (size_t i = F_FIRST_BIN; i < FIELDS; i++)
		if (bins[i].size) {
			pack_text(&pk, field_names[i]);
			msgpack_pack_bin_with_body(&pk, bins[i].text, bins[i].size);
		}
}

kpack_error_t kp_recipe_encode(const struct kp_recipe *r, uint8_t **out, size_t *size,
			       struct kpackx_error *why)
{
	struct kp_compose bins[FIELDS] = {0}, *forms = &bins[F_COMPRESSED];
	KP_AUTO(kp_compose) map = {0};
	KP_AUTO_FREE uint8_t *data = NULL;
	ZSTD_CCtx *ctx;
	size_t room, n = 0;
	bool good;

	kp_compose_span(&bins[F_COPIED], (struct kp_span){r->copied, sizeof(r->copied)});
	for (size_t i = 0; i < r->n_images; i++)
		put_number(&bins[F_OBJECTS], r->images[i].target);
	for (size_t i = 0; i < r->n_images; i++) {
		const struct kp_recipe_image *image = &r->images[i];

		put_number(&bins[F_OBJECTS], image->size);
		if (image->has_xxh3)
			kp_compose_span(&bins[F_HASHES],
					(struct kp_span){image->xxh3, KP_RECIPE_HASH});
		else if (!image->host && image->size)
			put_number(&bins[F_UNKNOWN], i);
	}
	for (size_t i = 0; i < r->n_containers; i++)
		put_number(&bins[F_CONTAINERS], r->containers[i].n_images);
	for (size_t i = 0; i < r->n_wrappers; i++)
		put_signed(&bins[F_WRAPPERS],
			   r->wrapper_container[i] -
				   (i ? r->wrapper_container[i - 1] + UINT64_C(1) : 0));
	for (size_t i = 0; i < r->n_forms; i++) {
		const struct kp_recipe_form *f = &r->forms[i];
		uint8_t hash[8];

		put_number(forms, f->form.version);
		put_number(forms, f->form.method);
		put_number(forms, (uint64_t)f->form.level);
		put_number(forms, f->form.long_range);
		put_number(forms, f->kept);
		kp_put_le64(hash, f->form.hash);
		kp_compose_span(forms, (struct kp_span){hash, sizeof(hash)});
		kp_compose_span(forms, (struct kp_span){f->xxh3, sizeof(f->xxh3)});
	}
	put_parts(&bins[F_PARTS], r);
	kp_compose_span(&bins[F_BYTES], (struct kp_span){r->bytes, r->n_bytes});
	pack_recipe(&map, r, bins);
	for (size_t i = 0; i < FIELDS; i++)
		kp_compose_fini(&bins[i]);
	if (map.size > KP_LAYOUT_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "recipe: %zu bytes, at most %llu", map.size,
			       (unsigned long long)KP_LAYOUT_MAX);
	/* with a checksum: a damaged recipe must not restore a wrong file */
	room = ZSTD_compressBound(map.size);
	data = malloc(room + r->n_kept);
	ctx = ZSTD_createCCtx();
	good = !map.no_memory && data && ctx &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel,
						    map.size > SLOW_MAX ? 3 : 19));
	if (good)
		n = ZSTD_compress2(ctx, data, room, map.text, map.size);
	ZSTD_freeCCtx(ctx);
	if (!good || ZSTD_isError(n))
		return kp_fail_memory(why, room + r->n_kept, "a recipe");
	if (r->n_kept)
		memcpy(data + n, r->kept, r->n_kept);
	*out = data;
	*size = n + r->n_kept;
	data = NULL;
	return KPACK_SUCCESS;
}
