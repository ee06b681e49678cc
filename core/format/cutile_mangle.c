/* SPDX-License-Identifier: MIT */
/* Writes the names of cuTile kernels. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "cutile.h"
#include "core/base/bounds.h"

struct writer {
	struct kp_compose *name;
	uint32_t convention;
	uint32_t groups;  /* alias groups so far */
	size_t arguments; /* launch arguments so far */
	unsigned depth;
	struct kpackx_error *why;
};

#define INVALID(w, ...) kp_fail((w)->why, KPACK_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

static kpack_error_t put_constraint(struct writer *w, const struct kpackx_constraint *c);

static void put_int64(struct writer *w, int64_t n)
{
	uint64_t magnitude = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

	kp_compose_print(w->name, "%s%" PRIu64, n < 0 ? "_" : "", magnitude);
}

static kpack_error_t put_dtype(struct writer *w, kpackx_dtype_t number)
{
	const struct kp_cutile_dtype *dtype = kp_cutile_dtype(number);

	if (!dtype)
		return INVALID(w, "dtype %d is not known", (int)number);
	kp_compose_str(w->name, dtype->code);
	return KPACK_SUCCESS;
}

/* ---- strings ---- */

static void put_character(struct writer *w, uint32_t c)
{
	char plain[] = {(char)c, '\0'};

	if (c == '_')
		kp_compose_str(w->name, "__");
	else if (c == 'K')
		kp_compose_str(w->name, "_k");
	else if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
		 (c >= 'a' && c <= 'z'))
		kp_compose_str(w->name, plain);
	else if (c <= 0xff)
		kp_compose_print(w->name, "_%02" PRIx32, c);
	else if (c <= 0xffff)
		kp_compose_print(w->name, "_u%04" PRIx32, c);
	else
		kp_compose_print(w->name, "_w%08" PRIx32, c);
}

static kpack_error_t put_string(struct writer *w, struct kpackx_string s,
				const char *what)
{
	struct kp_span rest = {(const uint8_t *)s.data, s.size};
	uint32_t c = 0;
	size_t n;

	if (!s.data && s.size)
		return INVALID(w, "%s is NULL", what);
	if (s.size > KP_CUTILE_NAME_MAX)
		return INVALID(w, "%s has %zu bytes, the limit is %d", what, s.size,
			       KP_CUTILE_NAME_MAX);
	for (; rest.size; rest = kp_span_tail(rest, n)) {
		n = kp_python_char(rest, &c);
		if (n == 0)
			return INVALID(w, "%s is no UTF-8 at byte %zu", what,
				       s.size - rest.size);
		put_character(w, c);
	}
	kp_compose_str(w->name, "_z");
	return KPACK_SUCCESS;
}

/* ---- arrays ---- */

/* A predicate and the dimensions that it applies to. */
struct predicate {
	char letter;
	int64_t value;
	uint64_t mask;
	size_t number; /* in the order of letters, then of first dimensions */
};

enum { LETTERS = 5 };

struct predicates {
	struct predicate items[LETTERS * KP_CUTILE_NDIM_MAX];
	size_t count;
	size_t begin; /* first predicate of the current letter */
};

static void add_predicate(struct predicates *all, char letter, int64_t value,
			  unsigned dimension)
{
	struct predicate *p = &all->items[all->begin], *end = &all->items[all->count];

	while (p < end && p->value != value)
		p++;
	if (p == end) {
		*p = (struct predicate){letter, value, 0, all->count};
		all->count++;
	}
	p->mask |= UINT64_C(1) << dimension;
}

/* Get the value of dimension A for LETTER; false: not stated, default or redundant. */
static bool get_stated(const struct kpackx_axis *a, char letter, int64_t *value)
{
	switch (letter) {
	case 's':
		*value = a->shape_constant;
		return a->has_shape_constant;
	case 'i':
		*value = a->shape_divisible_by;
		return *value > 1 && !a->has_shape_constant;
	case 't':
		*value = a->stride_constant;
		return a->has_stride_constant;
	case 'v':
		*value = a->stride_divisible_by;
		return *value > 1 && !a->has_stride_constant;
	default:
		*value = a->stride_lower_bound;
		return a->has_stride_lower_bound && !a->has_stride_constant;
	}
}

static int by_mask(const void *a, const void *b)
{
	const struct predicate *p = a, *q = b;

	if (p->mask != q->mask)
		return KP_ORDER(p->mask, q->mask);
	return KP_ORDER(p->number, q->number);
}

