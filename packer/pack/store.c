/* SPDX-License-Identifier: MIT */
/*
 * Storing the objects of a plan: pack_run.
 *
 *	on threads (pack_job)		in the order of the plan (commit_packed)
 *	read the object			archive_set_store: it gets its ordinal
 *	describe it: type, facts	name_image: an entry for each index of its
 *	hash it				    container, KEY[@KIND]#INDEX
 *	is it stored already?		name_database: an entry for each of its keys
 *	compress it
 *
 * The order makes archives independent of the number of threads, and memory is bounded by what
 * is between the two (BUDGET).  An object is packed in memory (pack_in_memory); piece by piece,
 * if it is stored in chunks, where equal content shows only when frames are compared
 * (pack_in_chunks); or, if it is large, by way of temporary files (pack_by_files, large.c).
 * What is stored already is not compressed again, unless it is in chunks.
 */
#include "store.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/slots.h"
#include "core/base/text.h"
#include "core/format/format.h"
#include "core/format/strip.h"
#include "core/writer/effort.h"
#include "core/writer/writer.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/xalloc.h"
#include "packer/library/cutile_signature.h"

/*
 * The bound of raw and compressed bytes of all objects that are begun and not yet stored.
 */
static const uint64_t BUDGET = 96 << 20;

/* The length of a suffix, with the kind's first 40 bytes, a number and a NUL. */
enum { KEY_SUFFIX_MAX = 64 };

/*
 * A row of the table: an ordinal that is named, or a kind and how many objects have it as
 * suffix.
 */
struct suffix_seen {
	uint64_t hash;
	uint32_t times;
};

/* The objects stored from the current container for one architecture.  Zeroed: none. */
struct key_suffixes {
	const char *arch; /* borrowed */
	struct suffix_seen *rows;
	size_t count, cap;
	struct kp_slots slots; /* of the rows */
	size_t n_objects;
};

struct packer {
	const struct plan *plan;
	const struct pack_options *options;
	struct archive_set *set;
	struct kp_effort effort; /* the levels of objects */
	size_t *jobs;            /* the numbers of the objects that are stored */
	size_t n_jobs;

	/* objects of the current container, which may have an architecture twice */
	uint32_t container;
	struct key_suffixes names;
};

/* A thread's own data. */
struct worker {
	struct kp_encoder *encoder; /* of the lower level */
	struct kp_encoder *high;    /* NULL: there is no higher one */
	struct kp_encoder *density; /* of KP_DENSITY_LEVEL, if there is, or for samples */
	struct kp_scratch scratch;
	uint8_t *raw; /* an object, and behind it its frame */
	size_t raw_cap;
};

/* The maximum length of an entry's type. */
enum { TYPE_MAX = 16 };

/* An object on its way from a thread to the archive. */
struct packed {
	struct archive_object object;
	char type[TYPE_MAX + 1];
	struct facts facts;
	uint8_t *stored;
	struct large large; /* or its files are -1 */
	bool measured;
	uint64_t debug, pressed_debug, pressed; /* as in struct bundle_sizes */
};

static const struct kp_image *image_of(const struct plan_object *o)
{
	return &o->input->images[o->image];
}

/* Whether O is of a database: it has a library's description in place of a container. */
static bool of_database(const struct plan_object *o)
{
	return o->input->kind == INPUT_DATABASE;
}

/* The compressed bundle that O is in; NULL: it is in none. */
static const struct kp_container *bundle_of(const struct plan_object *o)
{
	const struct kp_container *c =
		of_database(o) ? NULL
			       : &o->input->fat.containers.items[image_of(o)->container];

	return c && c->format->load ? c : NULL;
}

/*
 * Whether O is packed by way of temporary files.  Others are compressed in memory: objects
 * in chunks, and the blocks of shared archives.
 */
static bool is_large(const struct packer *p, const struct plan_object *o)
{
	return !o->chunk && p->options->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
	       large_is(image_of(o)->size);
}

/* Put the place of O before the message of ERR. */
static kpack_error_t fail_object(const struct plan_object *o, kpack_error_t err,
				 struct kpackx_error *why)
{
	if (of_database(o))
		return kp_fail_prefix(why, err, "%s", o->input->shown);
	return kp_fail_prefix(why, err, "%s: container %zu", o->input->shown,
			      image_of(o)->container);
}

