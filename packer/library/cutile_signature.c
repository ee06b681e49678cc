/* SPDX-License-Identifier: MIT */
#include "cutile_signature.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "core/format/cutile.h"
#include "core/base/json.h"
#include "core/base/bounds.h"
#include "core/base/text.h"

/*
 * Limit of bytes of signatures in the facts of one object: readers of metadata accept 1
 * MiB of JSON.  One signature takes about 1 KiB.
 */
#define FACTS_MAX (256 << 10)

bool signature_named(const char *kernel)
{
	return kp_cutile_named(kp_span_str(kernel));
}

/* ---- as data ---- */

static void put_constraint(struct facts *f, const struct kpackx_constraint *c);

/* Add text that may hold any bytes; they are escaped so that readers can print it. */
static void put_text(struct facts *f, const char *name, struct kpackx_string s)
{
	char *shown =
		kp_text_escape_new((struct kp_span){(const uint8_t *)s.data, s.size});

	if (!shown)
		xalloc_fail(0);
	facts_string(f, name, shown);
	free(shown);
}

static void put_dtype(struct facts *f, const char *name, kpackx_dtype_t dtype)
{
	facts_string(f, name, kp_cutile_dtype(dtype)->python);
}

static void put_groups(struct facts *f, const struct kpackx_constraint *c)
{
	uint64_t *ids = xcalloc(c->n_alias_groups, sizeof(*ids));

	for (size_t i = 0; i < c->n_alias_groups; i++)
		ids[i] = c->alias_groups[i];
	if (c->n_alias_groups)
		facts_numbers(f, "alias_groups", ids, c->n_alias_groups);
	free(ids);
}

static void put_axis(struct facts *f, const struct kpackx_axis *a)
{
	if (a->has_shape_constant)
		facts_signed(f, "shape_constant", a->shape_constant);
	if (a->shape_divisible_by > 1)
		facts_signed(f, "shape_divisible_by", a->shape_divisible_by);
	if (a->has_stride_constant)
		facts_signed(f, "stride_constant", a->stride_constant);
	if (a->stride_divisible_by > 1)
		facts_signed(f, "stride_divisible_by", a->stride_divisible_by);
	if (a->has_stride_lower_bound)
		facts_signed(f, "stride_lower_bound_incl", a->stride_lower_bound);
}

/* Add an array NAME of N maps; FILL makes the map of each item. */
static void put_maps(struct facts *f, const char *name, const void *items, size_t n,
		     size_t size, void (*fill)(struct facts *map, const void *item))
{
	struct facts *maps = xcalloc(n, sizeof(*maps));

	for (size_t i = 0; i < n; i++)
		fill(&maps[i], (const char *)items + i * size);
	facts_maps(f, name, maps, n);
	for (size_t i = 0; i < n; i++)
		facts_fini(&maps[i]);
	free(maps);
}

static void fill_axis(struct facts *map, const void *item)
{
	put_axis(map, item);
}

static void fill_constraint(struct facts *map, const void *item)
{
	put_constraint(map, item);
}

static void put_array(struct facts *f, const struct kpackx_constraint *c)
{
	put_dtype(f, "dtype", c->dtype);
	facts_number(f, "ndim", c->ndim);
	put_dtype(f, "index_dtype", c->index_dtype);
	put_maps(f, "axes", c->axes, c->ndim, sizeof(c->axes[0]), fill_axis);
	if (c->base_addr_divisible_by > 1)
		facts_signed(f, "base_addr_divisible_by", c->base_addr_divisible_by);
	put_groups(f, c);
	if (c->may_alias)
		facts_flag(f, "may_alias_internally", true);
}

static void put_list(struct facts *f, const struct kpackx_constraint *c)
{
	struct facts element = {0};

	put_constraint(&element, c->items);
	facts_map(f, "element", &element);
	facts_fini(&element);
	put_groups(f, c);
	if (c->may_alias)
		facts_flag(f, "elements_may_alias", true);
}

static void put_items(struct facts *f, const char *name,
		      const struct kpackx_constraint *c)
{
	put_maps(f, name, c->items, c->n_items, sizeof(c->items[0]), fill_constraint);
}

static void put_class(struct facts *f, const struct kpackx_constraint *c)
{
	put_text(f, "module", c->module);
	put_text(f, "qualname", c->qualname);
}

static void put_scalar(struct facts *f, const struct kpackx_constraint *c)
{
	put_dtype(f, "dtype", c->dtype);
}

static void put_tuple(struct facts *f, const struct kpackx_constraint *c)
{
	put_items(f, "items", c);
}

static void put_dataclass(struct facts *f, const struct kpackx_constraint *c)
{
	put_class(f, c);
	put_items(f, "fields", c);
}

