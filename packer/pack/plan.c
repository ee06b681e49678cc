/* SPDX-License-Identifier: MIT */
/*
 * Making the plan.
 *
 * Inputs come in the order of their keys.  Of a binary or bare container the plan has its
 * containers, by their first index, and of each its selected images, by architecture; of a file of
 * a database the library's objects.  That is the order of frames, so that an archive depends on
 * what is in the tree, and not on where its files lie.
 *
 *	binary -> containers -> objects		what is stored, each object once
 *	container -> indices			an object has an entry for each, KEY#INDEX
 *	object -> keys				in place of these: of a database's object
 *
 * From names and sorted_keys follows whether an entry that an archive has already is one of those
 * that will be stored: the archives of earlier runs are weighed by that (archive_set.c).
 */
#include "plan.h"
#include <stdlib.h>
#include "core/writer/encode.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

struct planner {
	struct plan *plan;
	struct arch_filter *filter;
	struct plan_chunks chunks;
	size_t objects_cap, containers_cap, keys_cap;
};

/*
 * Larger files are stored in chunks, so that a mount need not hold them whole to show a
 * part.
 */
static const uint64_t WHOLE_MAX = 1 << 30;

/* The chunk size of an object, or 0 if it is not larger than a chunk. */
static uint64_t chunk_of(const struct planner *p, const struct input *in, size_t image)
{
	uint64_t chunk = p->chunks.all, size = in->images[image].size;

	if (!chunk && in->kind == INPUT_DATABASE &&
	    (in->objects[image].at_random || size > WHOLE_MAX))
		chunk = p->chunks.at_random;
	return size > chunk ? chunk : 0;
}

static void add_object(struct planner *p, struct input *in, size_t image)
{
	struct plan *plan = p->plan;
	struct plan_binary *b = &plan->binaries[plan->n_binaries - 1];
	const struct kp_image *img = &in->images[image];
	uint64_t chunk = chunk_of(p, in, image);
	size_t i = 0;

	xgrow(&plan->objects, plan->n_objects, &p->objects_cap, sizeof(*plan->objects));
	plan->objects[plan->n_objects++] = (struct plan_object){
		.input = in,
		.image = (uint32_t)image,
		.container = (uint32_t)plan->n_containers - 1,
		.binary = (uint32_t)plan->n_binaries - 1,
		.chunk = chunk,
		.first_key = (uint32_t)plan->n_keys,
	};
	plan->bytes += img->size;
	while (i < b->n_needs && strcmp(b->needs[i].place, img->arch) != 0)
		i++;
	if (i == b->n_needs) {
		b->needs = xrealloc(b->needs, (i + 1) * sizeof(*b->needs));
		b->needs[b->n_needs++] = (struct archive_need){.place = img->arch};
	}
	/* with the frame's length word; what it takes compressed is not known before it is stored */
	b->needs[i].bytes += 4 + kp_encode_bound((size_t)img->size, chunk);
	b->needs[i].frames++;
}

static struct plan_container *add_container(struct planner *p)
{
	struct plan *plan = p->plan;

	xgrow(&plan->containers, plan->n_containers, &p->containers_cap,
	      sizeof(*plan->containers));
	plan->containers[plan->n_containers] = (struct plan_container){0};
	return &plan->containers[plan->n_containers++];
}

/* --- one file ------------------------------------------------------------------------ */

/* The indices of an input's containers, as they are found in ascending order. */
struct places {
	struct plan_container *containers; /* per container */
	size_t *order;                     /* containers by their first index */
	size_t n;
};

static void add_place(uint32_t index, size_t container, void *arg)
{
	struct places *places = arg;
	struct plan_container *c = &places->containers[container];

	if (c->n_indices == 0)
		places->order[places->n++] = container;
	xgrow(&c->indices, c->n_indices, &c->cap, sizeof(*c->indices));
	c->indices[c->n_indices++] = index;
}

static void add_key(struct planner *p, const char *key, const char *arch,
		    const struct facts *facts)
{
	struct plan *plan = p->plan;

	xgrow(&plan->keys, plan->n_keys, &p->keys_cap, sizeof(*plan->keys));
	plan->keys[plan->n_keys++] =
		(struct plan_key){key, arch, facts, (uint32_t)plan->n_objects - 1};
	plan->objects[plan->n_objects - 1].n_keys++;
}

