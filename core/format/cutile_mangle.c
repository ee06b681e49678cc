/* SPDX-License-Identifier: MIT */
/*
 * Writing the names of cuTile kernels (cutile.h has the grammar).  A caller's signature is
 * checked while it is written: what it says must be possible, and its name must be one
 * that can be read again.  The limits are checked after each constraint, which also ends
 * trees that contain themselves.
 *
 * All rules of the one right name are here: what is a default and left out, which groups of
 * predicates there are and in which order, how a character is escaped.  Errors name the
 * place on the way up: "parameter 2: item 0: dimension 1: ...".
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "cutile.h"

#define INVALID(m, ...) kp_fail((m)->why, KPACK_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

const struct kp_cutile_dtype kp_cutile_dtypes[] = {
	[KPACKX_DTYPE_BOOL] = {"b8", "bool_", "bool", "bool *", 1},
	[KPACKX_DTYPE_UINT8] = {"u8", "uint8", "uint8_t", "uint8_t *", 1},
	[KPACKX_DTYPE_UINT16] = {"u16", "uint16", "uint16_t", "uint16_t *", 2},
	[KPACKX_DTYPE_UINT32] = {"u32", "uint32", "uint32_t", "uint32_t *", 4},
	[KPACKX_DTYPE_UINT64] = {"u64", "uint64", "uint64_t", "uint64_t *", 8},
	[KPACKX_DTYPE_INT8] = {"i8", "int8", "int8_t", "int8_t *", 1},
	[KPACKX_DTYPE_INT16] = {"i16", "int16", "int16_t", "int16_t *", 2},
	[KPACKX_DTYPE_INT32] = {"i32", "int32", "int32_t", "int32_t *", 4},
	[KPACKX_DTYPE_INT64] = {"i64", "int64", "int64_t", "int64_t *", 8},
	[KPACKX_DTYPE_FLOAT16] = {"f16", "float16", "__half", "__half *", 2},
	[KPACKX_DTYPE_FLOAT32] = {"f32", "float32", "float", "float *", 4},
	[KPACKX_DTYPE_FLOAT64] = {"f64", "float64", "double", "double *", 8},
	[KPACKX_DTYPE_BFLOAT16] = {"bf16", "bfloat16", "__nv_bfloat16", "__nv_bfloat16 *",
				   2},
	[KPACKX_DTYPE_TFLOAT32] = {"tf32", "tfloat32", "float", "float *", 4},
	[KPACKX_DTYPE_FLOAT8_E4M3FN] = {"f8m3fn", "float8_e4m3fn", "__nv_fp8_e4m3",
					"__nv_fp8_e4m3 *", 1},
	[KPACKX_DTYPE_FLOAT8_E5M2] = {"f8m2", "float8_e5m2", "__nv_fp8_e5m2",
				      "__nv_fp8_e5m2 *", 1},
	[KPACKX_DTYPE_FLOAT8_E8M0FNU] = {"f8m0fnu", "float8_e8m0fnu", "__nv_fp8_e8m0",
					 "__nv_fp8_e8m0 *", 1},
};

const struct kp_cutile_kind kp_cutile_kinds[] = {
	[KPACKX_SCALAR] = {"S", 1, "d"},        [KPACKX_ARRAY] = {"A", 1, "a"},
	[KPACKX_LIST] = {"L", 1, "l"},          [KPACKX_TUPLE] = {"T", 2, "i"},
	[KPACKX_DATACLASS] = {"D", 3, "ci"},    [KPACKX_CONST_BOOL] = {"B", 1, "b"},
	[KPACKX_CONST_INT] = {"I", 1, "n"},     [KPACKX_CONST_FLOAT] = {"F", 1, "f"},
	[KPACKX_CONST_NONE] = {"Cn_", 3, ""},   [KPACKX_CONST_STR] = {"Cs_", 3, "t"},
	[KPACKX_CONST_ENUM] = {"Ce_", 3, "ct"}, [KPACKX_CONST_DTYPE] = {"Cd_", 3, "d"},
};

struct mangler {
	struct kp_compose *name;
	uint32_t convention;
	uint32_t groups;  /* alias groups so far */
	size_t arguments; /* launch arguments so far */
	unsigned depth;
	struct kpackx_error *why;
};

