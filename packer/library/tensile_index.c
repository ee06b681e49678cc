/* SPDX-License-Identifier: MIT */
#include "tensile_index.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "core/base/msgpack_read.h"

/* Limit of nesting of library nodes and predicates: real trees have about 20 levels. */
#define DEPTH_MAX 64

/* Limit of processors with solutions in one file: AMD has made some 60. */
#define GPUS_MAX 256

struct reader {
	struct kp_mp m;
	struct tensile_index *out;
	const char *field; /* for messages */
};

/* --- the tree of libraries ----------------------------------------------------------- */

/* A map of the tree, as far as it was read. */
struct node {
	struct kp_span type, value;
	size_t placeholders; /* number of placeholders before it */
	size_t gpu, n_gpus;  /* of its predicate */
};

static bool walk_node(struct reader *r, unsigned depth);

static void add_gpu(struct tensile_index *x, struct kp_span name)
{
	xgrow(&x->gpus, x->n_gpus, &x->gpus_cap, sizeof(*x->gpus));
	x->gpus[x->n_gpus++] = name;
}

static bool add_placeholder(struct reader *r, struct kp_span value)
{
	struct tensile_index *x = r->out;

	if (value.size == 0 || value.size > KP_NAME_MAX)
		return kp_mp_fault(&r->m, "a placeholder's value is no file name");
	xgrow(&x->placeholders, x->n_placeholders, &x->placeholders_cap,
	      sizeof(*x->placeholders));
	x->placeholders[x->n_placeholders++] = (struct tensile_placeholder){value, 0, 0};
	return true;
}

/* Assign the node's GPUs to its placeholders when the node ends: a row's predicate may
 * follow its library. */
static void give_gpus(struct tensile_index *x, const struct node *n)
{
	for (size_t i = n->placeholders; n->n_gpus && i < x->n_placeholders; i++) {
		if (x->placeholders[i].n_gpus)
			continue;
		x->placeholders[i].gpu = n->gpu;
		x->placeholders[i].n_gpus = n->n_gpus;
	}
}

static bool end_node(struct reader *r, const struct node *n)
{
	if (kp_span_is(n->type, "Placeholder") && !n->value.data)
		return kp_mp_fault(&r->m, "a placeholder without a value");
	if (kp_span_is(n->type, "Placeholder"))
		return add_placeholder(r, n->value);
	if (kp_span_is(n->type, "Processor") && n->value.data)
		add_gpu(r->out, n->value);
	else
		give_gpus(r->out, n);
	return true;
}

static bool walk_pair(struct reader *r, struct node *n, unsigned depth)
{
	struct kp_span key;
	bool text;

	/* keys of a ProblemMap may be numbers */
	if (kp_mp_peek(&r->m) != KP_MP_STR)
		return kp_mp_skip(&r->m) && walk_node(r, depth + 1);
	if (!kp_mp_str(&r->m, &key))
		return false;
	text = kp_mp_peek(&r->m) == KP_MP_STR;
	if (text && kp_span_is(key, "type"))
		return kp_mp_str(&r->m, &n->type);
	if (text && kp_span_is(key, "value"))
		return kp_mp_str(&r->m, &n->value);
	if (!kp_span_is(key, "predicate"))
		return walk_node(r, depth + 1);
	n->gpu = r->out->n_gpus;
	if (!walk_node(r, depth + 1))
		return false;
	n->n_gpus = r->out->n_gpus - n->gpu;
	return true;
}

static bool walk_map(struct reader *r, unsigned depth)
{
	struct node n = {.placeholders = r->out->n_placeholders};
	uint32_t pairs = 0;

	kp_mp_map(&r->m, &pairs);
	for (; pairs && !r->m.fault; pairs--)
		walk_pair(r, &n, depth);
	return !r->m.fault && end_node(r, &n);
}

static bool walk_node(struct reader *r, unsigned depth)
{
	enum kp_mp_type type = kp_mp_peek(&r->m);
	uint32_t n = 0;

	if (type != KP_MP_MAP && type != KP_MP_ARRAY)
		return kp_mp_skip(&r->m);
	if (depth > DEPTH_MAX)
		return kp_mp_fault(&r->m, "nested too deeply");
	if (type == KP_MP_MAP)
		return walk_map(r, depth);
	kp_mp_array(&r->m, &n);
	for (; n && !r->m.fault; n--)
		walk_node(r, depth + 1);
	return !r->m.fault;
}

/* --- solutions ----------------------------------------------------------------------- */

static bool read_number(struct reader *r, uint64_t *number)
{
	struct kp_mp_value v;

	if (kp_mp_peek(&r->m) == KP_MP_MAP || kp_mp_peek(&r->m) == KP_MP_ARRAY)
		return kp_mp_skip(&r->m);
	*number = kp_mp_next(&r->m, &v) && (v.type == KP_MP_UINT || v.type == KP_MP_BOOL)
			  ? v.num
			  : 0;
	return !r->m.fault;
}

static bool read_mapping(struct reader *r, bool *assembly)
{
	uint32_t pairs = 0;

	for (kp_mp_map(&r->m, &pairs); pairs && !r->m.fault; pairs--) {
		struct kp_span key = {0};
		uint64_t n = 0;

		if (kp_mp_peek(&r->m) != KP_MP_STR)
			kp_mp_skip(&r->m);
		else
			kp_mp_str(&r->m, &key);
		if (!read_number(r, &n))
			return false;
		if (kp_span_is(key, "sourceKernel"))
			*assembly |= n == 0;
	}
	return !r->m.fault;
}

