/* SPDX-License-Identifier: MIT */
/* Reads the names of cuTile kernels; array.c reads arrays. */
#include <stdlib.h>
#include "cutile_reader.h"
#include "core/base/bounds.h"
#include "core/base/alloc.h"

static kpack_error_t read_constraint(struct kp_cutile_reader *p,
				     struct kpackx_constraint *c);

static kpack_error_t count_arguments(struct kp_cutile_reader *p, size_t at,
				     const struct kpackx_constraint *c)
{
	p->arguments += kp_cutile_argument_count(c);
	if (p->arguments > KP_CUTILE_ARGUMENTS_MAX)
		return kp_cutile_fail(p, at, "more than %d launch arguments",
				      KP_CUTILE_ARGUMENTS_MAX);
	return KPACK_SUCCESS;
}

/* ---- constraints with items ---- */

static kpack_error_t read_list(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	struct kpackx_constraint *element = kp_arena_alloc(p->arena, sizeof(*element));

	if (!element)
		return kp_cutile_no_memory(p);
	KP_TRY(kp_cutile_read_groups(p, c));
	c->may_alias = kp_cutile_take(p, 'i');
	if (!kp_cutile_take(p, 'A'))
		return kp_cutile_unexpected(p, p->pos, "the array of a list (A)");
	element->kind = KPACKX_ARRAY;
	c->items = element;
	c->n_items = 1;
	return kp_cutile_read_array(p, element);
}

/* Read one more constraint onto the stack. */
static kpack_error_t push_constraint(struct kp_cutile_reader *p)
{
	struct kpackx_constraint c = {0};

	KP_TRY(read_constraint(p, &c));
	if (!kp_grow(&p->stack, p->n_stack, &p->stack_cap, sizeof(c)))
		return kp_cutile_no_memory(p);
	p->stack[p->n_stack++] = c;
	return KPACK_SUCCESS;
}

/* Take the newest N constraints off the stack. */
static kpack_error_t pop_constraints(struct kp_cutile_reader *p, size_t n,
				     const struct kpackx_constraint **out)
{
	struct kpackx_constraint *items = kp_arena_alloc(p->arena, n * sizeof(*items));

	if (!items)
		return kp_cutile_no_memory(p);
	p->n_stack -= n;
	if (n)
		memcpy(items, p->stack + p->n_stack, n * sizeof(*items));
	*out = items;
	return KPACK_SUCCESS;
}

/* Read a count and as many constraints. */
static kpack_error_t read_tuple(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	uint64_t count;

	if (p->depth == KP_CUTILE_DEPTH_MAX)
		return kp_cutile_fail(p, p->pos, "nested deeper than %d",
				      KP_CUTILE_DEPTH_MAX);
	KP_TRY(kp_cutile_read_number(p, 10, p->name.size, "a count of items", &count));
	p->depth++;
	for (uint64_t i = 0; i < count; i++)
		KP_TRY(push_constraint(p));
	p->depth--;
	c->n_items = (size_t)count;
	return pop_constraints(p, c->n_items, &c->items);
}

static kpack_error_t read_class(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	KP_TRY(kp_cutile_read_string(p, &c->module));
	return kp_cutile_read_string(p, &c->qualname);
}

static kpack_error_t read_dataclass(struct kp_cutile_reader *p,
				    struct kpackx_constraint *c)
{
	KP_TRY(read_class(p, c));
	return read_tuple(p, c);
}

/* ---- scalars and constants ---- */

static kpack_error_t read_scalar(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	return kp_cutile_read_dtype(p, &c->dtype);
}

static kpack_error_t read_bool(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	if (kp_cutile_take(p, '1'))
		c->bits = 1;
	else if (!kp_cutile_take(p, '0'))
		return kp_cutile_unexpected(p, p->pos, "0 or 1");
	return KPACK_SUCCESS;
}

/* Read a number of any size, which is kept as its digits. */
static kpack_error_t read_int(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	size_t at = p->pos;
	bool negative = kp_cutile_take(p, '_');
	struct kp_span digits;
	char *text;

	KP_TRY(kp_cutile_read_digits(p, kp_cutile_is_digit, "an integer", &digits));
	if (negative && digits.data[0] == '0')
		return kp_cutile_fail(p, at, "an integer is zero with a sign");
	text = kp_arena_alloc(p->arena, digits.size + 2);
	if (!text)
		return kp_cutile_no_memory(p);
	text[0] = '-';
	memcpy(text + negative, digits.data, digits.size);
	c->text = (struct kpackx_string){text, digits.size + negative};
	return KPACK_SUCCESS;
}

static kpack_error_t read_float(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	return kp_cutile_read_hex(p, 16, &c->bits);
}

static kpack_error_t read_none(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	(void)p;
	(void)c;
	return KPACK_SUCCESS;
}

static kpack_error_t read_str(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	return kp_cutile_read_string(p, &c->text);
}

static kpack_error_t read_enum(struct kp_cutile_reader *p, struct kpackx_constraint *c)
{
	KP_TRY(read_class(p, c));
	return kp_cutile_read_string(p, &c->text);
}