static kpack_error_t put_dtype(struct mangler *m, kpackx_dtype_t dtype)
{
	if ((unsigned)dtype >= KP_CUTILE_DTYPES || !kp_cutile_dtypes[dtype].code)
		return INVALID(m, "dtype %d is not known", (int)dtype);
	kp_compose_str(m->name, kp_cutile_dtypes[dtype].code);
	return KPACK_SUCCESS;
}

/* ---- strings ---- */

/* Python's strings may hold halves of surrogate pairs, which UTF-8 does not allow. */
size_t kp_python_char(struct kp_span s, uint32_t *out)
{
	if (s.size < 3 || s.data[0] != 0xed || (s.data[1] & 0xe0) != 0xa0 ||
	    (s.data[2] & 0xc0) != 0x80)
		return kp_text_char(s, out);
	*out = 0xd000 | (uint32_t)(s.data[1] & 0x3f) << 6 | (s.data[2] & 0x3f);
	return 3;
}

size_t kp_python_put(uint32_t character, uint8_t out[4])
{
	static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n =
		1 + (character >= 0x80) + (character >= 0x800) + (character >= 0x10000);

	for (size_t i = n; i-- > 1; character >>= 6)
		out[i] = (uint8_t)(0x80 | (character & 0x3f));
	out[0] = (uint8_t)(leads[n] | character);
	return n;
}

/* Write a string in the shortest escapes, and its end. */
static kpack_error_t put_string(struct mangler *m, struct kpackx_string s,
				const char *what)
{
	struct kp_span rest = {(const uint8_t *)s.data, s.size};
	uint32_t c = 0;
	size_t n;

	if (!s.data && s.size)
		return INVALID(m, "%s is NULL", what);
	if (s.size > KP_CUTILE_NAME_MAX)
		return INVALID(m, "%s has %zu bytes, the limit is %d", what, s.size,
			       KP_CUTILE_NAME_MAX);
	for (; rest.size; rest = kp_span_tail(rest, n)) {
		n = kp_python_char(rest, &c);
		if (n == 0)
			return INVALID(m, "%s is no UTF-8 at byte %zu", what,
				       s.size - rest.size);
		if (c == '_' || c == 'K')
			kp_compose_str(m->name, c == '_' ? "__" : "_k");
		else if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			 (c >= 'a' && c <= 'z'))
			kp_compose_span(m->name, kp_span_head(rest, 1));
		else if (c <= 0xff)
			kp_compose_print(m->name, "_%02" PRIx32, c);
		else if (c <= 0xffff)
			kp_compose_print(m->name, "_u%04" PRIx32, c);
		else
			kp_compose_print(m->name, "_w%08" PRIx32, c);
	}
	kp_compose_str(m->name, "_z");
	return KPACK_SUCCESS;
}

/* Any number of digits, as Python has them. */
static kpack_error_t put_integer(struct mangler *m, struct kpackx_string text)
{
	struct kp_span digits = {(const uint8_t *)text.data, text.size};
	bool negative;

	if (!text.data)
		return INVALID(m, "text of an integer is NULL");
	negative = kp_span_starts(digits, "-", 1);
	digits = kp_span_tail(digits, negative);
	if (digits.size == 0 || (digits.data[0] == '0' && (digits.size > 1 || negative)))
		return INVALID(m, "an integer has no digits, or a zero in front");
	for (size_t i = 0; i < digits.size; i++)
		if (digits.data[i] < '0' || digits.data[i] > '9')
			return INVALID(m, "byte %zu of an integer is no digit",
				       i + negative);
	kp_compose_str(m->name, negative ? "_" : "");
	kp_compose_span(m->name, digits);
	return KPACK_SUCCESS;
}

/* ---- arrays ---- */