static bool read_solution_pair(struct reader *r, bool *assembly)
{
	struct kp_span key;

	if (kp_mp_peek(&r->m) != KP_MP_STR)
		return kp_mp_skip(&r->m) && kp_mp_skip(&r->m);
	if (!kp_mp_str(&r->m, &key))
		return false;
	if (kp_span_is(key, "hardwarePredicate"))
		return walk_node(r, 0);
	if (kp_span_is(key, "sizeMapping") && kp_mp_peek(&r->m) == KP_MP_MAP)
		return read_mapping(r, assembly);
	return kp_mp_skip(&r->m);
}

/* The row of GPU; it is added if it does not exist. */
static struct tensile_kernels *kernels_of(struct reader *r, struct kp_span gpu)
{
	struct tensile_index *x = r->out;

	for (size_t i = 0; i < x->n_kernels; i++)
		if (kp_span_eq(x->kernels[i].gpu, gpu))
			return &x->kernels[i];
	if (x->n_kernels == GPUS_MAX) {
		kp_mp_fault(&r->m, "solutions for too many processors");
		return NULL;
	}
	xgrow(&x->kernels, x->n_kernels, &x->kernels_cap, sizeof(*x->kernels));
	x->kernels[x->n_kernels] = (struct tensile_kernels){.gpu = gpu};
	return &x->kernels[x->n_kernels++];
}

static bool note_solution(struct reader *r, struct kp_span gpu, bool assembly)
{
	struct tensile_kernels *k = kernels_of(r, gpu);

	if (k)
		k->assembly |= assembly;
	return k;
}

/* Drop GPUs and placeholders of a solution's predicate: they are not the library's. */
static bool read_solution(struct reader *r)
{
	struct tensile_index *x = r->out;
	bool assembly = false;
	size_t gpus = x->n_gpus, placeholders = x->n_placeholders;
	uint32_t pairs = 0;

	for (kp_mp_map(&r->m, &pairs); pairs && !r->m.fault; pairs--)
		read_solution_pair(r, &assembly);
	if (!r->m.fault && x->n_gpus == gpus)
		note_solution(r, (struct kp_span){0}, assembly);
	for (size_t i = gpus; i < x->n_gpus && !r->m.fault; i++)
		note_solution(r, x->gpus[i], assembly);
	x->n_gpus = gpus;
	x->n_placeholders = placeholders;
	return !r->m.fault;
}

static bool read_solutions(struct reader *r)
{
	uint32_t n = 0;

	if (kp_mp_peek(&r->m) != KP_MP_ARRAY)
		return kp_mp_skip(&r->m);
	for (kp_mp_array(&r->m, &n); n && !r->m.fault; n--)
		read_solution(r);
	return !r->m.fault;
}

static bool read_blob(struct reader *r)
{
	struct kp_mp_value v;
	struct kp_mp after;

	if (kp_mp_peek(&r->m) != KP_MP_BIN && kp_mp_peek(&r->m) != KP_MP_STR)
		return kp_mp_skip(&r->m);
	kp_mp_next(&r->m, &v);
	if (r->m.fault)
		return false;
	/* moving the cursor keeps offsets in messages relative to the file */
	after = r->m;
	r->m.pos = v.span.data;
	r->m.end = v.span.data + v.span.size;
	while (r->m.pos < r->m.end && !r->m.fault)
		read_solution(r);
	if (!r->m.fault)
		r->m = after;
	return !r->m.fault;
}

/* --- the file ------------------------------------------------------------------------ */

static bool read_library(struct reader *r)
{
	r->out->has_library = kp_mp_peek(&r->m) == KP_MP_MAP;
	return walk_node(r, 0);
}

static const struct field {
	const char *name;
	bool (*read)(struct reader *r);
} fields[] = {
	{"solutions", read_solutions},
	{"solutions_blob", read_blob},
	{"library", read_library},
};

static bool read_field(struct reader *r)
{
	struct kp_span key;

	if (kp_mp_peek(&r->m) != KP_MP_STR)
		return kp_mp_skip(&r->m) && kp_mp_skip(&r->m);
	if (!kp_mp_str(&r->m, &key))
		return false;
	for (size_t i = 0; i < KP_COUNT(fields); i++) {
		if (!kp_span_is(key, fields[i].name))
			continue;
		r->field = fields[i].name;
		return fields[i].read(r);
	}
	r->field = "the map";
	return kp_mp_skip(&r->m);
}

kpack_error_t tensile_index_read(struct kp_span bytes, struct tensile_index *out,
				 struct kpackx_error *why)
{
	struct reader r = {.m = kp_mp_over(bytes), .out = out, .field = "the map"};
	uint32_t pairs = 0;

	*out = (struct tensile_index){0};
	for (kp_mp_map(&r.m, &pairs); pairs && !r.m.fault; pairs--)
		read_field(&r);
	return r.m.fault ? kp_mp_fail(&r.m, r.field, why) : KPACK_SUCCESS;
}

void tensile_index_fini(struct tensile_index *index)
{
	free(index->gpus);
	free(index->placeholders);
	free(index->kernels);
	*index = (struct tensile_index){0};
}
