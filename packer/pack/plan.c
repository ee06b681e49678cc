/* SPDX-License-Identifier: MIT */
#include "plan.h"
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/writer/encode.h"
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "core/target/target.h"

struct planner {
	struct plan *plan;
	struct arch_filter *filter;
	struct plan_chunks chunks;
	size_t objects_cap, containers_cap, keys_cap;
};

/* Whether objects for ARCH are to be stored. */
static bool is_wanted(struct planner *p, const char *arch)
{
	return arch_filter_match(p->filter, kp_span_str(arch));
}

/* --- one binary ---------------------------------------------------------------------- */

static void add_need(struct planner *p, const struct kp_image *img, uint64_t chunk)
{
	struct plan_binary *b = &p->plan->binaries[p->plan->n_binaries - 1];
	uint64_t bytes = 4 + kp_encode_bound((size_t)img->size, chunk);

	for (size_t i = 0; i < b->n_needs; i++) {
		if (strcmp(b->needs[i].place, img->arch) == 0) {
			b->needs[i].bytes += bytes;
			b->needs[i].frames++;
			return;
		}
	}
	b->needs = xrealloc(b->needs, (b->n_needs + 1) * sizeof(*b->needs));
	b->needs[b->n_needs++] = (struct archive_need){img->arch, bytes, 1};
}

/*
 * Larger files are stored in chunks, so that a mount need not hold them whole to show a
 * part.
 */
static const uint64_t WHOLE_MAX = 1 << 30;

/* Returns the chunk size of an object, or 0 if it is not larger than a chunk. */
static uint64_t chunk_of(const struct planner *p, const struct input *in, size_t image)
{
	uint64_t chunk = p->chunks.all, size = in->images[image].size;

	if (!chunk && in->kind == INPUT_DATABASE &&
	    (in->objects[image].at_random || size > WHOLE_MAX))
		chunk = p->chunks.at_random;
	return size > chunk ? chunk : 0;
}

/* Check the sizes: larger objects could not be read from an archive. */
static kpack_error_t check_sizes(const struct planner *p, const struct input *in,
				 struct kpackx_error *why)
{
	for (size_t i = 0; i < in->n_images; i++) {
		bool cut = chunk_of(p, in, i);
		uint64_t limit = cut ? KP_CHUNKED_MAX : KP_OBJECT_MAX;

		if (in->packed[i] && in->images[i].size > limit)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%llu bytes, limit %llu%s",
				       (unsigned long long)in->images[i].size,
				       (unsigned long long)limit,
				       cut ? "" : " of what is not stored in chunks");
	}
	return KPACK_SUCCESS;
}

static void add_object(struct planner *p, struct input *in, size_t image)
{
	uint64_t chunk = chunk_of(p, in, image);
	struct plan *plan = p->plan;

	xgrow(&plan->objects, plan->n_objects, &p->objects_cap, sizeof(*plan->objects));
	plan->objects[plan->n_objects++] = (struct plan_object){
		.input = in,
		.image = (uint32_t)image,
		.container = (uint32_t)plan->n_containers - 1,
		.binary = (uint32_t)plan->n_binaries - 1,
		.chunk = chunk,
		.first_key = (uint32_t)plan->n_keys,
	};
	plan->bytes += in->images[image].size;
	add_need(p, &in->images[image], chunk);
}

static int by_arch(const void *a, const void *b, void *arg)
{
	const struct kp_image *images = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int c = strcmp(images[x].arch, images[y].arch);

	return c ? c : KP_ORDER(x, y);
}

/* Add the selected device images of a container, by architecture, then as stored. */
static void add_images(struct planner *p, struct input *in, size_t container)
{
	const struct kp_container *c = &in->fat.containers.items[container];
	const struct kp_image *images = in->images;
	size_t *order = xmalloc(c->n_images * sizeof(*order)), n = 0;

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
		if (in->packed[i] && is_wanted(p, images[i].arch))
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), by_arch, (void *)images);
	for (size_t i = 0; i < n; i++)
		add_object(p, in, order[i]);
	input_expect(in, container, (unsigned)n);
	free(order);
}

/*
 * The indices of an input, ascending, and the container of each.  The indices of a
 * container are chained, so that they are found without looking at others.
 */
struct places {
	uint32_t n;
	uint32_t *index, *container; /* per place */
	uint32_t *next;              /* next place of the same container + 1; 0: none */
	uint32_t *first, *last;      /* per container: place + 1; 0: none */
};

static void places_fini(struct places *list)
{
	free(list->index);
	free(list->container);
	free(list->next);
	free(list->first);
	free(list->last);
}

static void add_place(uint32_t index, size_t container, void *arg)
{
	struct places *list = arg;
	uint32_t place = list->n++;

	list->index[place] = index;
	list->container[place] = (uint32_t)container;
	list->next[place] = 0;
	if (list->first[container])
		list->next[list->last[container] - 1] = place + 1;
	else
		list->first[container] = place + 1;
	list->last[container] = place + 1;
}