static void add_binary(struct planner *p, struct input *in)
{
	const struct kp_containers *list = &in->fat.containers;
	KP_AUTO_FREE struct wanted {
		const char *arch;
		size_t image;
	} *wanted = xmalloc(in->n_images * sizeof(*wanted));
	KP_AUTO_FREE struct plan_container *containers =
		xcalloc(list->count, sizeof(*containers));
	KP_AUTO_FREE size_t *order = xcalloc(list->count, sizeof(*order));
	struct places places = {.containers = containers, .order = order};
	unsigned stored = 0;

	for (size_t i = 0; i < in->n_images; i++) {
		bool cut = chunk_of(p, in, i);
		uint64_t limit = cut ? KP_CHUNKED_MAX : KP_OBJECT_MAX;

		if (!in->packed[i] || in->images[i].size <= limit)
			continue;
		/* it could not be read from an archive */
		report_error(in->path, "%llu bytes, limit %llu%s",
			     (unsigned long long)in->images[i].size,
			     (unsigned long long)limit,
			     cut ? "" : " of what is not stored in chunks");
		p->plan->n_faults++;
		return;
	}
	p->plan->binaries[p->plan->n_binaries++] =
		(struct plan_binary){.input = in, .key = in->key, .volume = 1};
	/*
	 * The containers that are stored, by their first index.  One that several wrappers lead to is
	 * stored once and has the index of each.
	 */
	if (in->kind != INPUT_DATABASE)
		kp_fatbin_places(&in->fat, add_place, &places);
	for (size_t i = 0; i < places.n; i++) {
		const struct kp_container *c = &list->items[places.order[i]];
		size_t n = 0;

		*add_container(p) = places.containers[places.order[i]];
		for (size_t k = c->first_image; k < c->first_image + c->n_images; k++)
			if (in->packed[k] &&
			    arch_filter_match(p->filter, kp_span_str(in->images[k].arch)))
				wanted[n++] = (struct wanted){in->images[k].arch, k};
		kp_sort(wanted, n, KP_BY_TEXT(struct wanted, arch),
			KP_BY_NUMBER(struct wanted, image));
		for (size_t k = 0; k < n; k++)
			add_object(p, in, wanted[k].image);
		input_expect(in, places.order[i], (unsigned)n);
	}
	if (in->kind != INPUT_DATABASE)
		return;
	/* each object once, with a key for each of its architectures that is selected */
	add_container(p);
	for (size_t i = 0; i < in->n_images; i++) {
		const struct library_object *o = &in->objects[i];
		bool added = false;

		for (size_t a = 0; a < o->n_arches; a++) {
			if (!arch_filter_match(p->filter, kp_span_str(o->arches[a])))
				continue;
			if (!added)
				add_object(p, in, i);
			stored += !added;
			added = true;
			if (o->path)
				add_key(p, o->path, o->arches[a], &o->facts);
			for (size_t k = 0; k < o->n_keys; k++)
				add_key(p, o->keys[k], o->arches[a],
					o->key_facts[k].count ? &o->key_facts[k]
							      : &o->facts);
		}
	}
	input_expect(in, KP_NOWHERE, stored);
}

/* --- the whole ----------------------------------------------------------------------- */

static void sort_keys(struct plan *plan)
{
	free(plan->sorted_keys);
	plan->sorted_keys = xmalloc(plan->n_keys * sizeof(*plan->keys));
	if (plan->n_keys)
		memcpy(plan->sorted_keys, plan->keys, plan->n_keys * sizeof(*plan->keys));
	kp_sort(plan->sorted_keys, plan->n_keys, KP_BY_TEXT(struct plan_key, key),
		KP_BY_TEXT(struct plan_key, arch), KP_BY_NUMBER(struct plan_key, object));
}

kpack_error_t plan_open(const struct scan *scan, struct arch_filter *filter,
			const struct plan_chunks *chunks, struct plan *out,
			struct kpackx_error *why)
{
	struct planner p = {.plan = out, .filter = filter, .chunks = *chunks};
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct plan){0};
	out->binaries = xcalloc(scan->n_inputs, sizeof(*out->binaries));
	for (size_t i = 0; i < scan->n_inputs; i++)
		add_binary(&p, scan->inputs[i]);
	for (size_t i = 0; i < out->n_objects; i++)
		out->n_names += out->containers[out->objects[i].container].n_indices;
	out->names = xcalloc(out->n_names, sizeof(*out->names));
	for (size_t i = 0, n = 0; i < out->n_objects; i++) {
		const struct plan_object *o = &out->objects[i];
		const struct plan_container *c = &out->containers[o->container];

		for (size_t k = 0; k < c->n_indices; k++)
			out->names[n++] =
				(struct plan_name){o->binary, c->indices[k],
						   o->input->images[o->image].arch};
	}
	kp_sort(out->names, out->n_names, KP_BY_NUMBER(struct plan_name, binary),
		KP_BY_NUMBER(struct plan_name, index),
		KP_BY_TEXT(struct plan_name, arch));
	sort_keys(out);
	for (size_t i = 1; i < out->n_keys && !err; i++) {
		const struct plan_key *a = &out->sorted_keys[i - 1],
				      *b = &out->sorted_keys[i];

		if (strcmp(a->key, b->key) == 0 && strcmp(a->arch, b->arch) == 0)
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s and %s both give the key %s for %s",
				      out->objects[a->object].input->shown,
				      out->objects[b->object].input->shown, a->key,
				      a->arch);
	}
	if (err)
		plan_close(out);
	return err;
}