/* --- what an archive says about an object ---------------------------------------------- */

static uint64_t hash_row(const void *arg, uint32_t row)
{
	const struct key_suffixes *n = arg;

	return n->rows[row].hash;
}

/*
 * The row of HASH, which is added if missing.  The rows are hashed because an archive of
 * bitcode may have thousands of objects for one architecture.
 */
static struct suffix_seen *find_row(struct key_suffixes *n, uint64_t hash)
{
	uint32_t *slot;

	if (!kp_slots_grow(&n->slots, hash_row, n))
		xalloc_fail(0);
	slot = kp_slots_first(&n->slots, hash);
	while (*slot && n->rows[*slot - 1].hash != hash)
		slot = kp_slots_next(&n->slots, slot);
	if (!*slot) {
		kp_slots_put(&n->slots, slot, (uint32_t)n->count);
		xgrow(&n->rows, n->count, &n->cap, sizeof(*n->rows));
		n->rows[n->count++] = (struct suffix_seen){hash, 0};
	}
	return &n->rows[*slot - 1];
}

/* Forget all objects: another container, or another architecture of it, begins. */
static void key_suffixes_fini(struct key_suffixes *n)
{
	free(n->rows);
	free(n->slots.slots);
	*n = (struct key_suffixes){0};
}

/*
 * No loader reads longer facts than these, which are left out: real containers state about ten
 * pairs of less than a hundred bytes.
 */
enum { PAIRS_MAX = 64, NAME_MAX_BYTES = 64, VALUE_MAX = 1024, MAP_MAX = 16384 };

static bool is_short_text(const char *text, size_t most)
{
	struct kp_span s = kp_span_str(text);

	return s.size && s.size <= most && kp_text_ok(s);
}

/* Add the pairs of an image.  Its kind is one of the keys, too. */
static void add_pairs(struct facts *f, const char *name, const struct kp_image *img)
{
	const struct kp_pair *items = img->pairs.items;
	struct facts map = {0};

	facts_string(&map, "kind", img->kind);
	for (size_t i = 0; i < img->pairs.count && i < PAIRS_MAX; i++) {
		struct kp_span value = {(const uint8_t *)items[i].value, items[i].size};
		bool last = true; /* of several with one name the last one counts */

		for (size_t k = i + 1; k < img->pairs.count && last; k++)
			last = strcmp(items[k].name, items[i].name) != 0;
		if (!last || !is_short_text(items[i].name, NAME_MAX_BYTES) ||
		    value.size > VALUE_MAX || map.size + value.size > MAP_MAX ||
		    facts_has(&map, items[i].name))
			continue;
		if (kp_text_ok(value))
			facts_text(&map, items[i].name, value);
		else
			facts_bytes(&map, items[i].name, value);
	}
	facts_map(f, name, &map);
	facts_fini(&map);
}

/*
 * Write the metadata of the entries of an image, with FACTS; the caller frees *MAP.  For an
 * object of a database: with its path, mode, library and role.
 */
static kpack_error_t entry_metadata(const struct input *in, size_t image,
				    const struct kp_content *content,
				    const struct facts *facts, uint8_t **map,
				    size_t *size, struct kpackx_error *why)
{
	const struct kp_image *img = &in->images[image];
	struct kp_meta meta = {.has_xxh3 = true, .chunk = content->chunk};
	struct kp_metadata_more more;
	struct facts all = {0};
	kpack_error_t err;

	memcpy(meta.xxh3, content->hash, sizeof(meta.xxh3));
	if (in->kind == INPUT_DATABASE) {
		const struct library_object *o = &in->objects[image];

		if (o->path)
			meta.path = kp_span_str(o->path);
		if (o->mode & 0111)
			meta.mode = o->mode & 0777;
		facts_string(&all, "library", o->library);
		facts_string(&all, "role", o->role);
	} else if (img->id && !img->stream &&
		   in->fat.containers.items[img->container].format !=
			   &kp_format_archive) {
		/* a bundle entry ID; names of members and sections are not */
		meta.target = kp_span_str(img->id);
	}
	facts_join(&all, facts);
	more = (struct kp_metadata_more){.pairs = {all.pairs, all.size},
					 .n_pairs = all.count};
	err = kp_metadata_write(&meta, &more, map, size, why);
	facts_fini(&all);
	return err;
}