/* cuTile refuses assumptions that contradict each other when a kernel is exported. */
static kpack_error_t check_axis(struct mangler *m, const struct kpackx_axis *a)
{
	if (a->reserved[0] || a->reserved[1])
		return INVALID(m, "reserved is not 0");
	if (a->has_shape_constant && m->convention < 2)
		return INVALID(m, "static shapes need calling convention 2");
	if (a->has_shape_constant && a->shape_constant < 0)
		return INVALID(m, "shape %" PRId64 " is below 0", a->shape_constant);
	if (a->shape_divisible_by < 0 || a->stride_divisible_by < 0)
		return INVALID(m, "a divisor is below 0");
	if (a->has_shape_constant && a->shape_divisible_by &&
	    a->shape_constant % a->shape_divisible_by)
		return INVALID(m, "shape %" PRId64 " is not divisible by %" PRId64,
			       a->shape_constant, a->shape_divisible_by);
	if (a->has_stride_constant && a->stride_divisible_by &&
	    a->stride_constant % a->stride_divisible_by)
		return INVALID(m, "stride %" PRId64 " is not divisible by %" PRId64,
			       a->stride_constant, a->stride_divisible_by);
	if (a->has_stride_constant && a->has_stride_lower_bound &&
	    a->stride_constant < a->stride_lower_bound)
		return INVALID(m, "stride %" PRId64 " is below its bound %" PRId64,
			       a->stride_constant, a->stride_lower_bound);
	return KPACK_SUCCESS;
}

bool kp_cutile_predicate(const struct kpackx_axis *a, char letter, int64_t *value)
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

/*
 * Write each predicate once with the mask of all dimensions for which it holds.  There is
 * at most one for each letter and dimension.  Those of one mask follow it in the order of
 * letters, so that sorting by mask and number gives the groups.
 */
