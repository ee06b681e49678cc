/* SPDX-License-Identifier: MIT */
/* Formats signatures of cuTile kernels as Python. */
#include <inttypes.h>
#include <stdlib.h>
#include "cutile.h"
#include "core/base/decimal.h"
#include "core/base/text.h"

static void put_constraint(struct kp_compose *out, const struct kpackx_constraint *c);

static void put_dtype(struct kp_compose *out, kpackx_dtype_t dtype)
{
	kp_compose_print(out, "ct.%s", kp_cutile_dtype(dtype)->python);
}

static void put_bool(struct kp_compose *out, bool value)
{
	kp_compose_str(out, value ? "True" : "False");
}

/* ---- floats, as repr() writes them ---- */

/*
 * Write the N DIGITS with the point after the first POINT digits; POINT may be outside
 * 0..N.
 */
static void put_decimal(struct kp_compose *out, const char *digits, int n, int point)
{
	if (point <= 0)
		kp_compose_print(out, "0.%.*s%s", -point, "0000", digits);
	else if (point >= n)
		kp_compose_print(out, "%s%.*s.0", digits, point - n, "0000000000000000");
	else
		kp_compose_print(out, "%.*s.%s", point, digits, digits + point);
}

static void put_finite(struct kp_compose *out, double value)
{
	char digits[KP_DECIMAL_MAX + 1];
	int exponent;
	size_t n = kp_decimal_digits(value, digits, &exponent);

	if (exponent >= -4 && exponent < 16)
		put_decimal(out, digits, (int)n, exponent + 1);
	else
		kp_compose_print(out, "%c%s%se%+03d", digits[0], n > 1 ? "." : "",
				 digits + 1, exponent);
}

static void put_float(struct kp_compose *out, uint64_t bits)
{
	const uint64_t sign = UINT64_C(1) << 63, infinity = UINT64_C(0x7ff) << 52;
	uint64_t magnitude = bits & ~sign;
	double value;

	memcpy(&value, &magnitude, sizeof(value));
	if (magnitude > infinity) {
		if (bits == (UINT64_C(0xfff) << 51))
			kp_compose_str(out, "float(\"nan\")");
		else /* a NaN with other bits is another constant */
			kp_compose_print(
				out,
				"struct.unpack(\">d\", bytes.fromhex(\"%016" PRIx64
				"\"))[0]",
				bits);
		return;
	}
	if (magnitude == infinity) {
		kp_compose_str(out, bits & sign ? "float(\"-inf\")" : "float(\"inf\")");
		return;
	}
	kp_compose_str(out, bits & sign ? "-" : "");
	if (magnitude)
		put_finite(out, value);
	else
		kp_compose_str(out, "0.0");
}

/* ---- strings ---- */

static bool is_shown(struct kp_span character)
{
	char escaped[24];

	return kp_span_is(character, kp_text_escape(character, escaped, sizeof(escaped)));
}

static void put_character(struct kp_compose *out, struct kp_span bytes, uint32_t c)
{
	if (c == '\'' || c == '\\')
		kp_compose_print(out, "\\%c", (int)c);
	else if (is_shown(bytes))
		kp_compose_span(out, bytes);
	else if (c == '\n')
		kp_compose_str(out, "\\n");
	else if (c <= 0xff)
		kp_compose_print(out, "\\x%02" PRIx32, c);
	else if (c <= 0xffff)
		kp_compose_print(out, "\\u%04" PRIx32, c);
	else
		kp_compose_print(out, "\\U%08" PRIx32, c);
}

static void put_string(struct kp_compose *out, struct kpackx_string s)
{
	struct kp_span rest = {(const uint8_t *)s.data, s.size};
	uint32_t c;
	size_t n;

	kp_compose_str(out, "'");
	for (; rest.size; rest = kp_span_tail(rest, n)) {
		n = kp_python_char(rest, &c);
		put_character(out, kp_span_head(rest, n), c);
	}
	kp_compose_str(out, "'");
}

/* Write a dotted name, escaped if it is not valid text. */
static void put_name(struct kp_compose *out, struct kpackx_string s)
{
	char *escaped =
		kp_text_escape_new((struct kp_span){(const uint8_t *)s.data, s.size});

	if (escaped)
		kp_compose_str(out, escaped);
	else
		out->no_memory = true;
	free(escaped);
}

static void put_class(struct kp_compose *out, const struct kpackx_constraint *c)
{
	put_name(out, c->module);
	kp_compose_str(out, ".");
	put_name(out, c->qualname);
}

/* ---- arrays ---- */