/* --- on the threads ------------------------------------------------------------------ */

static void end_worker(void *state)
{
	struct worker *w = state;

	kp_encoder_free(w->encoder);
	kp_encoder_free(w->high);
	kp_encoder_free(w->density);
	kp_scratch_fini(&w->scratch);
	free(w->raw);
	free(w);
}

static kpack_error_t begin_worker(void *arg, void **state, struct kpackx_error *why)
{
	const struct packer *p = arg;
	struct worker *w = xcalloc(1, sizeof(*w));
	bool two = p->effort.high != p->effort.low;
	kpack_error_t err = kp_encoder_new(p->effort.low, &w->encoder, why);

	if (!err && two)
		err = kp_encoder_new(p->effort.high, &w->high, why);
	if (!err && (two || p->options->sizes))
		err = kp_encoder_new(KP_DENSITY_LEVEL, &w->density, why);
	if (err)
		end_worker(w);
	else
		*state = w;
	return err;
}

static uint64_t cost_of_job(void *arg, size_t job)
{
	const struct packer *p = arg;
	const struct plan_object *o = &p->plan->objects[p->jobs[job]];
	uint64_t size = image_of(o)->size;

	/* of an object in chunks only the encoded bytes are held */
	return input_cost(o->input, o->image) + (is_large(p, o) ? LARGE_COST
						 : o->chunk     ? size
								: 2 * size);
}

/* Equal content has the same encoder, so that it gives the same frame. */
static kpack_error_t choose_encoder(const struct packer *p, struct worker *w,
				    const struct kp_source *source,
				    struct kp_encoder **out, struct kpackx_error *why)
{
	uint32_t density;

	*out = w->encoder;
	if (!w->high)
		return KPACK_SUCCESS;
	KP_TRY(kp_density(w->density, source, &density, why));
	if (kp_effort_high(&p->effort, density))
		*out = w->high;
	return KPACK_SUCCESS;
}

/*
 * Find the object's type, and the facts for its metadata.
 *
 * The type of a file is the ending of its name ("so" of libx.so.1), that of device code its kind.
 * Facts are what the container says about its image ("keys" of an offload binary, "fatbin" of a
 * CUDA fatbin, "member" of an archive), and what the code says about itself ("triple" of bitcode,
 * "signatures" of cuTile's kernels).
 */
static kpack_error_t describe_object(const struct plan_object *o,
				     const struct kp_source *source, struct packed *out,
				     struct kpackx_error *why)
{
	const char *path = of_database(o) ? o->input->objects[o->image].path : NULL;
	const struct kp_image *img = image_of(o);
	const struct kp_format *format;
	struct kpackx_error fault = {0};
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_object object;
	const char *triple;
	struct kp_span head;
	kpack_error_t err;