static void find_places(const struct input *in, struct places *list)
{
	size_t wrappers = in->fat.elf.n_wrappers, containers = in->fat.containers.count;
	size_t n = wrappers + containers + 1;

	list->index = xmalloc(n * sizeof(uint32_t));
	list->container = xmalloc(n * sizeof(uint32_t));
	list->next = xmalloc(n * sizeof(uint32_t));
	list->first = xcalloc(containers + 1, sizeof(uint32_t));
	list->last = xcalloc(containers + 1, sizeof(uint32_t));
	kp_fatbin_places(&in->fat, add_place, list);
}

static void take_indices(const struct places *list, uint32_t container,
			 struct plan_container *c)
{
	size_t n = 0;

	for (uint32_t p = list->first[container]; p; p = list->next[p - 1])
		n++;
	c->indices = xmalloc(n * sizeof(*c->indices));
	for (uint32_t p = list->first[container]; p; p = list->next[p - 1])
		c->indices[c->n_indices++] = list->index[p - 1];
}

static struct plan_container *new_container(struct planner *p)
{
	struct plan *plan = p->plan;
	struct plan_container *c;

	xgrow(&plan->containers, plan->n_containers, &p->containers_cap, sizeof(*c));
	c = &plan->containers[plan->n_containers++];
	*c = (struct plan_container){0};
	return c;
}

/* Add the containers, with all their indices, in order of frames: each at its first. */
static void add_containers(struct planner *p, struct input *in)
{
	struct places list = {0};

	find_places(in, &list);
	for (uint32_t i = 0; i < list.n; i++) {
		uint32_t container = list.container[i];

		if (list.first[container] != i + 1)
			continue;
		take_indices(&list, container, new_container(p));
		add_images(p, in, container);
	}
	places_fini(&list);
}

/* --- one file of a database ---------------------------------------------------------- */

static void add_key(struct planner *p, const char *key, const char *arch,
		    const struct facts *facts)
{
	struct plan *plan = p->plan;

	xgrow(&plan->keys, plan->n_keys, &p->keys_cap, sizeof(*plan->keys));
	plan->keys[plan->n_keys++] =
		(struct plan_key){key, arch, facts, (uint32_t)plan->n_objects - 1};
	plan->objects[plan->n_objects - 1].n_keys++;
}

static void add_keys(struct planner *p, const struct library_object *o, const char *arch)
{
	if (o->path)
		add_key(p, o->path, arch, &o->facts);
	for (size_t i = 0; i < o->n_keys; i++)
		add_key(p, o->keys[i], arch,
			o->key_facts[i].count ? &o->key_facts[i] : &o->facts);
}

static void add_stored(struct planner *p, struct input *in, size_t image,
		       unsigned *stored)
{
	const struct library_object *o = &in->objects[image];
	bool added = false;

	for (size_t i = 0; i < o->n_arches; i++) {
		if (!is_wanted(p, o->arches[i]))
			continue;
		if (!added)
			add_object(p, in, image);
		*stored += !added;
		added = true;
		add_keys(p, o, o->arches[i]);
	}
}

static void add_database(struct planner *p, struct input *in)
{
	unsigned stored = 0;

	new_container(p);
	for (size_t i = 0; i < in->n_images; i++)
		add_stored(p, in, i, &stored);
	input_expect(in, KP_NOWHERE, stored);
}

static void add_binary(struct planner *p, struct input *in)
{
	struct kpackx_error fault = {0};

	if (check_sizes(p, in, &fault)) {
		report_why(in->path, &fault);
		p->plan->n_faults++;
		return;
	}
	p->plan->binaries[p->plan->n_binaries++] =
		(struct plan_binary){.input = in, .volume = 1};
	if (in->kind == INPUT_DATABASE)
		add_database(p, in);
	else
		add_containers(p, in);
}