void plan_drop(struct plan *plan, const bool *drop)
{
	size_t objects = 0, keys = 0;

	for (size_t i = 0; i < plan->n_objects; i++) {
		struct plan_object o = plan->objects[i];
		uint32_t first = o.first_key;

		if (drop[i]) {
			plan->bytes -= o.input->images[o.image].size;
			continue;
		}
		o.first_key = (uint32_t)keys;
		for (uint32_t k = first; k < first + o.n_keys; k++) {
			plan->keys[keys] = plan->keys[k];
			plan->keys[keys++].object = (uint32_t)objects;
		}
		plan->objects[objects++] = o;
	}
	if (objects == plan->n_objects)
		return;
	plan->n_objects = objects;
	plan->n_keys = keys;
	sort_keys(plan);
}

struct plan_binary *plan_find(const struct plan *plan, const char *key)
{
	const struct plan_binary probe = {.key = key};

	return kp_find(plan->binaries, plan->n_binaries, &probe,
		       KP_BY_TEXT(struct plan_binary, key));
}

/* Find the binary and index of KEY, before whose index may be a "@kind"; NULL: none. */
static struct plan_binary *find_indexed(const struct plan *plan, struct kp_span key,
					uint32_t *index)
{
	struct kp_key split = kp_key_split(key);
	KP_AUTO_FREE char *path =
		xstrndup((const char *)split.binary.data, split.binary.size);
	struct plan_binary *b;
	char *at;

	*index = split.index;
	if (split.binary.size == key.size)
		return NULL;
	b = plan_find(plan, path);
	at = strrchr(path, '@');
	if (b || !at)
		return b;
	*at = 0;
	return plan_find(plan, path);
}

bool plan_find_owner(const struct plan *plan, struct kp_span key, size_t *entry)
{
	uint32_t index;
	const struct plan_binary *b = find_indexed(plan, key, &index);

	if (b)
		*entry = b->input->entry;
	return b;
}

struct plan_binary *plan_stores(const struct plan *plan, struct kp_span key,
				struct kp_span arch, const char **place)
{
	KP_AUTO_FREE char *text = xstrndup((const char *)key.data, key.size);
	KP_AUTO_FREE char *arch_text = xstrndup((const char *)arch.data, arch.size);
	const struct plan_key probe = {.key = text, .arch = arch_text};
	const struct plan_key *found = kp_find(plan->sorted_keys, plan->n_keys, &probe,
					       KP_BY_TEXT(struct plan_key, key),
					       KP_BY_TEXT(struct plan_key, arch));
	struct plan_name name = {.arch = arch_text};
	const struct plan_name *image;
	struct plan_binary *b;

	if (found) {
		const struct plan_object *o = &plan->objects[found->object];

		*place = o->input->images[o->image].arch;
		return &plan->binaries[o->binary];
	}
	b = find_indexed(plan, key, &name.index);
	if (!b)
		return NULL;
	name.binary = (uint32_t)(b - plan->binaries);
	image = kp_find(plan->names, plan->n_names, &name,
			KP_BY_NUMBER(struct plan_name, binary),
			KP_BY_NUMBER(struct plan_name, index),
			KP_BY_TEXT(struct plan_name, arch));
	if (image)
		*place = image->arch;
	return image ? b : NULL;
}

void plan_close(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_binaries; i++)
		free(plan->binaries[i].needs);
	for (size_t i = 0; i < plan->n_containers; i++)
		free(plan->containers[i].indices);
	free(plan->sorted_keys);
	free(plan->keys);
	free(plan->names);
	free(plan->objects);
	free(plan->containers);
	free(plan->binaries);
	*plan = (struct plan){0};
}