	KP_TRY(kp_source_head(source, 0, bytes, sizeof(bytes), &head, why));
	snprintf(out->type, sizeof(out->type), "%s",
		 path ? "bin" : kp_image_type(img, head));
	if (path) {
		const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
		size_t size = strlen(name), n;
		const char *dot;

		while (size && strchr(".0123456789", name[size - 1]) &&
		       strstr(name, ".so."))
			size--;
		dot = memrchr(name, '.', size);
		n = dot ? size - (size_t)(dot + 1 - name) : 0;
		if (n && n <= TYPE_MAX && dot[1] >= 'a' && dot[1] <= 'z' &&
		    strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789") >= n)
			snprintf(out->type, sizeof(out->type), "%.*s", (int)n, dot + 1);
	}
	if (of_database(o))
		return KPACK_SUCCESS;
	format = o->input->fat.containers.items[img->container].format;
	if (format == &kp_format_offload_binary)
		add_pairs(&out->facts, "keys", img);
	else if (format == &kp_format_fatbin)
		add_pairs(&out->facts, "fatbin", img);
	else if (format == &kp_format_archive && img->id &&
		 is_short_text(img->id, VALUE_MAX))
		facts_string(&out->facts, "member", img->id);
	/* only these types state facts that are recorded; others need not be read for them */
	if (strcmp(out->type, "cubin") != 0 && strcmp(out->type, "tileirbc") != 0 &&
	    strcmp(out->type, "bc") != 0)
		return KPACK_SUCCESS;
	err = kp_object_describe(source, &object, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR) {
		if (why)
			*why = fault;
		return err;
	}
	if (err) /* what cannot be read as its type says nothing */
		return KPACK_SUCCESS;
	triple = kp_pairs_find(&object.facts, "triple");
	if (triple && is_short_text(triple, VALUE_MAX))
		facts_string(&out->facts, "triple", triple);
	signature_facts(&out->facts, &object);
	kp_object_fini(&object);
	return KPACK_SUCCESS;
}

/* Note the content of an object, now that its bytes were read. */
static void note_content(const struct plan_object *o, struct packed *out,
			 const struct kp_content *content)
{
	out->object.content = *content;
	memcpy(o->input->xxh3[o->image], content->hash, sizeof(content->hash));
	o->input->known[o->image] = true;
}

static kpack_error_t add_to_hash(void *hash, const void *data, size_t size,
				 struct kpackx_error *why)
{
	(void)why;
	kp_hasher_add(hash, data, size);
	return KPACK_SUCCESS;
}

/*
 * Hash and encode the object while reading it; comparing frames shows later whether it is
 * already stored.
 */
static kpack_error_t pack_in_chunks(const struct packer *p, struct worker *w,
				    const struct plan_object *o,
				    const struct kp_source *source, struct packed *out,
				    struct kpackx_error *why)
{
	struct kp_encoder *encoder;
	struct kp_content content;
	struct kp_hasher *hash;
	struct kp_sink seen = {.write = add_to_hash};
	struct kp_hash value;
	size_t size = 0;
	kpack_error_t err;

	KP_TRY(describe_object(o, source, out, why));
	KP_TRY(choose_encoder(p, w, source, &encoder, why));
	seen.arg = hash = kp_hasher_new();
	if (!hash)
		xalloc_fail(0);
	err = kp_encode_source(encoder, source, o->chunk, &seen, &out->stored, &size,
			       why);
	value = kp_hasher_value(hash);
	kp_hasher_free(hash);
	if (err)
		return err;
	content = kp_content_make(&value, source->size, o->chunk);
	note_content(o, out, &content);
	out->object.stored = (struct kp_span){out->stored, size};
	return KPACK_SUCCESS;
}

static kpack_error_t pack_by_files(const struct packer *p, struct worker *w,
				   const struct plan_object *o,
				   const struct kp_source *source, struct packed *out,
				   struct kpackx_error *why)
{
	struct large *l = &out->large;
	struct kp_encoder *encoder;
	struct kp_content content;
	struct kp_hash hash;
	bool shared;

	KP_TRY(large_begin(source, input_image_spilled(o->input, o->image), l, &hash,
			   why));
	KP_TRY(describe_object(o, &l->raw, out, why));
	content = kp_content_make(&hash, source->size, 0);
	note_content(o, out, &content);
	KP_TRY(archive_set_shared(p->set, &out->object, &l->raw, NULL, &shared, why));
	if (shared)
		return KPACK_SUCCESS;
	KP_TRY(choose_encoder(p, w, &l->raw, &encoder, why));
	KP_TRY(large_encode(l, encoder, why));
	out->object.file = &l->frame;
	out->object.stored.size = (size_t)l->frame.size;
	return KPACK_SUCCESS;
}

/*
 * Of about so many objects debugging information is measured, and of a part of them, which
 * have at most so many bytes, compressed.
 */
enum { MEASURED = 512, PRESSED_SHARE = 8, PRESSED_MAX = 8 << 20 };

/*
 * If O is one of them, find out how much debugging information it has: W has its bytes.  O's
 * hash decides, so that no GPU is preferred.
 */
static kpack_error_t measure_debug(const struct packer *p, struct worker *w,
				   const struct plan_object *o, struct packed *out,
				   struct kpackx_error *why)
{
	size_t size = (size_t)image_of(o)->size, cap = kp_encode_bound(size, 0), with = 0,
	       without = 0;
	struct kp_source source = kp_source_memory(w->raw, size);
	uint32_t share = (uint32_t)(p->plan->n_objects / MEASURED + 1);
	uint32_t hash = kp_le32(out->object.content.hash);
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_stripped s;
	uint8_t *buf;