static void put_predicates(struct writer *w, const struct kpackx_constraint *c)
{
	struct predicates all;
	uint64_t mask = 0;
	int64_t value;

	all.count = 0;
	for (const char *letter = "sitvl"; *letter; letter++) {
		all.begin = all.count;
		for (unsigned i = 0; i < c->ndim; i++)
			if (get_stated(&c->axes[i], *letter, &value))
				add_predicate(&all, *letter, value, i);
	}
	qsort(all.items, all.count, sizeof(all.items[0]), by_mask);
	for (const struct predicate *p = all.items; p < all.items + all.count; p++) {
		if (p->mask != mask)
			kp_compose_print(w->name, "_%" PRIx64, p->mask);
		mask = p->mask;
		kp_compose_print(w->name, "%c", p->letter);
		put_int64(w, p->value);
	}
}

static kpack_error_t check_axis(struct writer *w, const struct kpackx_axis *a)
{
	if (a->reserved[0] || a->reserved[1])
		return INVALID(w, "reserved is not 0");
	if (a->has_shape_constant && w->convention < 2)
		return INVALID(w, "static shapes need calling convention 2");
	if (a->has_shape_constant && a->shape_constant < 0)
		return INVALID(w, "shape %" PRId64 " is below 0", a->shape_constant);
	if (a->shape_divisible_by < 0 || a->stride_divisible_by < 0)
		return INVALID(w, "a divisor is below 0");
	if (a->has_shape_constant && a->shape_divisible_by &&
	    a->shape_constant % a->shape_divisible_by)
		return INVALID(w, "shape %" PRId64 " is not divisible by %" PRId64,
			       a->shape_constant, a->shape_divisible_by);
	if (a->has_stride_constant && a->stride_divisible_by &&
	    a->stride_constant % a->stride_divisible_by)
		return INVALID(w, "stride %" PRId64 " is not divisible by %" PRId64,
			       a->stride_constant, a->stride_divisible_by);
	if (a->has_stride_constant && a->has_stride_lower_bound &&
	    a->stride_constant < a->stride_lower_bound)
		return INVALID(w, "stride %" PRId64 " is below its bound %" PRId64,
			       a->stride_constant, a->stride_lower_bound);
	return KPACK_SUCCESS;
}

static kpack_error_t check_array(struct writer *w, const struct kpackx_constraint *c)
{
	kpack_error_t err = KPACK_SUCCESS;

	if (c->ndim > KP_CUTILE_NDIM_MAX)
		return INVALID(w, "%u dimensions, the limit is %d", c->ndim,
			       KP_CUTILE_NDIM_MAX);
	if (c->ndim && !c->axes)
		return INVALID(w, "axes is NULL");
	if (c->base_addr_divisible_by < 0)
		return INVALID(w, "the base address's divisor is below 0");
	for (unsigned i = 0; i < c->ndim && !err; i++) {
		err = check_axis(w, &c->axes[i]);
		if (err)
			kp_fail_prefix(w->why, err, "dimension %u", i);
	}
	return err;
}

