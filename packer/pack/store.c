/* SPDX-License-Identifier: MIT */
#include "store.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/writer/effort.h"
#include "core/format/strip.h"
#include "core/base/alloc.h"
#include "packer/cli/xalloc.h"
#include "entry_meta.h"
#include "key_suffix.h"
#include "packer/cli/pipeline.h"
#include "large.h"

/*
 * The bound of raw and compressed bytes of all objects that are begun and not yet stored.
 */
static const uint64_t BUDGET = 96 << 20;

struct packer {
	const struct plan *plan;
	const struct pack_options *options;
	struct archive_set *set;
	struct progress *progress;
	struct kp_effort effort; /* the levels of objects */
	size_t *jobs;            /* the numbers of the objects that are stored */
	size_t n_jobs;

	/* objects of the current container, which may have an architecture twice */
	uint32_t container;
	struct key_suffixes names;
};

/* Bytes of a larger object are freed when it is packed: few threads need as many at once. */
static const size_t RAW_KEPT = 4 << 20;

/* A thread's own data. */
struct worker {
	struct kp_encoder *encoder; /* of the lower level */
	struct kp_encoder *high;    /* NULL: there is no higher one */
	struct kp_encoder *density; /* of KP_DENSITY_LEVEL, if there is, or for samples */
	struct kp_scratch scratch;
	uint8_t *raw;
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

/* Put the place of O before the message of ERR. */
static kpack_error_t fail_object(const struct plan_object *o, kpack_error_t err,
				 struct kpackx_error *why)
{
	if (of_database(o))
		return kp_fail_prefix(why, err, "%s", o->input->shown);
	return kp_fail_prefix(why, err, "%s: container %zu", o->input->shown,
			      image_of(o)->container);
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

/*
 * Whether O is packed by way of temporary files.  Others are compressed in memory: objects
 * in chunks, and the blocks of shared archives.
 */
static bool is_large(const struct packer *p, const struct plan_object *o)
{
	return !o->chunk && p->options->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
	       large_is(image_of(o)->size);
}

static uint64_t cost_of_job(void *arg, size_t job)
{
	const struct packer *p = arg;
	const struct plan_object *o = &p->plan->objects[p->jobs[job]];

	if (is_large(p, o))
		return LARGE_COST + input_cost(o->input, o->image);
	/* of an object in chunks only the encoded bytes are held */
	return (o->chunk ? 1 : 2) * image_of(o)->size + input_cost(o->input, o->image);
}

static kpack_error_t read_raw(struct worker *w, const struct plan_object *o,
			      struct kpackx_error *why)
{
	size_t size = (size_t)image_of(o)->size;

