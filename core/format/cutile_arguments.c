/* SPDX-License-Identifier: MIT */
/* The C arguments that a launch of a cuTile kernel takes. */
#include "cutile.h"

struct filler {
	struct kpackx_argument *items;
	size_t count;
	uint32_t parameter;
	struct kp_compose path; /* of the current constraint: "p2[0]" */
	struct kp_arena *arena;
};

size_t kp_cutile_argument_count(const struct kpackx_constraint *c)
{
	switch (c->kind) {
	case KPACKX_SCALAR:
		return 1;
	case KPACKX_ARRAY:
		return 1 + 2 * (size_t)c->ndim;
	case KPACKX_LIST:
		return 2;
	default:
		return 0; /* constants; tuples and dataclasses have only their items' */
	}
}

/* Append an argument; the current path is its name. */
static struct kpackx_argument *add_argument(struct filler *f, const char *type,
					    uint32_t size, const char *meaning)
{
	struct kpackx_argument *a = &f->items[f->count++];
	struct kp_span name = {(const uint8_t *)f->path.text, f->path.size};

	*a = (struct kpackx_argument){.type = type,
				      .meaning = meaning,
				      .size = size,
				      .parameter = f->parameter};
	a->name = f->path.no_memory ? NULL : kp_arena_copy(f->arena, name);
	f->path.no_memory |= !a->name;
	return a;
}

/* Append one argument for each dimension. */
static void add_extents(struct filler *f, const struct kpackx_constraint *c,
			const char *what, const char *meaning)
{
	const struct kp_cutile_dtype *index = kp_cutile_dtype(c->index_dtype);
	size_t end = f->path.size;

	for (uint32_t i = 0; i < c->ndim; i++) {
		kp_compose_print(&f->path, ".%s[%u]", what, i);
		add_argument(f, index->c, index->size, meaning);
		kp_compose_cut(&f->path, end);
	}
}

static void add_array(struct filler *f, const struct kpackx_constraint *c)
{
	add_argument(f, kp_cutile_dtype(c->dtype)->c_pointer, 8,
		     "device pointer to the array's data");
	add_extents(f, c, "shape", "elements in this dimension");
	add_extents(f, c, "stride",
		    "elements from one index of this dimension to the next");
}

static void add_list(struct filler *f, const struct kpackx_constraint *c)
{
	size_t end = f->path.size;

	add_argument(
		f, "int64_t *", 8,
		"device pointer to the list: for each array 64-bit words with a device "
		"pointer, "
		"the shape and the strides")
		->words = 1 + 2 * c->items->ndim;
	kp_compose_str(&f->path, ".length");
	add_argument(f, "int32_t", 4, "arrays in the list");
	kp_compose_cut(&f->path, end);
}

static void add_constraint(struct filler *f, const struct kpackx_constraint *c)
{
	size_t end = f->path.size;

	if (c->kind == KPACKX_SCALAR)
		add_argument(f, kp_cutile_dtype(c->dtype)->c,
			     kp_cutile_dtype(c->dtype)->size, "value");
	else if (c->kind == KPACKX_ARRAY)
		add_array(f, c);
	else if (c->kind == KPACKX_LIST)
		add_list(f, c);
	else
		for (size_t i = 0; i < c->n_items; i++) {
			kp_compose_print(&f->path, "[%zu]", i);
			add_constraint(f, &c->items[i]);
			kp_compose_cut(&f->path, end);
		}
}

static size_t count_all(const struct kpackx_constraint *items, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		count += kp_cutile_argument_count(&items[i]);
		if (items[i].kind != KPACKX_LIST)
			count += count_all(items[i].items, items[i].n_items);
	}
	return count;
}

kpack_error_t kp_cutile_arguments(struct kpackx_signature *s, struct kp_arena *arena,
				  struct kpackx_error *why)
{
	struct filler f = {.arena = arena};
	size_t count = count_all(s->parameters, s->n_parameters);

	f.items = kp_arena_alloc(arena, count * sizeof(*f.items));
	if (!f.items)
		return kp_fail_memory(why, count * sizeof(*f.items), "launch arguments");
	for (size_t i = 0; i < s->n_parameters; i++) {
		f.parameter = (uint32_t)i;
		kp_compose_cut(&f.path, 0);
		kp_compose_print(&f.path, "p%zu", i);
		add_constraint(&f, &s->parameters[i]);
	}
	s->arguments = f.items;
	s->n_arguments = count;
	count = f.path.no_memory;
	kp_compose_fini(&f.path);
	return count ? kp_fail_memory(why, 0, "launch arguments") : KPACK_SUCCESS;
}
