/* SPDX-License-Identifier: MIT */
/*
 * The references of a Tensile library file (.dat, MessagePack) to other files: which
 * files of its directory it loads later, for which processors, and for which it has kernels
 * in assembly.
 *
 *	{ "solutions": [ {"name", "hardwarePredicate", "sizeMapping": {"sourceKernel", ...}} ],
 *	  "library": {"type": "Hardware", "rows": [ {"predicate", "library"} ]} }
 *
 * "library" contains nodes {"type": "Placeholder", "value": PREFIX} at any depth, and
 * predicates contain {"type": "Processor", "value": NAME}.  Newer files have
 * "solutions_blob" instead of "solutions": the same maps, concatenated.
 */
#include <stdlib.h>
#include <zlib.h>
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "packer/cli/xalloc.h"
#include "tensile.h"

/* Limit of nesting of library nodes and predicates: real trees have about 20 levels. */
#define DEPTH_MAX 64

/* Limit of processors with solutions in one file: AMD has made some 60. */
#define GPUS_MAX 256

/* Read the key of a map's pair; it is empty if it is no text, as in a ProblemMap. */
static struct kp_span read_key(struct kp_mp *m)
{
	struct kp_span key = {0};

	if (kp_mp_peek(m) != KP_MP_STR)
		kp_mp_skip(m);
	else
		kp_mp_str(m, &key);
	return key;
}

/* Walk a node of the tree of libraries, or a predicate.  Faults stay in M. */
static void walk_node(struct kp_mp *m, unsigned depth, struct tensile_index *x)
{
	enum kp_mp_type type = kp_mp_peek(m);
	size_t first = x->n_placeholders, gpu = 0, n_gpus = 0;
	struct kp_span kind = {0}, value = {0};
	uint32_t n = 0;

	if (type != KP_MP_MAP && type != KP_MP_ARRAY) {
		kp_mp_skip(m);
		return;
	}
	if (depth > DEPTH_MAX) {
		kp_mp_fault(m, "nested too deeply");
		return;
	}
	if (type == KP_MP_ARRAY) {
		for (kp_mp_array(m, &n); n && !m->fault; n--)
			walk_node(m, depth + 1, x);
		return;
	}
	for (kp_mp_map(m, &n); n && !m->fault; n--) {
		struct kp_span key = read_key(m);
		bool text = kp_mp_peek(m) == KP_MP_STR;

		if (text && kp_span_is(key, "type")) {
			kp_mp_str(m, &kind);
		} else if (text && kp_span_is(key, "value")) {
			kp_mp_str(m, &value);
		} else if (kp_span_is(key, "predicate")) {
			gpu = x->n_gpus;
			walk_node(m, depth + 1, x);
			n_gpus = x->n_gpus - gpu;
		} else {
			walk_node(m, depth + 1, x);
		}
	}
	if (m->fault)
		return;
	if (kp_span_is(kind, "Placeholder")) {
		if (!value.data)
			kp_mp_fault(m, "a placeholder without a value");
		else if (value.size == 0 || value.size > KP_NAME_MAX)
			kp_mp_fault(m, "a placeholder's value is no file name");
		if (m->fault)
			return;
		xgrow(&x->placeholders, x->n_placeholders, &x->placeholders_cap,
		      sizeof(*x->placeholders));
		x->placeholders[x->n_placeholders++] =
			(struct tensile_placeholder){value, 0, 0};
	} else if (kp_span_is(kind, "Processor") && value.data) {
		xgrow(&x->gpus, x->n_gpus, &x->gpus_cap, sizeof(*x->gpus));
		x->gpus[x->n_gpus++] = value;
	} else {
		/* only at its end, because a row's predicate may follow its library */
		for (; n_gpus && first < x->n_placeholders; first++)
			if (x->placeholders[first].n_gpus == 0)
				x->placeholders[first] = (struct tensile_placeholder){
					x->placeholders[first].value, gpu, n_gpus};
	}
}

/* Note that GPU has a solution. */
static void add_solution(struct kp_mp *m, struct kp_span gpu, bool assembly,
			 struct tensile_index *x)
{
	size_t i = 0;

	while (i < x->n_kernels && !kp_span_eq(x->kernels[i].gpu, gpu))
		i++;
	if (i == GPUS_MAX) {
		kp_mp_fault(m, "solutions for too many processors");
		return;
	}
	if (i == x->n_kernels) {
		xgrow(&x->kernels, i, &x->kernels_cap, sizeof(*x->kernels));
		x->kernels[x->n_kernels++] = (struct tensile_kernels){.gpu = gpu};
	}
	x->kernels[i].assembly |= assembly;
}