static const struct {
	const char *code;
	uint32_t convention; /* the first one with this kind */
	kpackx_constraint_kind_t kind;
	kpack_error_t (*read)(struct kp_cutile_reader *p, struct kpackx_constraint *c);
} kinds[] = {
	{"S", 1, KPACKX_SCALAR, read_scalar},
	{"A", 1, KPACKX_ARRAY, kp_cutile_read_array},
	{"L", 1, KPACKX_LIST, read_list},
	{"B", 1, KPACKX_CONST_BOOL, read_bool},
	{"I", 1, KPACKX_CONST_INT, read_int},
	{"F", 1, KPACKX_CONST_FLOAT, read_float},
	{"T", 2, KPACKX_TUPLE, read_tuple},
	{"D", 3, KPACKX_DATACLASS, read_dataclass},
	{"Cn_", 3, KPACKX_CONST_NONE, read_none},
	{"Cs_", 3, KPACKX_CONST_STR, read_str},
	{"Ce_", 3, KPACKX_CONST_ENUM, read_enum},
	{"Cd_", 3, KPACKX_CONST_DTYPE, read_scalar},
};

static kpack_error_t read_constraint(struct kp_cutile_reader *p,
				     struct kpackx_constraint *c)
{
	const size_t at = p->pos;
	const struct kp_span rest = kp_span_tail(p->name, at);

	for (size_t i = 0; i < KP_COUNT(kinds); i++) {
		const char *code = kinds[i].code;

		if (!kp_span_starts(rest, code, strlen(code)))
			continue;
		if (p->convention < kinds[i].convention)
			return kp_cutile_fail(p, at,
					      "%s needs calling convention %u, not %u",
					      code, kinds[i].convention, p->convention);
		p->pos += strlen(code);
		c->kind = kinds[i].kind;
		KP_TRY(kinds[i].read(p, c));
		return count_arguments(p, at, c);
	}
	return kp_cutile_unexpected(p, at, "a parameter (S A L T D B I F C)");
}

/* ---- the whole name ---- */

/* Return the offset after the last "_K"; 0: none. */
static size_t find_convention(struct kp_span name)
{
	for (size_t i = name.size; i-- > 1;)
		if (name.data[i] == 'K' && name.data[i - 1] == '_')
			return i + 1;
	return 0;
}

static kpack_error_t read_convention(struct kp_cutile_reader *p)
{
	size_t at = p->pos;
	uint64_t number;

	if (!kp_cutile_take(p, 't'))
		return kp_cutile_unexpected(p, at, "a calling convention (t1 t2 t3)");
	KP_TRY(kp_cutile_read_number(p, 10, UINT32_MAX, "a calling convention", &number));
	if (number < 1 || number > KP_CUTILE_CONVENTION_MAX)
		return kp_fail(p->why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "offset %zu: calling convention t%llu is not known, only "
			       "t1 to t%d",
			       at, (unsigned long long)number, KP_CUTILE_CONVENTION_MAX);
	p->convention = (uint32_t)number;
	return KPACK_SUCCESS;
}

static kpack_error_t read_parameters(struct kp_cutile_reader *p)
{
	while (p->pos < p->name.size) {
		if (!kp_cutile_take(p, '_'))
			return kp_cutile_unexpected(p, p->pos, "_ or the end");
		KP_TRY(push_constraint(p));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_name(struct kp_cutile_reader *p, struct kpackx_signature *out)
{
	struct kp_span function;

	p->pos = find_convention(p->name);
	if (p->pos == 0)
		return kp_cutile_fail(p, p->name.size,
				      "no _K: not the name of a cuTile kernel");
	function = kp_span_head(p->name, p->pos - 2);
	KP_TRY(read_convention(p));
	KP_TRY(read_parameters(p));
	out->convention = p->convention;
	out->n_parameters = p->n_stack;
	out->function =
		(struct kpackx_string){kp_arena_copy(p->arena, function), function.size};
	if (!out->function.data)
		return kp_cutile_no_memory(p);
	return pop_constraints(p, p->n_stack, &out->parameters);
}

static kpack_error_t check_bytes(struct kp_span name, struct kpackx_error *why)
{
	const uint8_t *nul;

	if (name.size > KP_CUTILE_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "offset %d: the name has %zu bytes, the limit is %d",
			       KP_CUTILE_NAME_MAX, name.size, KP_CUTILE_NAME_MAX);
	nul = name.size ? memchr(name.data, '\0', name.size) : NULL;
	if (nul)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "offset %zu: a NUL byte",
			       (size_t)(nul - name.data));
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_parse(struct kp_span name, struct kp_arena *arena,
			      struct kpackx_signature *out, struct kpackx_error *why)
{
	struct kp_cutile_reader p = {.name = name, .arena = arena, .why = why};
	kpack_error_t err = check_bytes(name, why);

	if (err)
		return err;
	p.scratch = malloc(name.size + 1);
	err = p.scratch ? read_name(&p, out) : kp_cutile_no_memory(&p);
	free(p.scratch);
	free(p.stack);
	free(p.ids);
	return err;
}