static void put_bool(struct facts *f, const struct kpackx_constraint *c)
{
	facts_flag(f, "value", c->bits);
}

/* Integers beyond 64 bits are text: MessagePack and most JSON readers have none. */
static void put_int(struct facts *f, const struct kpackx_constraint *c)
{
	long long value;

	errno = 0;
	value = strtoll(c->text.data, NULL, 10);
	if (errno)
		put_text(f, "value", c->text);
	else
		facts_signed(f, "value", value);
}

/* Add the bits too: JSON has no numbers for NaN and infinities. */
static void put_float(struct facts *f, const struct kpackx_constraint *c)
{
	char bits[17];
	double value;

	snprintf(bits, sizeof(bits), "%016llx", (unsigned long long)c->bits);
	facts_string(f, "bits", bits);
	memcpy(&value, &c->bits, sizeof(value));
	if (isfinite(value))
		facts_real(f, "value", value);
}

static void put_none(struct facts *f, const struct kpackx_constraint *c)
{
	(void)f;
	(void)c;
}

static void put_str(struct facts *f, const struct kpackx_constraint *c)
{
	put_text(f, "value", c->text);
}

static void put_enum(struct facts *f, const struct kpackx_constraint *c)
{
	put_class(f, c);
	put_text(f, "value", c->text);
}

static void put_type(struct facts *f, const struct kpackx_constraint *c)
{
	put_dtype(f, "value", c->dtype);
}

static const struct {
	const char *kind;
	const char *type; /* for a constant */
	void (*put)(struct facts *f, const struct kpackx_constraint *c);
} kinds[] = {
	[KPACKX_SCALAR] = {"scalar", NULL, put_scalar},
	[KPACKX_ARRAY] = {"array", NULL, put_array},
	[KPACKX_LIST] = {"list", NULL, put_list},
	[KPACKX_TUPLE] = {"tuple", NULL, put_tuple},
	[KPACKX_DATACLASS] = {"dataclass", NULL, put_dataclass},
	[KPACKX_CONST_BOOL] = {"constant", "bool", put_bool},
	[KPACKX_CONST_INT] = {"constant", "int", put_int},
	[KPACKX_CONST_FLOAT] = {"constant", "float", put_float},
	[KPACKX_CONST_NONE] = {"constant", "none", put_none},
	[KPACKX_CONST_STR] = {"constant", "str", put_str},
	[KPACKX_CONST_ENUM] = {"constant", "enum", put_enum},
	[KPACKX_CONST_DTYPE] = {"constant", "dtype", put_type},
};

static void put_constraint(struct facts *f, const struct kpackx_constraint *c)
{
	facts_string(f, "kind", kinds[c->kind].kind);
	if (kinds[c->kind].type)
		facts_string(f, "type", kinds[c->kind].type);
	kinds[c->kind].put(f, c);
}

/* Name the words of each element of a list's buffer: a pointer, shapes, strides. */
static void put_words(struct facts *f, uint32_t words)
{
	struct kp_span texts[1 + 2 * KP_CUTILE_NDIM_MAX];
	char names[1 + 2 * KP_CUTILE_NDIM_MAX][20] = {"pointer"};
	uint32_t ndim = words / 2;

	for (uint32_t i = 0; i < ndim; i++) {
		snprintf(names[1 + i], sizeof(names[0]), "shape[%u]", i);
		snprintf(names[1 + ndim + i], sizeof(names[0]), "stride[%u]", i);
	}
	for (uint32_t i = 0; i < words; i++)
		texts[i] = kp_span_str(names[i]);
	facts_texts(f, "words", texts, words);
}

static void fill_argument(struct facts *map, const void *item)
{
	const struct kpackx_argument *a = item;

	facts_string(map, "name", a->name);
	facts_string(map, "type", a->type);
	facts_number(map, "bytes", a->size);
	facts_string(map, "meaning", a->meaning);
	facts_number(map, "parameter", a->parameter);
	if (a->words)
		put_words(map, a->words);
}

static void put_signature(struct facts *f, const struct kpackx_signature *s)
{
	char convention[32], *python = NULL;

	snprintf(convention, sizeof(convention), "cutile_python_v%u", s->convention);
	put_text(f, "function", s->function);
	facts_string(f, "convention", convention);
	if (kp_cutile_python(s, NULL, &python, NULL))
		xalloc_fail(0);
	facts_string(f, "python", python);
	free(python);
	put_maps(f, "parameters", s->parameters, s->n_parameters,
		 sizeof(s->parameters[0]), fill_constraint);
	put_maps(f, "arguments", s->arguments, s->n_arguments, sizeof(s->arguments[0]),
		 fill_argument);
}