	if (!p->options->sizes || !bundle_of(o) || hash % share)
		return KPACK_SUCCESS;
	out->measured = true;
	if (kp_strip_plan(&source, KP_STRIP_DEBUG, &s, NULL))
		return KPACK_SUCCESS; /* it has none */
	out->debug = size - s.size;
	if (size <= PRESSED_MAX && !(hash / share % PRESSED_SHARE)) {
		buf = xmalloc(size + cap);
		err = kp_encode(w->density, (struct kp_span){w->raw, size}, 0, buf + size,
				cap, &with, why);
		if (!err)
			err = kp_stripped_read(&s, &source, buf, why);
		if (!err)
			err = kp_encode(w->density, (struct kp_span){buf, (size_t)s.size},
					0, buf + size, cap, &without, why);
		out->pressed_debug = out->debug;
		out->pressed = with > without ? with - without : 0;
		free(buf);
	}
	kp_stripped_fini(&s);
	return err;
}

static kpack_error_t pack_in_memory(const struct packer *p, struct worker *w,
				    const struct plan_object *o, struct packed *out,
				    struct kpackx_error *why)
{
	size_t size = (size_t)image_of(o)->size, cap, used = size;
	/* a shared archive compresses blocks, not objects */
	bool plain = p->options->scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL;
	struct kp_encoder *encoder;
	struct kp_content content;
	struct kp_source source;
	kpack_error_t err;
	uint8_t *frame;
	bool shared;

	cap = plain ? 0 : kp_encode_bound(size, 0);
	if (size + cap > w->raw_cap || !w->raw) {
		free(w->raw); /* the old content is not needed: do not copy it */
		w->raw = malloc(size + cap + 1);
		w->raw_cap = w->raw ? size + cap : 0;
		if (!w->raw)
			return kp_fail_memory(why, size, "an object");
	}
	KP_TRY(input_open_image(o->input, o->image, &source, why));
	err = kp_source_read(&source, 0, w->raw, size, why);
	input_close_image(o->input, o->image);
	if (err)
		return err;
	frame = w->raw;
	source = kp_source_memory(w->raw, size);
	KP_TRY(describe_object(o, &source, out, why));
	content = kp_content_of((struct kp_span){w->raw, size}, 0);
	note_content(o, out, &content);
	KP_TRY(archive_set_shared(p->set, &out->object, &source, &w->scratch, &shared,
				  why));
	if (shared)
		return KPACK_SUCCESS;
	KP_TRY(measure_debug(p, w, o, out, why));
	if (!plain) {
		KP_TRY(choose_encoder(p, w, &source, &encoder, why));
		frame = w->raw + size;
		KP_TRY(kp_encode(encoder, (struct kp_span){w->raw, size}, 0, frame, cap,
				 &used, why));
	}
	out->stored = malloc(used + 1);
	if (!out->stored)
		return kp_fail_memory(why, used, "a frame");
	memcpy(out->stored, frame, used);
	out->object.stored = (struct kp_span){out->stored, used};
	return KPACK_SUCCESS;
}

static void discard_packed(void *arg, void *result)
{
	struct packed *packed = result;

	(void)arg;
	facts_fini(&packed->facts);
	large_fini(&packed->large);
	free(packed->stored);
	free(packed);
}

static kpack_error_t pack_job(void *arg, void *state, size_t job, void **result,
			      struct kpackx_error *why)
{
	const struct packer *p = arg;
	struct worker *w = state;
	const struct plan_object *o = &p->plan->objects[p->jobs[job]];
	struct packed *packed = xcalloc(1, sizeof(*packed));
	struct kp_source source;
	kpack_error_t err;