/* Read a solution: the processors of its predicate, and whether its kernel is in assembly. */
static void read_solution(struct kp_mp *m, struct tensile_index *x)
{
	size_t gpus = x->n_gpus, placeholders = x->n_placeholders;
	uint32_t pairs = 0, inner = 0;
	bool assembly = false;

	for (kp_mp_map(m, &pairs); pairs && !m->fault; pairs--) {
		struct kp_span key = read_key(m);

		if (kp_span_is(key, "hardwarePredicate")) {
			walk_node(m, 0, x);
			continue;
		}
		if (!kp_span_is(key, "sizeMapping") || kp_mp_peek(m) != KP_MP_MAP) {
			kp_mp_skip(m);
			continue;
		}
		for (kp_mp_map(m, &inner); inner && !m->fault; inner--) {
			bool states = kp_span_is(read_key(m), "sourceKernel");
			enum kp_mp_type type = kp_mp_peek(m);
			struct kp_mp_value v = {0};

			if (!states || (type != KP_MP_UINT && type != KP_MP_BOOL))
				kp_mp_skip(m);
			else
				kp_mp_next(m, &v);
			assembly |= states && v.num == 0;
		}
	}
	if (!m->fault && x->n_gpus == gpus)
		add_solution(m, (struct kp_span){0}, assembly, x);
	for (size_t i = gpus; i < x->n_gpus && !m->fault; i++)
		add_solution(m, x->gpus[i], assembly, x);
	/* those of a solution's predicate are not the library's */
	x->n_gpus = gpus;
	x->n_placeholders = placeholders;
}

kpack_error_t tensile_index_read(struct kp_span bytes, struct tensile_index *out,
				 struct kpackx_error *why)
{
	struct kp_mp m = kp_mp_over(bytes);
	const char *field = "the map";
	uint32_t pairs = 0;

	*out = (struct tensile_index){0};
	for (kp_mp_map(&m, &pairs); pairs && !m.fault; pairs--) {
		struct kp_span key = read_key(&m);
		enum kp_mp_type type = kp_mp_peek(&m);
		uint32_t n = 0;

		if (m.fault)
			break;
		field = "the map";
		if (kp_span_is(key, "library")) {
			field = "library";
			out->has_library = type == KP_MP_MAP;
			walk_node(&m, 0, out);
		} else if (kp_span_is(key, "solutions")) {
			field = "solutions";
			if (type == KP_MP_ARRAY)
				kp_mp_array(&m, &n);
			else
				kp_mp_skip(&m);
			for (; n && !m.fault; n--)
				read_solution(&m, out);
		} else if (kp_span_is(key, "solutions_blob")) {
			struct kp_mp_value v = {0};
			struct kp_mp after;

			field = "solutions_blob";
			if (type == KP_MP_BIN || type == KP_MP_STR)
				kp_mp_next(&m, &v);
			else
				kp_mp_skip(&m);
			if (m.fault || !v.span.data)
				continue;
			/* moving the cursor keeps offsets in messages relative to the file */
			after = m;
			m.pos = v.span.data;
			m.end = v.span.data + v.span.size;
			while (!m.fault && m.pos < m.end)
				read_solution(&m, out);
			if (!m.fault)
				m = after;
		} else {
			kp_mp_skip(&m);
		}
	}
	return m.fault ? kp_mp_fail(&m, field, why) : KPACK_SUCCESS;
}

void tensile_index_fini(struct tensile_index *index)
{
	free(index->gpus);
	free(index->placeholders);
	free(index->kernels);
	*index = (struct tensile_index){0};
}

/* --- the number of kernels -------------------------------------------------------------- */

/*
 * The length of "solutions", or of "solutions_index", which has three numbers per solution.  The map
 * is followed as long as its values lie inside HEAD; the array itself goes on behind it, and the
 * cursor, which rejects such lengths, cannot read it.
 */
static uint64_t count_in(struct kp_span head)
{
	struct kp_mp c = kp_mp_over(head);
	uint32_t pairs = 0;

	for (kp_mp_map(&c, &pairs); !c.fault && pairs; pairs--) {
		struct kp_span key = read_key(&c);
		bool triples = kp_span_is(key, "solutions_index");
		size_t left = (size_t)(c.end - c.pos);
		const uint8_t *p = c.pos;
		uint64_t length = 0;

		if (!triples && !kp_span_is(key, "solutions")) {
			kp_mp_skip(&c);
			continue;
		}
		if (left && (*p & 0xf0) == 0x90)
			length = *p & 0x0f;
		else if (left >= 3 && *p == 0xdc)
			length = (uint64_t)p[1] << 8 | p[2];
		else if (left >= 5 && *p == 0xdd)
			length = (uint64_t)p[1] << 24 | (uint64_t)p[2] << 16 |
				 (uint64_t)p[3] << 8 | p[4];
		return triples ? length / 3 : length;
	}
	return 0;
}

uint64_t tensile_kernel_count(struct kp_span head)
{
	uint8_t decoded[512];
	z_stream z = {
		.next_in = (Bytef *)head.data,
		.avail_in = (uInt)head.size,
		.next_out = decoded,
		.avail_out = sizeof(decoded),
	};
	uint64_t count = count_in(head);

	if (count || inflateInit(&z) != Z_OK)
		return count;
	inflate(&z, Z_SYNC_FLUSH); /* its output is used, whatever it returns */
	inflateEnd(&z);
	return count_in((struct kp_span){decoded, sizeof(decoded) - z.avail_out});
}