/* --- names --------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct plan_name *x = a, *y = b;

	if (x->binary != y->binary)
		return KP_ORDER(x->binary, y->binary);
	if (x->index != y->index)
		return KP_ORDER(x->index, y->index);
	return strcmp(x->arch, y->arch);
}

static void list_names(struct plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_objects; i++)
		n += plan->containers[plan->objects[i].container].n_indices;
	plan->names = xcalloc(n, sizeof(*plan->names));
	for (size_t i = 0; i < plan->n_objects; i++) {
		const struct plan_object *o = &plan->objects[i];
		const struct plan_container *c = &plan->containers[o->container];

		for (size_t k = 0; k < c->n_indices; k++)
			plan->names[plan->n_names++] =
				(struct plan_name){o->binary, c->indices[k],
						   o->input->images[o->image].arch};
	}
	qsort(plan->names, n, sizeof(*plan->names), by_name);
}

static int by_key(const void *a, const void *b, void *arg)
{
	const struct plan_key *keys = arg, *x = &keys[*(const uint32_t *)a],
			      *y = &keys[*(const uint32_t *)b];
	int c = strcmp(x->key, y->key);

	return c ? c : strcmp(x->arch, y->arch);
}

/* Check that no two files give the same entry. */
static kpack_error_t check_keys(const struct plan *plan, struct kpackx_error *why)
{
	for (size_t i = 1; i < plan->n_keys; i++) {
		const struct plan_key *a = &plan->keys[plan->by_key[i - 1]],
				      *b = &plan->keys[plan->by_key[i]];

		if (strcmp(a->key, b->key) == 0 && strcmp(a->arch, b->arch) == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s and %s both give the key %s for %s",
				       plan->objects[a->object].input->shown,
				       plan->objects[b->object].input->shown, a->key,
				       a->arch);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t sort_keys(struct plan *plan, struct kpackx_error *why)
{
	plan->by_key = xmalloc(plan->n_keys * sizeof(*plan->by_key));
	for (size_t i = 0; i < plan->n_keys; i++)
		plan->by_key[i] = (uint32_t)i;
	if (plan->n_keys)
		qsort_r(plan->by_key, plan->n_keys, sizeof(*plan->by_key), by_key,
			plan->keys);
	return check_keys(plan, why);
}

static int cmp_key(struct kp_span key, struct kp_span arch, const struct plan_key *k)
{
	int c = kp_span_cmp(key, kp_span_str(k->key));

	return c ? c : kp_span_cmp(arch, kp_span_str(k->arch));
}

/* Returns the database's object that has KEY for ARCH, or NULL. */
static const struct plan_object *find_key(const struct plan *plan, struct kp_span key,
					  struct kp_span arch)
{
	size_t low = 0, high = plan->n_keys;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct plan_key *k = &plan->keys[plan->by_key[mid]];
		int c = cmp_key(key, arch, k);

		if (c == 0)
			return &plan->objects[k->object];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* Binaries are sorted by key, like the inputs of the scan. */
bool plan_find(const struct plan *plan, struct kp_span key, uint32_t *binary)
{
	size_t low = 0, high = plan->n_binaries;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = kp_span_cmp(key, kp_span_str(plan->binaries[mid].input->key));

		*binary = (uint32_t)mid;
		if (c == 0)
			return true;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

/* Find the binary and index of a key with an index, before which may be a "@kind". */
static bool find_binary(const struct plan *plan, struct kp_span key, uint32_t *binary,
			uint32_t *index)
{
	struct kp_key split = kp_key_split(key);
	struct kp_span path = split.binary;
	const uint8_t *at;

	if (path.size == key.size)
		return false;
	*index = split.index;
	at = memrchr(path.data, '@', path.size);
	return plan_find(plan, path, binary) ||
	       (at &&
		plan_find(plan, (struct kp_span){path.data, (size_t)(at - path.data)},
			  binary));
}

bool plan_find_owner(const struct plan *plan, struct kp_span key, size_t *entry)
{
	uint32_t index, binary;

	if (!find_binary(plan, key, &binary, &index))
		return false;
	*entry = plan->binaries[binary].input->entry;
	return true;
}

static bool stores_image(const struct plan *plan, struct kp_span key, struct kp_span arch,
			 uint32_t *binary, const char **place)
{
	const struct plan_name *found;
	struct plan_name name = {0};
	char text[KP_TARGET_TEXT_MAX];

	if (arch.size >= sizeof(text) ||
	    !find_binary(plan, key, &name.binary, &name.index))
		return false;
	memcpy(text, arch.data, arch.size);
	text[arch.size] = 0;
	name.arch = text;
	*binary = name.binary;
	found = bsearch(&name, plan->names, plan->n_names, sizeof(name), by_name);
	if (found)
		*place = found->arch;
	return found;
}

bool plan_stores(const struct plan *plan, struct kp_span key, struct kp_span arch,
		 uint32_t *binary, const char **place)
{
	const struct plan_object *o = find_key(plan, key, arch);

	if (!o)
		return stores_image(plan, key, arch, binary, place);
	*binary = o->binary;
	*place = o->input->images[o->image].arch;
	return true;
}

/* --- opening and closing ------------------------------------------------------------- */

kpack_error_t plan_open(const struct scan *scan, struct arch_filter *filter,
			const struct plan_chunks *chunks, struct plan *out,
			struct kpackx_error *why)
{
	struct planner p = {.plan = out, .filter = filter, .chunks = *chunks};
	kpack_error_t err;

	*out = (struct plan){0};
	out->binaries = xcalloc(scan->n_inputs, sizeof(*out->binaries));
	for (size_t i = 0; i < scan->n_inputs; i++)
		add_binary(&p, scan->inputs[i]);
	list_names(out);
	err = sort_keys(out, why);
	if (err)
		plan_close(out);
	return err;
}

void plan_close(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_binaries; i++)
		free(plan->binaries[i].needs);
	for (size_t i = 0; i < plan->n_containers; i++)
		free(plan->containers[i].indices);
	free(plan->by_key);
	free(plan->keys);
	free(plan->names);
	free(plan->objects);
	free(plan->containers);
	free(plan->binaries);
	*plan = (struct plan){0};
}