/* A keyword argument with a value for each dimension. */
struct property {
	const char *name;
	bool (*get)(const struct kpackx_axis *a, int64_t *value); /* false: none */
	/* True if VALUE may be written for a dimension without a stated value. */
	bool (*implied)(const struct kpackx_axis *a, int64_t value);
	const char *none; /* text for a dimension without a value */
	bool scalar;      /* one value may stand for all dimensions */
};

static bool shape_constant(const struct kpackx_axis *a, int64_t *value)
{
	*value = a->shape_constant;
	return a->has_shape_constant;
}

static bool shape_divisor(const struct kpackx_axis *a, int64_t *value)
{
	*value = a->shape_divisible_by;
	return *value > 1;
}

static bool shape_divides(const struct kpackx_axis *a, int64_t value)
{
	return a->has_shape_constant && a->shape_constant % value == 0;
}

static bool stride_constant(const struct kpackx_axis *a, int64_t *value)
{
	*value = a->stride_constant;
	return a->has_stride_constant;
}

static bool stride_divisor(const struct kpackx_axis *a, int64_t *value)
{
	*value = a->stride_divisible_by;
	return *value > 1;
}

static bool stride_divides(const struct kpackx_axis *a, int64_t value)
{
	return a->has_stride_constant && a->stride_constant % value == 0;
}

static bool lower_bound(const struct kpackx_axis *a, int64_t *value)
{
	*value = a->stride_lower_bound;
	return a->has_stride_lower_bound;
}

static bool above_bound(const struct kpackx_axis *a, int64_t value)
{
	return a->has_stride_constant && a->stride_constant >= value;
}

static const struct property bound = {"stride_lower_bound_incl", lower_bound, above_bound,
				      "None", true};

/* Left out if no dimension has a value. */
static const struct property optional[] = {
	{"stride_constant", stride_constant, NULL, "None", false},
	{"shape_constant", shape_constant, NULL, "None", false},
	{"stride_divisible_by", stride_divisor, stride_divides, "1", true},
	{"shape_divisible_by", shape_divisor, shape_divides, "1", true},
};

/*
 * True if VALUE can stand for all dimensions: cuTile drops it where a constant implies
 * it.
 */
static bool is_uniform(const struct kpackx_constraint *c, const struct property *p,
		       int64_t value)
{
	int64_t other;

	for (uint32_t i = 0; i < c->ndim; i++) {
		if (p->get(&c->axes[i], &other)) {
			if (other != value)
				return false;
		} else if (!p->implied || !p->implied(&c->axes[i], value)) {
			return false;
		}
	}
	return p->scalar;
}

static void put_sequence(struct kp_compose *out, const struct kpackx_constraint *c,
			 const struct property *p)
{
	int64_t value;

	for (uint32_t i = 0; i < c->ndim; i++) {
		kp_compose_str(out, i ? ", " : "[");
		if (p->get(&c->axes[i], &value))
			kp_compose_print(out, "%" PRId64, value);
		else
			kp_compose_str(out, p->none);
	}
	kp_compose_str(out, "]");
}

static bool find_stated(const struct kpackx_constraint *c, const struct property *p,
			int64_t *value)
{
	for (uint32_t i = 0; i < c->ndim; i++)
		if (p->get(&c->axes[i], value))
			return true;
	return false;
}

static void put_property(struct kp_compose *out, const struct kpackx_constraint *c,
			 const struct property *p)
{
	int64_t value;

	kp_compose_print(out, ", %s=", p->name);
	if (!find_stated(c, p, &value))
		kp_compose_str(out, p->none);
	else if (is_uniform(c, p, value))
		kp_compose_print(out, "%" PRId64, value);
	else
		put_sequence(out, c, p);
}

/* Write the alias groups with made-up names: a kernel's name does not keep theirs. */
static void put_groups(struct kp_compose *out, const struct kpackx_constraint *c)
{
	kp_compose_str(out, ", alias_groups=[");
	for (size_t i = 0; i < c->n_alias_groups; i++)
		kp_compose_print(out, "%s\"group%" PRIu32 "\"", i ? ", " : "",
				 c->alias_groups[i]);
	kp_compose_str(out, "]");
}

static void put_array(struct kp_compose *out, const struct kpackx_constraint *c)
{
	int64_t value;

	kp_compose_str(out, "ArrayConstraint(");
	put_dtype(out, c->dtype);
	kp_compose_print(out, ", %" PRIu32 ", index_dtype=", c->ndim);
	put_dtype(out, c->index_dtype);
	put_property(out, c, &bound);
	put_groups(out, c);
	kp_compose_str(out, ", may_alias_internally=");
	put_bool(out, c->may_alias);
	for (size_t i = 0; i < KP_COUNT(optional); i++)
		if (find_stated(c, &optional[i], &value))
			put_property(out, c, &optional[i]);
	if (c->base_addr_divisible_by > 1)
		kp_compose_print(out, ", base_addr_divisible_by=%" PRId64,
				 c->base_addr_divisible_by);
	kp_compose_str(out, ")");
}