static void put_predicates(struct mangler *m, const struct kpackx_constraint *c)
{
	static const char letters[] = {'s', 'i', 't', 'v', 'l'};
	struct predicate {
		uint64_t mask;
		int64_t value;
		size_t number; /* in the order of letters, then of first dimensions */
		char letter;
	} all[sizeof(letters) * KP_CUTILE_NDIM_MAX];
	size_t count = 0;
	uint64_t mask = 0;
	int64_t value;

	for (size_t l = 0; l < sizeof(letters); l++) {
		size_t begin = count;

		for (unsigned i = 0; i < c->ndim; i++) {
			size_t k = begin;

			if (!kp_cutile_predicate(&c->axes[i], letters[l], &value))
				continue;
			while (k < count && all[k].value != value)
				k++;
			if (k == count)
				all[count++] =
					(struct predicate){0, value, k, letters[l]};
			all[k].mask |= UINT64_C(1) << i;
		}
	}
	kp_sort(all, count, KP_BY_NUMBER(struct predicate, mask),
		KP_BY_NUMBER(struct predicate, number));
	for (size_t k = 0; k < count; mask = all[k++].mask) {
		if (all[k].mask != mask)
			kp_compose_print(m->name, "_%" PRIx64, all[k].mask);
		/* the magnitude of INT64_MIN does not fit into int64_t */
		value = all[k].value;
		kp_compose_print(m->name, "%c%s%" PRIu64, all[k].letter,
				 value < 0 ? "_" : "",
				 value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
	}
}

/*
 * Groups are numbered by their first use in the whole name: a number is at most that of
 * the next new group.
 */
static kpack_error_t put_groups(struct mangler *m, const struct kpackx_constraint *c)
{
	if (c->n_alias_groups && !c->alias_groups)
		return INVALID(m, "alias_groups is NULL");
	for (size_t i = 0; i < c->n_alias_groups; i++) {
		uint32_t id = c->alias_groups[i];

		if (id > m->groups || id == UINT32_MAX)
			return INVALID(m, "alias group %u is used before group %u", id,
				       m->groups);
		if (i && id <= c->alias_groups[i - 1])
			return INVALID(m, "alias group %u does not follow group %u", id,
				       c->alias_groups[i - 1]);
		m->groups += id == m->groups;
		kp_compose_print(m->name, "g%" PRIx32, id);
	}
	kp_compose_str(m->name, c->may_alias ? "i" : "");
	return KPACK_SUCCESS;
}

/* A list has an array too, whose launch arguments are in its buffer and do not count. */
static kpack_error_t put_array(struct mangler *m, const struct kpackx_constraint *c)
{
	size_t begin;

	if (c->ndim > KP_CUTILE_NDIM_MAX)
		return INVALID(m, "%u dimensions, the limit is %d", c->ndim,
			       KP_CUTILE_NDIM_MAX);
	if (c->ndim && !c->axes)
		return INVALID(m, "axes is NULL");
	if (c->base_addr_divisible_by < 0)
		return INVALID(m, "the base address's divisor is below 0");
	for (unsigned i = 0; i < c->ndim; i++) {
		kpack_error_t err = check_axis(m, &c->axes[i]);

		if (err)
			return kp_fail_prefix(m->why, err, "dimension %u", i);
	}
	kp_compose_print(m->name, "%" PRIu32, c->ndim);
	KP_TRY(put_dtype(m, c->dtype));
	put_predicates(m, c);
	begin = m->name->size;
	kp_compose_str(m->name, "_");
	if (c->base_addr_divisible_by > 1)
		kp_compose_print(m->name, "p%" PRId64, c->base_addr_divisible_by);
	KP_TRY(put_groups(m, c));
	if (c->index_dtype == KPACKX_DTYPE_UINT32)
		kp_compose_str(m->name, "u");
	else if (c->index_dtype == KPACKX_DTYPE_INT64)
		kp_compose_str(m->name, "w");
	else if (c->index_dtype != KPACKX_DTYPE_INT32 &&
		 c->index_dtype != KPACKX_DTYPE_NONE)
		return INVALID(m, "index_dtype %d is not int32, uint32 or int64",
			       (int)c->index_dtype);
	if (m->name->size == begin + 1) /* no extras */
		kp_compose_cut(m->name, begin);
	return KPACK_SUCCESS;
}

/* ---- constraints ---- */

static kpack_error_t put_items(struct mangler *m, const struct kpackx_constraint *items,
			       size_t n, const char *what);

/* Write the part of C that PART stands for in kp_cutile_kinds. */
static kpack_error_t put_part(struct mangler *m, char part,
			      const struct kpackx_constraint *c)
{
	kpack_error_t err;

	switch (part) {
	case 'd':
		return put_dtype(m, c->dtype);
	case 'a':
		m->arguments += 1 + 2 * (size_t)c->ndim;
		return put_array(m, c);
	case 'l':
		m->arguments += 2;
		KP_TRY(put_groups(m, c));
		if (c->n_items != 1 || !c->items || c->items->kind != KPACKX_ARRAY)
			return INVALID(m, "a list has one item, an array");
		kp_compose_str(m->name, "A");
		return put_array(m, c->items);
	case 'i':
		if (m->depth == KP_CUTILE_DEPTH_MAX)
			return INVALID(m, "nested deeper than %d", KP_CUTILE_DEPTH_MAX);
		kp_compose_print(m->name, "%zu", c->n_items);
		m->depth++;
		err = put_items(m, c->items, c->n_items, "item");
		m->depth--;
		return err;
	case 'c':
		KP_TRY(put_string(m, c->module, "module"));
		return put_string(m, c->qualname, "qualname");
	case 't':
		return put_string(m, c->text, "text");
	case 'b':
		if (c->bits > 1)
			return INVALID(m, "bool %" PRIu64 " is not 0 or 1", c->bits);
		kp_compose_str(m->name, c->bits ? "1" : "0");
		return KPACK_SUCCESS;
	case 'n':
		return put_integer(m, c->text);
	default:
		kp_compose_print(m->name, "%016" PRIx64, c->bits);
		return KPACK_SUCCESS;
	}
}

/* The limits of cuTile and of CUDA: of a symbol's name, and of a launch. */
static kpack_error_t check_limits(struct mangler *m)
{
	if (m->name->no_memory)
		return kp_fail_memory(m->why, m->name->size, "a cuTile name");
	if (m->name->size > KP_CUTILE_NAME_MAX)
		return INVALID(m, "the name passes %d bytes", KP_CUTILE_NAME_MAX);
	if (m->arguments > KP_CUTILE_ARGUMENTS_MAX)
		return INVALID(m, "more than %d launch arguments",
			       KP_CUTILE_ARGUMENTS_MAX);
	return KPACK_SUCCESS;
}

static kpack_error_t put_constraint(struct mangler *m, const struct kpackx_constraint *c)
{
	unsigned number = (unsigned)c->kind; /* a caller may have put any number there */
	const struct kp_cutile_kind *kind = &kp_cutile_kinds[number % KP_CUTILE_KINDS];

	if (number >= KP_CUTILE_KINDS || !kind->code)
		return INVALID(m, "kind %u is not known", number);
	if (m->convention < kind->convention)
		return INVALID(m, "%s needs calling convention %u, not %u", kind->code,
			       kind->convention, m->convention);
	for (size_t i = 0; i < KP_COUNT(c->reserved); i++)
		if (c->reserved[i])
			return INVALID(m, "reserved is not 0");
	kp_compose_str(m->name, kind->code);
	m->arguments += c->kind == KPACKX_SCALAR;
	for (const char *part = kind->parts; *part; part++)
		KP_TRY(put_part(m, *part, c));
	return check_limits(m);
}

/* Only parameters, not the items of a tuple, have "_" between them. */
static kpack_error_t put_items(struct mangler *m, const struct kpackx_constraint *items,
			       size_t n, const char *what)
{
	if (n && !items)
		return INVALID(m, "%ss are NULL", what);
	for (size_t i = 0; i < n; i++) {
		kpack_error_t err;

		if (!m->depth)
			kp_compose_str(m->name, "_");
		err = put_constraint(m, &items[i]);
		if (err == KPACK_ERROR_OUT_OF_MEMORY)
			return err;
		if (err)
			return kp_fail_prefix(m->why, err, "%s %zu", what, i);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_mangle(const struct kpackx_signature *s, struct kp_compose *name,
			       size_t *arguments, struct kpackx_error *why)
{
	struct mangler m = {.name = name, .convention = s->convention, .why = why};
	struct kp_span function = {(const uint8_t *)s->function.data, s->function.size};

	if (s->convention < 1 || s->convention > KP_CUTILE_CONVENTION_MAX)
		return kp_fail(why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "calling convention %u is not known, only 1 to %d",
			       s->convention, KP_CUTILE_CONVENTION_MAX);
	for (size_t i = 0; i < KP_COUNT(s->reserved); i++)
		if (s->reserved[i] || s->reserved0)
			return INVALID(&m, "reserved is not 0");
	if (!function.data && function.size)
		return INVALID(&m, "function is NULL");
	if (function.size > KP_CUTILE_NAME_MAX)
		return INVALID(&m, "function has %zu bytes, the limit is %d",
			       function.size, KP_CUTILE_NAME_MAX);
	if (function.size && memchr(function.data, '\0', function.size))
		return INVALID(&m, "function contains a NUL byte");
	kp_compose_span(name, function);
	kp_compose_print(name, "_Kt%u", s->convention);
	KP_TRY(put_items(&m, s->parameters, s->n_parameters, "parameter"));
	*arguments = m.arguments;
	return check_limits(&m);
}

kpack_error_t kpackx_mangle(const struct kpackx_signature *signature, char **symbol,
			    struct kpackx_error *why)
{
	struct kp_compose name = {0};
	size_t arguments;
	kpack_error_t err;

	if (!signature || !symbol)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s is NULL",
			       signature ? "symbol" : "signature");
	err = kp_cutile_mangle(signature, &name, &arguments, why);
	if (!err)
		return kp_compose_take(&name, symbol, why);
	kp_compose_fini(&name);
	return err;
}

void kpackx_symbol_free(char *symbol)
{
	free(symbol);
}
