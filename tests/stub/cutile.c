/* SPDX-License-Identifier: MIT */
/*
 * Read names of cuTile's kernels from standard input, one per line, and print a Python
 * tuple for each: (function in hexadecimal, convention, parameters, arguments, rewritten
 * name, Python text), or the reason why it is rejected.
 * tests/integration/cutile_names.py reads the output.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/cutile/cutile.h"

static void put_constraint(const struct kpackx_constraint *c);

static void put_hex(struct kpackx_string s)
{
	putchar('\'');
	for (size_t i = 0; i < s.size; i++)
		printf("%02x", (unsigned char)s.data[i]);
	putchar('\'');
}

static const char *dtype(kpackx_dtype_t number)
{
	return kp_cutile_dtype(number)->python;
}

static void put_optional(bool has, int64_t value)
{
	if (has)
		printf("%" PRId64 ",", value);
	else
		printf("None,");
}

static void put_axis(const struct kpackx_axis *a)
{
	putchar('(');
	put_optional(a->has_shape_constant, a->shape_constant);
	printf("%" PRId64 ",", a->shape_divisible_by ? a->shape_divisible_by : 1);
	put_optional(a->has_stride_constant, a->stride_constant);
	printf("%" PRId64 ",", a->stride_divisible_by ? a->stride_divisible_by : 1);
	put_optional(a->has_stride_lower_bound, a->stride_lower_bound);
	printf("),");
}

static void put_groups(const struct kpackx_constraint *c)
{
	printf("[");
	for (size_t i = 0; i < c->n_alias_groups; i++)
		printf("%" PRIu32 ",", c->alias_groups[i]);
	printf("],%s", c->may_alias ? "True" : "False");
}

static void put_array(const struct kpackx_constraint *c)
{
	printf("'%s',%" PRIu32 ",'%s',[", dtype(c->dtype), c->ndim,
	       dtype(c->index_dtype));
	for (uint32_t i = 0; i < c->ndim; i++)
		put_axis(&c->axes[i]);
	printf("],%" PRId64 ",",
	       c->base_addr_divisible_by ? c->base_addr_divisible_by : 1);
	put_groups(c);
}

static void put_items(const struct kpackx_constraint *items, size_t n)
{
	printf("[");
	for (size_t i = 0; i < n; i++) {
		put_constraint(&items[i]);
		putchar(',');
	}
	printf("]");
}

static void put_class(const struct kpackx_constraint *c)
{
	put_hex(c->module);
	putchar(',');
	put_hex(c->qualname);
	putchar(',');
}

static void put_constraint(const struct kpackx_constraint *c)
{
	static const char *const kinds[] = {
		[KPACKX_SCALAR] = "scalar",   [KPACKX_ARRAY] = "array",
		[KPACKX_LIST] = "list",       [KPACKX_TUPLE] = "tuple",
		[KPACKX_DATACLASS] = "class", [KPACKX_CONST_BOOL] = "bool",
		[KPACKX_CONST_INT] = "int",   [KPACKX_CONST_FLOAT] = "float",
		[KPACKX_CONST_NONE] = "none", [KPACKX_CONST_STR] = "str",
		[KPACKX_CONST_ENUM] = "enum", [KPACKX_CONST_DTYPE] = "dtype",
	};

	printf("('%s',", kinds[c->kind]);
	if (c->kind == KPACKX_SCALAR || c->kind == KPACKX_CONST_DTYPE)
		printf("'%s',", dtype(c->dtype));
	if (c->kind == KPACKX_ARRAY)
		put_array(c);
	if (c->kind == KPACKX_LIST)
		put_groups(c), putchar(',');
	if (c->kind == KPACKX_DATACLASS || c->kind == KPACKX_CONST_ENUM)
		put_class(c);
	if (c->kind == KPACKX_LIST || c->kind == KPACKX_TUPLE ||
	    c->kind == KPACKX_DATACLASS)
		put_items(c->items, c->n_items);
	if (c->kind == KPACKX_CONST_BOOL || c->kind == KPACKX_CONST_FLOAT)
		printf("0x%" PRIx64 ",", c->bits);
	if (c->kind == KPACKX_CONST_INT)
		printf("%s,", c->text.data);
	if (c->kind == KPACKX_CONST_STR || c->kind == KPACKX_CONST_ENUM)
		put_hex(c->text);
	putchar(')');
}

static void put_signature(const struct kpackx_signature *s)
{
	char *again = NULL, *python = NULL;

	if (kpackx_mangle(s, &again, NULL) || kp_cutile_python(s, NULL, &python, NULL))
		abort();
	putchar('(');
	put_hex(s->function);
	printf(",%" PRIu32 ",", s->convention);
	put_items(s->parameters, s->n_parameters);
	printf(",[");
	for (size_t i = 0; i < s->n_arguments; i++)
		printf("('%s','%s',%" PRIu32 ",%" PRIu32 ",%" PRIu32 "),",
		       s->arguments[i].name, s->arguments[i].type, s->arguments[i].size,
		       s->arguments[i].parameter, s->arguments[i].words);
	printf("],");
	put_hex((struct kpackx_string){again, strlen(again)});
	putchar(',');
	put_hex((struct kpackx_string){python, strlen(python)});
	printf(")\n");
	kpackx_symbol_free(again);
	free(python);
}

int main(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct kpackx_signature *s = NULL;
		struct kpackx_error why = {0};

		line[n - 1] = '\0';
		if (kpackx_demangle(line, &s, &why) == KPACK_SUCCESS)
			put_signature(s);
		else
			printf("%s\n", why.text);
		kpackx_signature_free(s);
	}
	free(line);
	return 0;
}