/* Describe the signature in KERNEL's name, or say why it is invalid. */
static struct facts describe_kernel(const char *kernel)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};
	struct facts f = {0};

	put_text(&f, "symbol", (struct kpackx_string){kernel, strlen(kernel)});
	switch (kpackx_demangle(kernel, &s, &why)) {
	case KPACK_SUCCESS:
		put_signature(&f, s);
		break;
	case KPACK_ERROR_OUT_OF_MEMORY:
		xalloc_fail(0);
	default:
		facts_string(&f, "error", why.text);
	}
	kpackx_signature_free(s);
	return f;
}

/* ---- in archives ---- */

/* The signatures of an object; LEFT_OUT counts those beyond the limit. */
struct list {
	struct facts *maps;
	size_t count, size, left_out;
};

static void add_kernel(struct list *list, const char *kernel)
{
	struct facts *map = &list->maps[list->count];

	if (!signature_named(kernel))
		return;
	*map = describe_kernel(kernel);
	if (list->size + map->size > FACTS_MAX) {
		facts_fini(map);
		list->left_out++;
		return;
	}
	list->size += map->size;
	list->count++;
}

void signature_facts(struct facts *f, const struct kp_object *object)
{
	struct list list = {.maps = xcalloc(object->n_kernels, sizeof(*list.maps))};

	for (size_t i = 0; i < object->n_kernels; i++)
		add_kernel(&list, object->kernels[i].name);
	if (list.count)
		facts_maps(f, "signatures", list.maps, list.count);
	if (list.left_out)
		facts_number(f, "signatures_left_out", list.left_out);
	for (size_t i = 0; i < list.count; i++)
		facts_fini(&list.maps[i]);
	free(list.maps);
}

/* ---- for people ---- */

static void print_argument(const char *margin, const struct kpackx_argument *a)
{
	const char *space = a->type[strlen(a->type) - 1] == '*' ? "" : " ";

	printf("%s  %s%s%s: %s", margin, a->type, space, a->name, a->meaning);
	if (a->words)
		printf(" (%u word%s each)", a->words, a->words > 1 ? "s" : "");
	putchar('\n');
}

static void print_valid(const struct kpackx_signature *s, const char *margin)
{
	char *python = NULL;

	if (kp_cutile_python(s, margin, &python, NULL))
		xalloc_fail(0);
	printf("%s%s\n", margin, python); /* core has escaped strings in it */
	free(python);
	printf("%slaunch arguments:%s\n", margin, s->n_arguments ? "" : " none");
	for (size_t i = 0; i < s->n_arguments; i++)
		print_argument(margin, &s->arguments[i]);
}

void signature_print(const char *kernel, const char *margin)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};

	if (!signature_named(kernel))
		return;
	if (kpackx_demangle(kernel, &s, &why) == KPACK_SUCCESS) {
		print_valid(s, margin);
	} else {
		printf("%sno cuTile signature: ", margin);
		report_message(why.text);
		putchar('\n');
	}
	kpackx_signature_free(s);
}

static json_t *too_large(const char *kernel)
{
	json_t *map = json_object();

	json_object_set_new(map, "symbol", report_json_text(kernel));
	json_object_set_new(map, "error",
			    json_sprintf("this object's signatures take more than %d MiB",
					 SIGNATURE_JSON_MAX >> 20));
	return map;
}

/* Convert the facts from MessagePack to JSON, by core's conversion. */
static json_t *facts_to_json(const struct facts *f, const char *kernel, size_t *left)
{
	struct facts outer = {0};
	struct kp_json text;
	struct kp_span json;
	struct kp_mp cursor;
	json_t *out = NULL;

	facts_map(&outer, "signature", f);
	cursor = kp_mp_over((struct kp_span){outer.pairs, outer.size});
	kp_mp_skip(&cursor); /* the name of the pair */
	kp_json_init(&text, *left);
	kp_json_value(&text, &cursor);
	if (kp_json_finish(&text, &json, NULL) == KPACK_SUCCESS) {
		*left -= json.size;
		out = json_loadb((const char *)json.data, json.size, JSON_ALLOW_NUL,
				 NULL);
	} else if (text.written == text.limit) {
		*left = 0;
		out = too_large(kernel);
	}
	kp_json_fini(&text);
	facts_fini(&outer);
	return out;
}

json_t *signature_json(const char *kernel, size_t *left)
{
	struct facts f;
	json_t *out;

	if (!signature_named(kernel))
		return NULL;
	if (*left == 0)
		return too_large(kernel);
	f = describe_kernel(kernel);
	out = facts_to_json(&f, kernel, left);
	facts_fini(&f);
	return out;
}
