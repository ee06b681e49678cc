/* SPDX-License-Identifier: MIT */
#include "core/cutile/cutile.h"
#include "tests/unit/unit.h"
#include <stdio.h>

static void check_mangled(const struct kpackx_constraint *c, unsigned convention,
			  const char *want)
{
	struct kpackx_signature s = {.function = {"f", 1},
				     .convention = convention,
				     .parameters = c,
				     .n_parameters = 1};
	struct kpackx_error why = {0};
	char *name = NULL;

	if (kpackx_mangle(&s, &name, &why) != KPACK_SUCCESS) {
		assert_string_equal(why.text, want);
		assert_int_equal(why.code, KPACK_ERROR_INVALID_ARGUMENT);
		assert_null(name);
		return;
	}
	assert_string_equal(name, want);
	kpackx_symbol_free(name);
}

/* A zeroed constraint plus the known facts is complete; redundant facts are left out. */
TEST(test_mangle_arrays)
{
	struct kpackx_axis axes[3] = {{0}};
	struct kpackx_constraint c = {.kind = KPACKX_ARRAY,
				      .dtype = KPACKX_DTYPE_FLOAT32,
				      .ndim = 3,
				      .axes = axes};

	check_mangled(&c, 1, "f_Kt1_A3f32");
	axes[0].has_shape_constant = true;
	axes[0].shape_constant = 16;
	axes[0].shape_divisible_by = 16;
	axes[1].stride_divisible_by = 1;
	axes[2].has_stride_constant = axes[2].has_stride_lower_bound = true;
	axes[2].stride_constant = 8;
	axes[2].stride_divisible_by = 8;
	axes[2].stride_lower_bound = 8;
	c.base_addr_divisible_by = 1;
	check_mangled(&c, 2, "f_Kt2_A3f32_1s16_4t8");
	check_mangled(
		&c, 1,
		"parameter 0: dimension 0: static shapes need calling convention 2");
	axes[0].shape_divisible_by = 5;
	check_mangled(&c, 2, "parameter 0: dimension 0: shape 16 is not divisible by 5");
	axes[0].shape_divisible_by = -1;
	check_mangled(&c, 2, "parameter 0: dimension 0: a divisor is below 0");
	axes[0].shape_divisible_by = 0;
	axes[0].shape_constant = -1;
	check_mangled(&c, 2, "parameter 0: dimension 0: shape -1 is below 0");
	axes[0].shape_constant = 0;
	axes[2].stride_lower_bound = 9;
	check_mangled(&c, 2, "parameter 0: dimension 2: stride 8 is below its bound 9");
	axes[2].stride_divisible_by = 16;
	check_mangled(&c, 2, "parameter 0: dimension 2: stride 8 is not divisible by 16");
	axes[2] = (struct kpackx_axis){.has_stride_lower_bound = true,
				       .stride_lower_bound = INT64_MIN};
	check_mangled(&c, 2, "f_Kt2_A3f32_1s0_4l_9223372036854775808");
	axes[1].reserved[1] = 1;
	check_mangled(&c, 2, "parameter 0: dimension 1: reserved is not 0");
}