static kpack_error_t put_groups(struct writer *w, const struct kpackx_constraint *c)
{
	if (c->n_alias_groups && !c->alias_groups)
		return INVALID(w, "alias_groups is NULL");
	for (size_t i = 0; i < c->n_alias_groups; i++) {
		uint32_t id = c->alias_groups[i];

		if (id > w->groups || id == UINT32_MAX)
			return INVALID(w, "alias group %u is used before group %u", id,
				       w->groups);
		if (i && id <= c->alias_groups[i - 1])
			return INVALID(w, "alias group %u does not follow group %u", id,
				       c->alias_groups[i - 1]);
		w->groups += id == w->groups;
		kp_compose_print(w->name, "g%" PRIx32, id);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t put_index_dtype(struct writer *w, kpackx_dtype_t dtype)
{
	if (dtype == KPACKX_DTYPE_UINT32)
		kp_compose_str(w->name, "u");
	else if (dtype == KPACKX_DTYPE_INT64)
		kp_compose_str(w->name, "w");
	else if (dtype != KPACKX_DTYPE_INT32 && dtype != KPACKX_DTYPE_NONE)
		return INVALID(w, "index_dtype %d is not int32, uint32 or int64",
			       (int)dtype);
	return KPACK_SUCCESS;
}

static kpack_error_t put_extras(struct writer *w, const struct kpackx_constraint *c)
{
	size_t begin = w->name->size;

	kp_compose_str(w->name, "_");
	if (c->base_addr_divisible_by > 1)
		kp_compose_print(w->name, "p%" PRId64, c->base_addr_divisible_by);
	KP_TRY(put_groups(w, c));
	if (c->may_alias)
		kp_compose_str(w->name, "i");
	KP_TRY(put_index_dtype(w, c->index_dtype));
	if (w->name->size == begin + 1)
		kp_compose_cut(w->name, begin);
	return KPACK_SUCCESS;
}

static kpack_error_t put_array(struct writer *w, const struct kpackx_constraint *c)
{
	KP_TRY(check_array(w, c));
	kp_compose_print(w->name, "%" PRIu32, c->ndim);
	KP_TRY(put_dtype(w, c->dtype));
	put_predicates(w, c);
	return put_extras(w, c);
}

/* ---- constraints with items ---- */

static kpack_error_t put_list(struct writer *w, const struct kpackx_constraint *c)
{
	KP_TRY(put_groups(w, c));
	if (c->may_alias)
		kp_compose_str(w->name, "i");
	if (c->n_items != 1 || !c->items || c->items->kind != KPACKX_ARRAY)
		return INVALID(w, "a list has one item, an array");
	kp_compose_str(w->name, "A");
	return put_array(w, c->items);
}

static kpack_error_t put_items(struct writer *w, const struct kpackx_constraint *items,
			       size_t n, const char *what)
{
	kpack_error_t err = KPACK_SUCCESS;

	if (n && !items)
		return INVALID(w, "%ss are NULL", what);
	for (size_t i = 0; i < n && !err; i++) {
		if (!w->depth)
			kp_compose_str(w->name, "_");
		err = put_constraint(w, &items[i]);
		if (err && err != KPACK_ERROR_OUT_OF_MEMORY)
			kp_fail_prefix(w->why, err, "%s %zu", what, i);
	}
	return err;
}

static kpack_error_t put_tuple(struct writer *w, const struct kpackx_constraint *c)
{
	kpack_error_t err;

	if (w->depth == KP_CUTILE_DEPTH_MAX)
		return INVALID(w, "nested deeper than %d", KP_CUTILE_DEPTH_MAX);
	kp_compose_print(w->name, "%zu", c->n_items);
	w->depth++;
	err = put_items(w, c->items, c->n_items, "item");
	w->depth--;
	return err;
}

static kpack_error_t put_class(struct writer *w, const struct kpackx_constraint *c)
{
	KP_TRY(put_string(w, c->module, "module"));
	return put_string(w, c->qualname, "qualname");
}

static kpack_error_t put_dataclass(struct writer *w, const struct kpackx_constraint *c)
{
	KP_TRY(put_class(w, c));
	return put_tuple(w, c);
}

/* ---- scalars and constants ---- */

static kpack_error_t put_scalar(struct writer *w, const struct kpackx_constraint *c)
{
	return put_dtype(w, c->dtype);
}

static kpack_error_t put_bool(struct writer *w, const struct kpackx_constraint *c)
{
	if (c->bits > 1)
		return INVALID(w, "bool %" PRIu64 " is not 0 or 1", c->bits);
	kp_compose_str(w->name, c->bits ? "1" : "0");
	return KPACK_SUCCESS;
}

static kpack_error_t put_int(struct writer *w, const struct kpackx_constraint *c)
{
	struct kp_span digits = {(const uint8_t *)c->text.data, c->text.size};
	bool negative;

	if (!digits.data)
		return INVALID(w, "text of an integer is NULL");
	negative = kp_span_starts(digits, "-", 1);
	digits = kp_span_tail(digits, negative);
	if (digits.size == 0 || (digits.data[0] == '0' && (digits.size > 1 || negative)))
		return INVALID(w, "an integer has no digits, or a zero in front");
	for (size_t i = 0; i < digits.size; i++)
		if (digits.data[i] < '0' || digits.data[i] > '9')
			return INVALID(w, "byte %zu of an integer is no digit",
				       i + negative);
	kp_compose_str(w->name, negative ? "_" : "");
	kp_compose_span(w->name, digits);
	return KPACK_SUCCESS;
}

static kpack_error_t put_float(struct writer *w, const struct kpackx_constraint *c)
{
	kp_compose_print(w->name, "%016" PRIx64, c->bits);
	return KPACK_SUCCESS;
}

static kpack_error_t put_none(struct writer *w, const struct kpackx_constraint *c)
{
	(void)w;
	(void)c;
	return KPACK_SUCCESS;
}

static kpack_error_t put_str(struct writer *w, const struct kpackx_constraint *c)
{
	return put_string(w, c->text, "text");
}

static kpack_error_t put_enum(struct writer *w, const struct kpackx_constraint *c)
{
	KP_TRY(put_class(w, c));
	return put_string(w, c->text, "text");
}

static const struct {
	const char *code;
	uint32_t convention; /* the first one with this kind */
	kpack_error_t (*put)(struct writer *w, const struct kpackx_constraint *c);
} kinds[] = {
	[KPACKX_SCALAR] = {"S", 1, put_scalar},
	[KPACKX_ARRAY] = {"A", 1, put_array},
	[KPACKX_LIST] = {"L", 1, put_list},
	[KPACKX_TUPLE] = {"T", 2, put_tuple},
	[KPACKX_DATACLASS] = {"D", 3, put_dataclass},
	[KPACKX_CONST_BOOL] = {"B", 1, put_bool},
	[KPACKX_CONST_INT] = {"I", 1, put_int},
	[KPACKX_CONST_FLOAT] = {"F", 1, put_float},
	[KPACKX_CONST_NONE] = {"Cn_", 3, put_none},
	[KPACKX_CONST_STR] = {"Cs_", 3, put_str},
	[KPACKX_CONST_ENUM] = {"Ce_", 3, put_enum},
	[KPACKX_CONST_DTYPE] = {"Cd_", 3, put_scalar},
};

/*
 * Check the limits after each constraint, which also ends trees that contain themselves.
 */
static kpack_error_t check_size(struct writer *w)
{
	if (w->name->no_memory)
		return kp_fail_memory(w->why, w->name->size, "a cuTile name");
	if (w->name->size > KP_CUTILE_NAME_MAX)
		return INVALID(w, "the name passes %d bytes", KP_CUTILE_NAME_MAX);
	if (w->arguments > KP_CUTILE_ARGUMENTS_MAX)
		return INVALID(w, "more than %d launch arguments",
			       KP_CUTILE_ARGUMENTS_MAX);
	return KPACK_SUCCESS;
}

static kpack_error_t put_constraint(struct writer *w, const struct kpackx_constraint *c)
{
	unsigned kind = (unsigned)c->kind;

	if (kind >= KP_COUNT(kinds) || !kinds[kind].put)
		return INVALID(w, "kind %u is not known", kind);
	if (w->convention < kinds[kind].convention)
		return INVALID(w, "%s needs calling convention %u, not %u",
			       kinds[kind].code, kinds[kind].convention, w->convention);
	for (size_t i = 0; i < KP_COUNT(c->reserved); i++)
		if (c->reserved[i])
			return INVALID(w, "reserved is not 0");
	kp_compose_str(w->name, kinds[kind].code);
	KP_TRY(kinds[kind].put(w, c));
	w->arguments += kp_cutile_argument_count(c);
	return check_size(w);
}

static kpack_error_t put_function(struct writer *w, struct kpackx_string function)
{
	if (!function.data && function.size)
		return INVALID(w, "function is NULL");
	if (function.size > KP_CUTILE_NAME_MAX)
		return INVALID(w, "function has %zu bytes, the limit is %d",
			       function.size, KP_CUTILE_NAME_MAX);
	if (function.size && memchr(function.data, '\0', function.size))
		return INVALID(w, "function contains a NUL byte");
	kp_compose_span(w->name,
			(struct kp_span){(const uint8_t *)function.data, function.size});
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_mangle(const struct kpackx_signature *s, struct kp_compose *name,
			       struct kpackx_error *why)
{
	struct writer w = {.name = name, .convention = s->convention, .why = why};

	if (s->convention < 1 || s->convention > KP_CUTILE_CONVENTION_MAX)
		return kp_fail(why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "calling convention %u is not known, only 1 to %d",
			       s->convention, KP_CUTILE_CONVENTION_MAX);
	for (size_t i = 0; i < KP_COUNT(s->reserved); i++)
		if (s->reserved[i] || s->reserved0)
			return INVALID(&w, "reserved is not 0");
	KP_TRY(put_function(&w, s->function));
	kp_compose_print(name, "_Kt%u", s->convention);
	KP_TRY(put_items(&w, s->parameters, s->n_parameters, "parameter"));
	return check_size(&w);
}