/* ---- the rest ---- */

static void put_list(struct kp_compose *out, const struct kpackx_constraint *c)
{
	kp_compose_str(out, "ListConstraint(");
	put_array(out, c->items);
	put_groups(out, c);
	kp_compose_str(out, ", elements_may_alias=");
	put_bool(out, c->may_alias);
	kp_compose_str(out, ")");
}

static void put_items(struct kp_compose *out, const struct kpackx_constraint *c)
{
	kp_compose_str(out, "[");
	for (size_t i = 0; i < c->n_items; i++) {
		kp_compose_str(out, i ? ", " : "");
		put_constraint(out, &c->items[i]);
	}
	kp_compose_str(out, "])");
}

static void put_scalar(struct kp_compose *out, const struct kpackx_constraint *c)
{
	kp_compose_str(out, "ScalarConstraint(");
	put_dtype(out, c->dtype);
	kp_compose_str(out, ")");
}

static void put_tuple(struct kp_compose *out, const struct kpackx_constraint *c)
{
	kp_compose_str(out, "TupleConstraint(");
	put_items(out, c);
}

static void put_dataclass(struct kp_compose *out, const struct kpackx_constraint *c)
{
	kp_compose_str(out, "DataclassConstraint(");
	put_class(out, c);
	kp_compose_str(out, ", ");
	put_items(out, c);
}

static void put_const_bool(struct kp_compose *out, const struct kpackx_constraint *c)
{
	put_bool(out, c->bits);
}

static void put_const_int(struct kp_compose *out, const struct kpackx_constraint *c)
{
	kp_compose_span(out,
			(struct kp_span){(const uint8_t *)c->text.data, c->text.size});
}

static void put_const_float(struct kp_compose *out, const struct kpackx_constraint *c)
{
	put_float(out, c->bits);
}

static void put_const_none(struct kp_compose *out, const struct kpackx_constraint *c)
{
	(void)c;
	kp_compose_str(out, "None");
}

static void put_const_str(struct kp_compose *out, const struct kpackx_constraint *c)
{
	put_string(out, c->text);
}

static void put_const_enum(struct kp_compose *out, const struct kpackx_constraint *c)
{
	put_class(out, c);
	kp_compose_str(out, ".");
	put_name(out, c->text);
}

static void put_const_dtype(struct kp_compose *out, const struct kpackx_constraint *c)
{
	put_dtype(out, c->dtype);
}

static void put_constraint(struct kp_compose *out, const struct kpackx_constraint *c)
{
	static void (*const put[])(struct kp_compose *,
				   const struct kpackx_constraint *) = {
		[KPACKX_SCALAR] = put_scalar,
		[KPACKX_ARRAY] = put_array,
		[KPACKX_LIST] = put_list,
		[KPACKX_TUPLE] = put_tuple,
		[KPACKX_DATACLASS] = put_dataclass,
		[KPACKX_CONST_BOOL] = put_const_bool,
		[KPACKX_CONST_INT] = put_const_int,
		[KPACKX_CONST_FLOAT] = put_const_float,
		[KPACKX_CONST_NONE] = put_const_none,
		[KPACKX_CONST_STR] = put_const_str,
		[KPACKX_CONST_ENUM] = put_const_enum,
		[KPACKX_CONST_DTYPE] = put_const_dtype,
	};

	put[c->kind](out, c);
}

kpack_error_t kp_cutile_python(const struct kpackx_signature *s, const char *margin,
			       char **text, struct kpackx_error *why)
{
	struct kp_compose out = {0};
	bool lines = margin && s->n_parameters;

	kp_compose_str(&out, "KernelSignature([");
	for (size_t i = 0; i < s->n_parameters; i++) {
		if (lines)
			kp_compose_print(&out, "\n%s    ", margin);
		put_constraint(&out, &s->parameters[i]);
		if (lines || i + 1 < s->n_parameters)
			kp_compose_str(&out, lines ? "," : ", ");
	}
	if (lines)
		kp_compose_print(&out, "\n%s", margin);
	kp_compose_print(&out, "], CallingConvention.cutile_python_v%" PRIu32 "())",
			 s->convention);
	return kp_compose_take(&out, text, why);
}