TEST(test_mangle_refuses)
{
	static const uint32_t late[] = {1}, twice[] = {0, 0};
	static const struct kpackx_constraint scalar = {.kind = KPACKX_SCALAR,
							.dtype = KPACKX_DTYPE_INT8};
	const struct {
		struct kpackx_constraint c;
		const char *why;
	} wrong[] = {
		{{0}, "kind 0 is not known"},
		{{.kind = (kpackx_constraint_kind_t)99}, "kind 99 is not known"},
		{{.kind = KPACKX_SCALAR}, "dtype 0 is not known"},
		{{.kind = KPACKX_SCALAR,
		  .dtype = KPACKX_DTYPE_INT8,
		  .reserved = {0, 0, 1}},
		 "reserved is not 0"},
		{{.kind = KPACKX_ARRAY, .ndim = 65}, "65 dimensions, the limit is 64"},
		{{.kind = KPACKX_ARRAY, .ndim = 1}, "axes is NULL"},
		{{.kind = KPACKX_ARRAY, .base_addr_divisible_by = -2},
		 "the base address's divisor is below 0"},
		{{.kind = KPACKX_ARRAY,
		  .dtype = KPACKX_DTYPE_INT8,
		  .index_dtype = KPACKX_DTYPE_INT8},
		 "index_dtype 6 is not int32, uint32 or int64"},
		{{.kind = KPACKX_ARRAY,
		  .dtype = KPACKX_DTYPE_INT8,
		  .alias_groups = late,
		  .n_alias_groups = 1},
		 "alias group 1 is used before group 0"},
		{{.kind = KPACKX_ARRAY,
		  .dtype = KPACKX_DTYPE_INT8,
		  .alias_groups = twice,
		  .n_alias_groups = 2},
		 "alias group 0 does not follow group 0"},
		{{.kind = KPACKX_LIST, .n_alias_groups = 1}, "alias_groups is NULL"},
		{{.kind = KPACKX_LIST}, "a list has one item, an array"},
		{{.kind = KPACKX_LIST, .items = &scalar, .n_items = 1},
		 "a list has one item, an array"},
		{{.kind = KPACKX_TUPLE, .n_items = 1}, "items are NULL"},
		{{.kind = KPACKX_CONST_BOOL, .bits = 2}, "bool 2 is not 0 or 1"},
		{{.kind = KPACKX_CONST_INT}, "text of an integer is NULL"},
		{{.kind = KPACKX_CONST_INT, .text = {"", 0}},
		 "an integer has no digits, or a zero in front"},
		{{.kind = KPACKX_CONST_INT, .text = {"-0", 2}},
		 "an integer has no digits, or a zero in front"},
		{{.kind = KPACKX_CONST_INT, .text = {"-1x", 3}},
		 "byte 2 of an integer is no digit"},
		{{.kind = KPACKX_CONST_STR, .text = {NULL, 1}}, "text is NULL"},
		{{.kind = KPACKX_CONST_STR, .text = {"a\xff", 2}},
		 "text is no UTF-8 at byte 1"},
		{{.kind = KPACKX_DATACLASS, .module = {"\xed\xa0", 2}},
		 "module is no UTF-8 at byte 0"},
		{{.kind = KPACKX_CONST_ENUM, .qualname = {NULL, 70000}},
		 "qualname is NULL"},
		{{.kind = KPACKX_CONST_ENUM, .qualname = {"", 70000}},
		 "qualname has 70000 bytes, the limit is 65536"},
	};
	char text[256];

	for (size_t i = 0; i < COUNT(wrong); i++) {
		snprintf(text, sizeof(text), "parameter 0: %s", wrong[i].why);
		check_mangled(&wrong[i].c, 3, text);
	}
}