	packed->object.place = image_of(o)->arch;
	packed->object.volume = p->plan->binaries[o->binary].volume;
	packed->large = (struct large){.raw_fd = -1, .frame_fd = -1};
	if (!o->chunk && !is_large(p, o)) {
		err = pack_in_memory(p, w, o, packed, why);
	} else {
		err = input_open_image(o->input, o->image, &source, why);
		if (!err) {
			err = o->chunk ? pack_in_chunks(p, w, o, &source, packed, why)
				       : pack_by_files(p, w, o, &source, packed, why);
			large_end_raw(&packed->large);
			input_close_image(o->input, o->image);
		}
	}
	/* a block that was touched costs no page faults; all threads together keep bounded bytes */
	if (w->raw_cap > BUDGET / p->options->jobs) {
		free(w->raw);
		w->raw = NULL;
		w->raw_cap = 0;
	}
	if (err) {
		discard_packed(NULL, packed);
		return fail_object(o, err, why);
	}
	if (!of_database(o) && p->options->source_prefix)
		facts_string(&packed->facts, "source_prefix", p->options->source_prefix);
	*result = packed;
	return KPACK_SUCCESS;
}

/* --- in order ------------------------------------------------------------------------ */

/*
 * Add the entries of an image: one for each index of its container, KEY[@KIND]#INDEX.
 *
 * The first object of an architecture in a container has no "@kind"; an object that differs from it
 * gets one, further ones of that kind "@kind.2" and so on.  The very same object needs no other entry:
 * equal bytes have equal ordinals.  The objects of one architecture come one after another.
 */
static kpack_error_t name_image(struct packer *p, const struct plan_object *o,
				const struct packed *packed, struct kp_writer_entry entry,
				struct kpackx_error *why)
{
	const struct plan_container *c = &p->plan->containers[o->container];
	const struct kp_image *img = image_of(o);
	/* the offload kind of the entry ID, which is not cut; else the kind of image */
	struct kp_span kind = kp_span_str(img->kind[0] ? img->kind : packed->type);
	KP_AUTO_FREE uint8_t *metadata = NULL;
	char shown[41], suffix[KEY_SUFFIX_MAX] = "";
	struct key_suffixes *n = &p->names;
	struct suffix_seen *row;
	struct kp_entry_id id;
	size_t size;

