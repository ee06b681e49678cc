/* SPDX-License-Identifier: MIT */
/* Tensile's libraries: which files a GPU needs, and which solution a problem gets. */
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

/* The solutions, stored as an array or as single values in a blob. */
static inline struct value solutions_of(const struct value *library)
{
	const struct value *array = value_of(library, "solutions");
	const struct value *index = value_of(library, "solutions_index");
	const struct value *blob = value_of(library, "solutions_blob");
	struct value out = {.kind = ARRAY, .n = index ? index->n / 3 : 0};

	if (array || !index || !blob)
		return array ? *array : out;
	out.items = grow(NULL, out.n * sizeof(out));
	for (uint64_t i = 0; i < out.n; i++) {
		uint64_t at = index->items[3 * i + 1].n, size = index->items[3 * i + 2].n;
		struct unpacker u;

		if (at > blob->n || size > blob->n - at)
			die("solution %ju is not in the blob", (uintmax_t)i);
		u = (struct unpacker){.p = (const uint8_t *)blob->text + at};
		u.end = u.p + size;
		out.items[i] = unpack(&u);
	}
	return out;
}

static inline bool from_source(const struct value *solution)
{
	const struct value *v =
		value_of(value_of(solution, "sizeMapping"), "sourceKernel");

	return v && v->n;
}

static inline const struct value *find_matching(const struct value *v)
{
	uint64_t items = !v ? 0 : v->kind == MAP ? 2 * v->n : v->kind == ARRAY ? v->n : 0;

	if (value_is(value_of(v, "type"), "Matching"))
		return v;
	for (uint64_t i = 0; i < items; i++) {
		const struct value *found = find_matching(&v->items[i]);

		if (found)
			return found;
	}
	return NULL;
}

/* The solution number of the row whose key is nearest to PROBLEM. */
static inline uint64_t choose_solution(const struct value *library,
				       const double problem[4])
{
	const struct value *matching = find_matching(library);
	const struct value *table = value_of(matching, "table");
	uint64_t best = 0;
	double nearest = -1;

	for (uint64_t i = 0; table && i < table->n; i++) {
		const struct value *key = value_of(&table->items[i], "key");
		const struct value *index = value_of(&table->items[i], "index");
		double d = 0;

		for (uint64_t j = 0; key && j < key->n && j < 4; j++)
			d += (key->items[j].real - problem[j]) *
			     (key->items[j].real - problem[j]);
		if (index && (nearest < 0 || d < nearest)) {
			nearest = d;
			best = index->n;
		}
	}
	return best;
}

#endif