TEST(test_mangle_signature)
{
	struct kpackx_signature s = {.convention = 1, .n_parameters = 1};
	struct kpackx_error why = {0};
	char *name = NULL;

	assert_int_equal(kpackx_mangle(&s, &name, &why), KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(why.text, "parameters are NULL");
	s.n_parameters = 0;
	s.function = (struct kpackx_string){"a\0b", 3};
	assert_int_equal(kpackx_mangle(&s, &name, &why), KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(why.text, "function contains a NUL byte");
	s.function = (struct kpackx_string){NULL, 3};
	assert_int_equal(kpackx_mangle(&s, &name, &why), KPACK_ERROR_INVALID_ARGUMENT);
	s.function = (struct kpackx_string){NULL, 0};
	s.reserved[3] = 1;
	assert_int_equal(kpackx_mangle(&s, &name, &why), KPACK_ERROR_INVALID_ARGUMENT);
	s.reserved[3] = 0;
	assert_int_equal(kpackx_mangle(&s, &name, &why), KPACK_SUCCESS);
	assert_string_equal(name, "_Kt1");
	kpackx_symbol_free(name);
}

/*
 * A tree that contains itself stops at the depth limit, or else at the limit on the
 * name's size.
 */
TEST(test_mangle_cycles)
{
	struct kpackx_constraint c = {.kind = KPACKX_TUPLE, .n_items = 1};

	c.items = &c;
	for (size_t n = 1; n <= 1000; n *= 1000) {
		struct kpackx_signature s = {
			.convention = 2, .parameters = &c, .n_parameters = 1};
		struct kpackx_error why = {0};
		char *name = NULL;

		c.n_items = n;
		assert_int_equal(kpackx_mangle(&s, &name, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_has(why.text, ": nested deeper than 32");
	}
}

/* ---- random signatures ---- */

enum { SIGNATURES = 20000, ITEMS_MAX = 4 };

struct random {
	uint64_t state;
	struct kp_arena arena;
	uint32_t convention, groups;
};

/* A pseudo-random number below N; the same sequence each time. */
static uint32_t below(struct random *r, uint32_t n)
{
	r->state =
		r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(r->state >> 33) % n;
}

static int64_t any_number(struct random *r)
{
	static const int64_t special[] = {0, 1, -1, 16, INT64_MAX, INT64_MIN};

	return below(r, 2) ? special[below(r, COUNT(special))]
			   : (int64_t)below(r, 5000) - 9;
}

static struct kpackx_string any_string(struct random *r)
{
	static const char *const texts[] = {"",
					    "K",
					    "a_b",
					    "x.y<z>",
					    "\xc3\xa9",
					    "\xf0\x9f\xa4\x94",
					    "\xed\xa0\x80",
					    "__z"};
	const char *text = texts[below(r, COUNT(texts))];

	return (struct kpackx_string){text, strlen(text)};
}

static kpackx_dtype_t any_dtype(struct random *r)
{
	return (kpackx_dtype_t)(1 + below(r, KPACKX_DTYPE_FLOAT8_E8M0FNU));
}

static void any_groups(struct random *r, struct kpackx_constraint *c)
{
	uint32_t *ids = kp_arena_alloc(&r->arena, (r->groups + 4) * sizeof(*ids));
	size_t n = 0;

	for (uint32_t id = 0; id < r->groups; id++)
		if (below(r, 3) == 0)
			ids[n++] = id;
	for (uint32_t fresh = below(r, 3); fresh > 1 && n < 3; fresh--)
		ids[n++] = r->groups++;
	c->alias_groups = n ? ids : NULL;
	c->n_alias_groups = n;
	c->may_alias = below(r, 2);
}

static void any_axis(struct random *r, struct kpackx_axis *a)
{
	a->has_shape_constant = r->convention > 1 && below(r, 4) == 0;
	if (a->has_shape_constant)
		a->shape_constant = below(r, 64);
	else if (below(r, 3) == 0)
		a->shape_divisible_by = 2 + below(r, 16);
	a->has_stride_constant = below(r, 3) == 0;
	if (a->has_stride_constant) {
		a->stride_constant = any_number(r);
		return;
	}
	a->has_stride_lower_bound = below(r, 2);
	if (a->has_stride_lower_bound)
		a->stride_lower_bound = any_number(r);
	if (below(r, 3) == 0)
		a->stride_divisible_by = 2 + below(r, 16);
}

static void any_array(struct random *r, struct kpackx_constraint *c)
{
	static const kpackx_dtype_t index[] = {KPACKX_DTYPE_INT32, KPACKX_DTYPE_UINT32,
					       KPACKX_DTYPE_INT64};
	uint32_t ndim = below(r, 20) ? below(r, 6) : 64;
	struct kpackx_axis *axes = kp_arena_alloc(&r->arena, ndim * sizeof(*axes));

	c->kind = KPACKX_ARRAY;
	c->dtype = any_dtype(r);
	c->index_dtype = index[below(r, COUNT(index))];
	c->ndim = ndim;
	c->axes = axes;
	for (uint32_t i = 0; i < ndim; i++)
		any_axis(r, &axes[i]);
	c->base_addr_divisible_by = below(r, 2) ? 0 : 2 + below(r, 100);
	any_groups(r, c);
}

static const struct kpackx_constraint *any_items(struct random *r, size_t n,
						 unsigned depth);

static void any_constraint(struct random *r, struct kpackx_constraint *c, unsigned depth)
{
	static const char *const integers[] = {"0", "-1",
					       "123456789012345678901234567890"};
	static const uint32_t kinds[] = {0, 6, 7, 12};
	struct kpackx_constraint *element;

	do {
		c->kind = (kpackx_constraint_kind_t)(1 + below(r, kinds[r->convention]));
		if (r->convention == 1 &&
		    c->kind > KPACKX_LIST) /* not a tuple or dataclass */
			c->kind = (kpackx_constraint_kind_t)(c->kind + 2);
		if (r->convention == 2 && c->kind > KPACKX_TUPLE)
			c->kind = (kpackx_constraint_kind_t)(c->kind + 1);
	} while (depth == 3 && (c->kind == KPACKX_TUPLE || c->kind == KPACKX_DATACLASS));
	switch (c->kind) {
	case KPACKX_ARRAY:
		any_array(r, c);
		break;
	case KPACKX_LIST:
		any_groups(r, c);
		c->items = element = kp_arena_alloc(&r->arena, sizeof(*element));
		c->n_items = 1;
		any_array(r, element);
		break;
	case KPACKX_DATACLASS:
	case KPACKX_TUPLE:
		c->n_items = below(r, ITEMS_MAX);
		c->items = any_items(r, c->n_items, depth + 1);
		break;
	case KPACKX_CONST_BOOL:
		c->bits = below(r, 2);
		break;
	case KPACKX_CONST_INT:
		c->text.data = integers[below(r, COUNT(integers))];
		c->text.size = strlen(c->text.data);
		break;
	case KPACKX_CONST_FLOAT:
		c->bits = (uint64_t)below(r, UINT32_MAX) << 33 | below(r, UINT32_MAX);
		break;
	case KPACKX_CONST_STR:
	case KPACKX_CONST_ENUM:
		c->text = any_string(r);
		break;
	default:
		break;
	}
	if (c->kind == KPACKX_SCALAR || c->kind == KPACKX_CONST_DTYPE)
		c->dtype = any_dtype(r);
	if (c->kind == KPACKX_DATACLASS || c->kind == KPACKX_CONST_ENUM) {
		c->module = any_string(r);
		c->qualname = any_string(r);
	}
}

static const struct kpackx_constraint *any_items(struct random *r, size_t n,
						 unsigned depth)
{
	struct kpackx_constraint *items = kp_arena_alloc(&r->arena, n * sizeof(*items));

	for (size_t i = 0; i < n; i++)
		any_constraint(r, &items[i], depth);
	return items;
}

static void check_string(struct kpackx_string a, struct kpackx_string b)
{
	assert_int_equal(a.size, b.size);
	if (a.size)
		assert_memory_equal(a.data, b.data, a.size);
}

static void check_items(const struct kpackx_constraint *a,
			const struct kpackx_constraint *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(a[i].kind, b[i].kind);
		assert_int_equal(a[i].dtype, b[i].dtype);
		assert_int_equal(a[i].index_dtype, b[i].index_dtype);
		assert_int_equal(a[i].ndim, b[i].ndim);
		if (a[i].ndim)
			assert_memory_equal(a[i].axes, b[i].axes,
					    a[i].ndim * sizeof(a[i].axes[0]));
		assert_int_equal(a[i].base_addr_divisible_by,
				 b[i].base_addr_divisible_by);
		assert_int_equal(a[i].n_alias_groups, b[i].n_alias_groups);
		if (a[i].n_alias_groups)
			assert_memory_equal(a[i].alias_groups, b[i].alias_groups,
					    4 * a[i].n_alias_groups);
		assert_int_equal(a[i].may_alias, b[i].may_alias);
		check_string(a[i].module, b[i].module);
		check_string(a[i].qualname, b[i].qualname);
		check_string(a[i].text, b[i].text);
		assert_int_equal(a[i].bits, b[i].bits);
		assert_int_equal(a[i].n_items, b[i].n_items);
		check_items(a[i].items, b[i].items, a[i].n_items);
	}
}

/* Demangling a mangled name gives the signature; mangling that gives the name. */
TEST(test_identity)
{
	struct random r = {.state = 1};

	for (unsigned i = 0; i < SIGNATURES; i++) {
		struct kpackx_signature s = {.function = any_string(&r)}, *read = NULL;
		struct kpackx_error why = {0};
		char *name = NULL, *again = NULL;

		r.groups = 0;
		s.convention = r.convention = 1 + below(&r, 3);
		s.n_parameters = below(&r, 6);
		s.parameters = any_items(&r, s.n_parameters, 0);
		assert_int_equal(kpackx_mangle(&s, &name, &why), KPACK_SUCCESS);
		if (kpackx_demangle(name, &read, &why) != KPACK_SUCCESS)
			fail_msg("%s: %s", name, why.text);
		assert_int_equal(read->convention, s.convention);
		check_string(read->function, s.function);
		assert_int_equal(read->n_parameters, s.n_parameters);
		check_items(read->parameters, s.parameters, s.n_parameters);
		assert_int_equal(kpackx_mangle(read, &again, &why), KPACK_SUCCESS);
		assert_string_equal(again, name);
		kpackx_symbol_free(name);
		kpackx_symbol_free(again);
		kpackx_signature_free(read);
		kp_arena_fini(&r.arena);
	}
}