	if (!n->arch || strcmp(n->arch, img->arch) != 0)
		key_suffixes_fini(n);
	n->arch = img->arch;
	row = find_row(n, kp_slot_hash(&entry.ordinal, sizeof(entry.ordinal), 1));
	if (row->times++)
		return KPACK_SUCCESS;
	if (img->kind[0] && img->id && kp_entry_id_parse(kp_span_str(img->id), &id) &&
	    kp_span_starts(id.kind, img->kind, strlen(img->kind)))
		kind = id.kind;
	if (n->n_objects++ > 0) {
		size = kind.size < sizeof(shown) - 1 ? kind.size : sizeof(shown) - 1;
		/* keys cannot have all bytes, and "/", "#", and "." before a number have a meaning */
		for (size_t i = 0; i < size; i++) {
			char b = (char)kind.data[i];
			bool plain = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') ||
				     (b >= '0' && b <= '9') || b == '_' || b == '+' ||
				     b == '-';

			shown[i] = plain ? b : '_';
		}
		shown[size] = 0;
		row = find_row(n, kp_slot_hash(shown, size, 2));
		if (++row->times == 1)
			snprintf(suffix, sizeof(suffix), "@%s", shown);
		else
			snprintf(suffix, sizeof(suffix), "@%s.%u", shown, row->times);
	}
	KP_TRY(entry_metadata(o->input, o->image, &packed->object.content, &packed->facts,
			      &metadata, &size, why));
	entry.metadata = (struct kp_span){metadata, size};
	for (size_t i = 0; i < c->n_indices; i++) {
		KP_AUTO_FREE char *key =
			xasprintf("%s%s#%u", o->input->key, suffix, c->indices[i]);

		KP_TRY(archive_set_entry(p->set, &packed->object, packed->object.place,
					 kp_span_str(key), &entry, why));
	}
	return KPACK_SUCCESS;
}

/* Add the keys of a database's object. */
static kpack_error_t name_database(struct packer *p, const struct plan_object *o,
				   const struct packed *packed,
				   struct kp_writer_entry entry, struct kpackx_error *why)
{
	for (size_t i = o->first_key; i < o->first_key + o->n_keys; i++) {
		const struct plan_key *key = &p->plan->keys[i];
		KP_AUTO_FREE uint8_t *metadata = NULL;
		size_t size;

		KP_TRY(entry_metadata(o->input, o->image, &packed->object.content,
				      key->facts, &metadata, &size, why));
		entry.metadata = (struct kp_span){metadata, size};
		KP_TRY(archive_set_entry(p->set, &packed->object, key->arch,
					 kp_span_str(key->key), &entry, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t commit_packed(void *arg, size_t job, void *result,
				   struct kpackx_error *why)
{
	struct packer *p = arg;
	const struct plan_object *o = &p->plan->objects[p->jobs[job]];
	struct packed *packed = result;
	struct bundle_sizes *sizes = p->options->sizes;
	const struct kp_container *bundle = bundle_of(o);
	bool first = job == 0 || o->container != p->container;
	struct kp_writer_entry entry;
	kpack_error_t err;

	if (first)
		key_suffixes_fini(&p->names);
	p->container = o->container;
	err = archive_set_store(p->set, &packed->object, why);
	if (!err && sizes && bundle && first)
		sizes->bundles += bundle->size;
	if (!err && sizes && !packed->object.shared) {
		uint64_t stored = packed->object.stored.size;

		sizes->all += stored;
		sizes->objects += bundle ? stored : 0;
		sizes->measured += packed->measured ? stored : 0;
		sizes->debug += packed->debug;
		sizes->pressed_debug += packed->pressed_debug;
		sizes->pressed += packed->pressed;
	}
	entry = (struct kp_writer_entry){
		.type = kp_span_str(packed->type),
		.ordinal = packed->object.ordinal,
		.size = packed->object.content.size,
	};
	if (!err)
		err = of_database(o) ? name_database(p, o, packed, entry, why)
				     : name_image(p, o, packed, entry, why);
	if (err)
		kp_fail_prefix(why, err, "%s", o->input->shown);
	progress_add(image_of(o)->size);
	discard_packed(NULL, packed);
	return err;
}

/* --- levels -------------------------------------------------------------------------- */

/* The most objects that are looked at to choose levels for all. */
enum { SAMPLES = 256 };

/* Choose the levels of all objects by those in which each SAMPLES-th of all bytes begins. */
static kpack_error_t choose_levels(struct packer *p, struct kpackx_error *why)
{
	static uint8_t buf[KP_DENSITY_SIZE];
	struct kp_density_sample samples[SAMPLES];
	const struct plan *plan = p->plan;
	const struct plan_object *last = NULL;
	uint64_t share = plan->bytes / SAMPLES + 1, at = 0, due = 0;
	struct kp_encoder *e;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0, size;

	KP_TRY(kp_encoder_new(KP_DENSITY_LEVEL, &e, why));
	for (size_t i = 0; i < plan->n_objects && !err; i++) {
		const struct plan_object *o = &plan->objects[i];
		struct kp_source source = kp_source_memory(buf, 0);
		uint64_t before = due;

		at += image_of(o)->size;
		if (at <= due)
			continue;
		due += ((at - 1 - due) / share + 1) * share;
		if (last)
			input_end_peek(last->input, last->image,
				       last->input == o->input ? o->image : KP_NOWHERE);
		last = o;
		err = input_peek(o->input, o->image, buf, sizeof(buf), &size, why);
		source.size = size;
		if (!err)
			err = kp_density(e, &source, &samples[n].density, why);
		if (err)
			fail_object(o, err, why);
		samples[n++].size = due - before;
	}
	if (last)
		input_end_peek(last->input, last->image, KP_NOWHERE);
	kp_encoder_free(e);
	if (!err)
		p->effort = kp_effort_choose(false, plan->bytes * p->options->effort,
					     samples, n);
	return err;
}

kpack_error_t pack_run(const struct plan *plan, const struct pack_options *options,
		       struct archive_set *set, struct kpackx_error *why)
{
	struct packer p = {.plan = plan,
			   .options = options,
			   .set = set,
			   .effort = kp_effort_fixed(options->level)};
	struct pipeline pipeline = {
		.threads = options->jobs,
		.budget = BUDGET,
		.arg = &p,
		.begin = begin_worker,
		.end = end_worker,
		.cost = cost_of_job,
		.work = pack_job,
		.commit = commit_packed,
		.discard = discard_packed,
	};
	kpack_error_t err = KPACK_SUCCESS;

	p.jobs = xmalloc(plan->n_objects * sizeof(*p.jobs));
	for (size_t i = 0; i < plan->n_objects; i++)
		if (!options->mine || options->mine[plan->objects[i].input->entry])
			p.jobs[p.n_jobs++] = i;
	pipeline.n_jobs = p.n_jobs;
	if (options->effort && options->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		err = choose_levels(&p, why);
	if (!err)
		err = pipeline_run(&pipeline, NULL, why);
	key_suffixes_fini(&p.names);
	free(p.jobs);
	return err;
}
