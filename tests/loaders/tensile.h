/* SPDX-License-Identifier: MIT */
/* Tensile's libraries: which files a GPU needs. */
#ifndef TENSILE_H
#define TENSILE_H

#include "messagepack.h"

struct gpu {
	const char *processor;
	uint64_t cus; /* compute units */
	char xnack;   /* '+' or '-' */
};

static inline bool predicate_holds(const struct value *p, const struct gpu *gpu)
{
	const struct value *type = value_of(p, "type"), *value = value_of(p, "value");

	if (value_is(type, "TruePred"))
		return true;
	if (value_is(type, "AMDGPU"))
		return predicate_holds(value, gpu);
	if (value_is(type, "Processor"))
		return value_is(value, gpu->processor);
	if (value_is(type, "CUCount"))
		return value && value->n == gpu->cus;
	if (value_is(type, "And")) {
		for (uint64_t i = 0; value && i < value->n; i++)
			if (!predicate_holds(&value->items[i], gpu))
				return false;
		return true;
	}
	return false;
}

typedef void placeholder_found(void *arg, const char *stem);

/* Report every placeholder below V, in file order. */
static inline void each_placeholder(const struct value *v, placeholder_found *found,
				    void *arg)
{
	uint64_t items = !v ? 0 : v->kind == MAP ? 2 * v->n : v->kind == ARRAY ? v->n : 0;

	if (value_is(value_of(v, "type"), "Placeholder")) {
		char *stem = value_text(value_of(v, "value"));

		found(arg, stem);
		free(stem);
		return;
	}
	for (uint64_t i = 0; i < items; i++)
		each_placeholder(&v->items[i], found, arg);
}

/* Report the placeholders of the rows that match GPU. */
static inline void follow_parent(const struct value *parent, const struct gpu *gpu,
				 placeholder_found *found, void *arg)
{
	const struct value *rows = value_of(value_of(parent, "library"), "rows");

	for (uint64_t i = 0; rows && i < rows->n; i++) {
		bool ours = predicate_holds(value_of(&rows->items[i], "predicate"), gpu);

		printf("row %ju: %s\n", (uintmax_t)i, ours ? "ours" : "another GPU's");
		if (ours)
			each_placeholder(value_of(&rows->items[i], "library"), found,
					 arg);
	}
}

/* The first solution; they are an array, or single values in a blob. */
static inline struct value first_solution(const struct value *library)
{
	const struct value *array = value_of(library, "solutions");
	const struct value *index = value_of(library, "solutions_index");
	const struct value *blob = value_of(library, "solutions_blob");
	struct unpacker u;

	if (array && array->n)
		return array->items[0];
	if (!index || !index->n || !blob || index->items[1].n > blob->n)
		return (struct value){0};
	u.p = (const uint8_t *)blob->text + index->items[1].n;
	u.end = (const uint8_t *)blob->text + blob->n;
	u.depth = 0;
	return unpack(&u);
}

static inline bool from_source(const struct value *solution)
{
	const struct value *v =
		value_of(value_of(solution, "sizeMapping"), "sourceKernel");

	return v && v->n;
}

#endif