	if (size > w->raw_cap || !w->raw) {
		free(w->raw); /* the old content is not needed: do not copy it */
		w->raw = malloc(size + 1);
		w->raw_cap = w->raw ? size : 0;
		if (!w->raw)
			return kp_fail_memory(why, size, "an object");
	}
	return input_read(o->input, o->image, w->raw, why);
}

static void free_large_raw(struct worker *w)
{
	if (w->raw_cap <= RAW_KEPT)
		return;
	free(w->raw);
	w->raw = NULL;
	w->raw_cap = 0;
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

static kpack_error_t encode_object(const struct packer *p, struct worker *w,
				   struct packed *out, struct kpackx_error *why)
{
	size_t size = (size_t)out->object.content.size, cap, used = size;
	/* a shared archive compresses blocks, not objects */
	bool plain = p->options->scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL;
	struct kp_source source = kp_source_memory(w->raw, size);
	struct kp_encoder *encoder;

	cap = plain ? size : kp_encode_bound(size, 0);
	out->stored = malloc(cap + 1);
	if (!out->stored)
		return kp_fail_memory(why, cap, "a frame");
	if (plain) {
		memcpy(out->stored, w->raw, size);
	} else {
		KP_TRY(choose_encoder(p, w, &source, &encoder, why));
		KP_TRY(kp_encode(encoder, (struct kp_span){w->raw, size}, 0, out->stored,
				 cap, &used, why));
	}
	out->stored = kp_large_trim(out->stored, used + 1);
	out->object.stored = (struct kp_span){out->stored, used};
	return KPACK_SUCCESS;
}

/* Get the part of NAME after its last dot, if it may be a type. */
static bool type_of_name(const char *name, size_t size, struct kp_span *out)
{
	const char *dot = memrchr(name, '.', size);
	size_t n = dot ? size - (size_t)(dot + 1 - name) : 0;

	if (n == 0 || n > TYPE_MAX || dot[1] < 'a' || dot[1] > 'z')
		return false;
	*out = (struct kp_span){(const uint8_t *)dot + 1, n};
	return strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789") >= n;
}

/*
 * Find the type: of a file the ending of its name ("so" of libx.so.1), of device code its
 * kind.
 */
static void find_type(const struct plan_object *o, struct kp_span head,
		      char out[TYPE_MAX + 1])
{
	const struct library_object *object =
		of_database(o) ? &o->input->objects[o->image] : NULL;
	const char *name = object && object->path ? strrchr(object->path, '/') : NULL;
	struct kp_span type = kp_span_str("bin");
	size_t size;

	if (!object || !object->path) {
		snprintf(out, TYPE_MAX + 1, "%s", kp_image_type(image_of(o), head));
		return;
	}
	name = name ? name + 1 : object->path;
	size = strlen(name);
	while (size && strchr(".0123456789", name[size - 1]) && strstr(name, ".so."))
		size--;
	type_of_name(name, size, &type);
	memcpy(out, type.data, type.size);
	out[type.size] = 0;
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
static kpack_error_t encode_chunks(struct kp_encoder *encoder,
				   const struct plan_object *o,
				   const struct kp_source *source, struct packed *out,
				   struct kpackx_error *why)
{
	struct kp_hasher *hash = kp_hasher_new();
	struct kp_sink seen = {.write = add_to_hash, .arg = hash};
	struct kp_content content;
	struct kp_hash value;
	size_t size = 0;
	kpack_error_t err;

	if (!hash)
		xalloc_fail(0);
	err = kp_encode_source(encoder, source, o->chunk, &seen, &out->stored, &size,
			       why);
	value = kp_hasher_value(hash);
	kp_hasher_free(hash);
	content = kp_content_make(&value, source->size, o->chunk);
	if (err)
		return err;
	note_content(o, out, &content);
	out->object.stored = (struct kp_span){out->stored, size};
	return KPACK_SUCCESS;
}

/* Find the object's type and the facts for its metadata. */
static kpack_error_t describe_object(const struct plan_object *o,
				     const struct kp_source *source, struct packed *out,
				     struct kpackx_error *why)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	KP_TRY(kp_source_head(source, 0, bytes, sizeof(bytes), &head, why));
	find_type(o, head, out->type);
	return entry_meta_facts(o->input, o->image, out->type, source, &out->facts, why);
}

static kpack_error_t pack_chunks(const struct packer *p, struct worker *w,
				 const struct plan_object *o, struct packed *out,
				 struct kpackx_error *why)
{
	struct kp_encoder *encoder;
	struct kp_source source;
	kpack_error_t err;

	KP_TRY(input_open_image(o->input, o->image, &source, why));
	err = describe_object(o, &source, out, why);
	if (!err)
		err = choose_encoder(p, w, &source, &encoder, why);
	if (!err)
		err = encode_chunks(encoder, o, &source, out, why);
	input_close_image(o->input, o->image);
	return err;
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

static kpack_error_t pack_whole(const struct packer *p, struct worker *w,
				const struct plan_object *o, struct packed *out,
				struct kpackx_error *why)
{
	size_t size = (size_t)image_of(o)->size;
	struct kp_content content;
	struct kp_source source;
	bool shared;

	KP_TRY(read_raw(w, o, why));
	source = kp_source_memory(w->raw, size);
	KP_TRY(describe_object(o, &source, out, why));
	content = kp_content_of((struct kp_span){w->raw, size}, 0);
	note_content(o, out, &content);
	KP_TRY(archive_set_shared(p->set, &out->object, w->raw, &w->scratch, &shared,
				  why));
	if (shared)
		return KPACK_SUCCESS;
	KP_TRY(measure_debug(p, w, o, out, why));
	return encode_object(p, w, out, why);
}

static kpack_error_t pack_files(const struct packer *p, struct worker *w,
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
	KP_TRY(archive_set_shared_file(p->set, &out->object, &l->raw, &shared, why));
	if (shared)
		return KPACK_SUCCESS;
	KP_TRY(choose_encoder(p, w, &l->raw, &encoder, why));
	KP_TRY(large_encode(l, encoder, why));
	out->object.file = &l->frame;
	out->object.stored.size = (size_t)l->frame.size;
	return KPACK_SUCCESS;
}

static kpack_error_t pack_large(const struct packer *p, struct worker *w,
				const struct plan_object *o, struct packed *out,
				struct kpackx_error *why)
{
	struct kp_source source;
	kpack_error_t err;

	KP_TRY(input_open_image(o->input, o->image, &source, why));
	err = pack_files(p, w, o, &source, out, why);
	large_end_raw(&out->large);
	input_close_image(o->input, o->image);
	return err;
}

static kpack_error_t pack_object(const struct packer *p, struct worker *w,
				 const struct plan_object *o, struct packed *out,
				 struct kpackx_error *why)
{
	if (o->chunk)
		return pack_chunks(p, w, o, out, why);
	if (is_large(p, o))
		return pack_large(p, w, o, out, why);
	return pack_whole(p, w, o, out, why);
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
	const struct plan_object *o = &p->plan->objects[p->jobs[job]];
	struct packed *packed = xcalloc(1, sizeof(*packed));
	kpack_error_t err;

	packed->object.place = image_of(o)->arch;
	packed->object.volume = p->plan->binaries[o->binary].volume;
	packed->large = (struct large){.raw_fd = -1, .frame_fd = -1};
	err = pack_object(p, state, o, packed, why);
	free_large_raw(state);
	if (!err && !of_database(o) && p->options->source_prefix)
		facts_string(&packed->facts, "source_prefix", p->options->source_prefix);
	if (err) {
		discard_packed(NULL, packed);
		return fail_object(o, err, why);
	}
	*result = packed;
	return KPACK_SUCCESS;
}

/* --- in order ------------------------------------------------------------------------ */

/* The offload kind of the entry ID; without an entry ID, the kind of image. */
static struct kp_span kind_of(const struct kp_image *img, const char *type)
{
	struct kp_entry_id id;

	if (!img->kind[0])
		return kp_span_str(type);
	if (img->id && kp_entry_id_parse(kp_span_str(img->id), &id) &&
	    kp_span_starts(id.kind, img->kind, strlen(img->kind)))
		return id.kind; /* not cut */
	return kp_span_str(img->kind);
}

static kpack_error_t add_entries(struct packer *p, const struct plan_object *o,
				 const struct packed *packed, const char *suffix,
				 struct kp_span metadata, struct kpackx_error *why)
{
	const struct plan_container *c = &p->plan->containers[o->container];
	struct kp_writer_entry entry = {
		.type = kp_span_str(packed->type),
		.ordinal = packed->object.ordinal,
		.size = packed->object.content.size,
		.metadata = metadata,
	};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < c->n_indices && !err; i++) {
		char *key = xasprintf("%s%s#%u", o->input->key, suffix, c->indices[i]);

		err = archive_set_entry(p->set, &packed->object, packed->object.place,
					kp_span_str(key), &entry, why);
		free(key);
	}
	return err;
}

static kpack_error_t name_object(struct packer *p, const struct plan_object *o,
				 const struct packed *packed, struct kpackx_error *why)
{
	const struct kp_image *img = image_of(o);
	char suffix[KEY_SUFFIX_MAX];
	uint8_t *metadata;
	kpack_error_t err;
	size_t size;

	if (!key_suffix_choose(&p->names, img->arch, kind_of(img, packed->type),
			       packed->object.ordinal, suffix))
		return KPACK_SUCCESS;
	KP_TRY(entry_meta_image(o->input, o->image, &packed->object.content,
				&packed->facts, &metadata, &size, why));
	err = add_entries(p, o, packed, suffix, (struct kp_span){metadata, size}, why);
	free(metadata);
	return err;
}

static kpack_error_t add_key(struct packer *p, const struct plan_object *o,
			     const struct plan_key *key, const struct packed *packed,
			     struct kpackx_error *why)
{
	struct kp_writer_entry entry = {
		.type = kp_span_str(packed->type),
		.ordinal = packed->object.ordinal,
		.size = packed->object.content.size,
	};
	kpack_error_t err;
	uint8_t *metadata;
	size_t size;

	KP_TRY(entry_meta_file(&o->input->objects[o->image], &packed->object.content,
			       key->facts, &metadata, &size, why));
	entry.metadata = (struct kp_span){metadata, size};
	err = archive_set_entry(p->set, &packed->object, key->arch, kp_span_str(key->key),
				&entry, why);
	free(metadata);
	return err;
}

/* Add the keys of a database's object. */
static kpack_error_t add_keys(struct packer *p, const struct plan_object *o,
			      const struct packed *packed, struct kpackx_error *why)
{
	for (size_t i = o->first_key; i < o->first_key + o->n_keys; i++)
		KP_TRY(add_key(p, o, &p->plan->keys[i], packed, why));
	return KPACK_SUCCESS;
}

/* Count what was stored for O; FIRST: it is the first of its container. */
static void add_sizes(struct bundle_sizes *sizes, const struct plan_object *o,
		      const struct packed *packed, bool first)
{
	const struct kp_container *bundle = bundle_of(o);
	uint64_t stored = packed->object.stored.size;

	sizes->bundles += bundle && first ? bundle->size : 0;
	if (packed->object.shared)
		return;
	sizes->all += stored;
	sizes->objects += bundle ? stored : 0;
	sizes->measured += packed->measured ? stored : 0;
	sizes->debug += packed->debug;
	sizes->pressed_debug += packed->pressed_debug;
	sizes->pressed += packed->pressed;
}

static kpack_error_t commit_packed(void *arg, size_t job, void *result,
				   struct kpackx_error *why)
{
	struct packer *p = arg;
	const struct plan_object *o = &p->plan->objects[p->jobs[job]];
	struct packed *packed = result;
	bool first = job == 0 || o->container != p->container;
	kpack_error_t err;

	if (first)
		key_suffixes_fini(&p->names);
	p->container = o->container;
	err = archive_set_store(p->set, &packed->object, why);
	if (!err && p->options->sizes)
		add_sizes(p->options->sizes, o, packed, first);
	if (!err)
		err = of_database(o) ? add_keys(p, o, packed, why)
				     : name_object(p, o, packed, why);
	if (err)
		kp_fail_prefix(why, err, "%s", o->input->shown);
	progress_add(p->progress, image_of(o)->size);
	discard_packed(NULL, packed);
	return err;
}

/* --- levels -------------------------------------------------------------------------- */

/* The most objects that are looked at to choose levels for all. */
enum { SAMPLES = 256 };

static uint64_t size_of_all(const struct plan *plan)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < plan->n_objects; i++)
		sum += image_of(&plan->objects[i])->size;
	return sum;
}

static kpack_error_t measure_object(const struct plan_object *o, struct kp_encoder *e,
				    uint32_t *density, struct kpackx_error *why)
{
	static uint8_t buf[KP_DENSITY_SIZE];
	struct kp_source source = kp_source_memory(buf, 0);
	size_t size;
	kpack_error_t err = input_peek(o->input, o->image, buf, sizeof(buf), &size, why);

	source.size = size;
	if (!err)
		err = kp_density(e, &source, density, why);
	return err ? fail_object(o, err, why) : KPACK_SUCCESS;
}

/* Free what looking at O kept, except what looking at NEXT needs; NULL: none. */
static void end_peek(const struct plan_object *o, const struct plan_object *next)
{
	if (o)
		input_end_peek(o->input, o->image,
			       next && next->input == o->input ? next->image
							       : KP_NOWHERE);
}

/* Look at the objects in which each SHARE bytes of all begin. */
static kpack_error_t take_samples(const struct plan *plan, uint64_t share,
				  struct kp_encoder *e, struct kp_density_sample *out,
				  size_t *n, struct kpackx_error *why)
{
	const struct plan_object *last = NULL;
	uint64_t at = 0, due = 0;
	kpack_error_t err = KPACK_SUCCESS;

	*n = 0;
	for (size_t i = 0; i < plan->n_objects && !err; i++) {
		const struct plan_object *o = &plan->objects[i];
		uint64_t before = due;

		at += image_of(o)->size;
		if (at <= due)
			continue;
		due += ((at - 1 - due) / share + 1) * share;
		end_peek(last, o);
		last = o;
		err = measure_object(o, e, &out[*n].density, why);
		out[(*n)++].size = due - before;
	}
	end_peek(last, NULL);
	return err;
}

/* Choose the levels of all objects before any is read. */
static kpack_error_t choose_levels(struct packer *p, struct kpackx_error *why)
{
	uint64_t all = size_of_all(p->plan);
	struct kp_density_sample samples[SAMPLES];
	struct kp_encoder *e;
	kpack_error_t err;
	size_t n;

	KP_TRY(kp_encoder_new(KP_DENSITY_LEVEL, &e, why));
	err = take_samples(p->plan, all / SAMPLES + 1, e, samples, &n, why);
	kp_encoder_free(e);
	if (!err)
		p->effort = kp_effort_choose(false, all * p->options->effort, samples, n);
	return err;
}

kpack_error_t pack_run(const struct plan *plan, const struct pack_options *options,
		       struct archive_set *set, struct progress *progress,
		       struct kpackx_error *why)
{
	struct packer p = {.plan = plan,
			   .options = options,
			   .set = set,
			   .progress = progress,
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
