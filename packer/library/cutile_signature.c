/* SPDX-License-Identifier: MIT */
/*
 * The Python text leaves out what is the default there.  It assumes cuda.tile imported as
 * ct, and the names of cuda.tile.compilation; pasted into a program, it makes cuTile export
 * a kernel of the same name.  Names may come from any file: what they contain is escaped.
 */
#include "cutile_signature.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/format/cutile.h"
#include "packer/cli/xalloc.h"

/*
 * Limit of bytes of signatures in the facts of one object: readers of metadata accept 1
 * MiB of JSON.  One signature takes about 1 KiB.
 */
#define FACTS_MAX (256 << 10)

static struct kp_span string_span(struct kpackx_string s)
{
	return (struct kp_span){(const uint8_t *)s.data, s.size};
}

/* ---- in Python ---- */

/*
 * A float as repr() writes it: the fewest digits that read back as the same number (17 always
 * do), with an exponent outside of 1e-4 to 1e16.  Of NaNs every bit counts, as another NaN is
 * another constant in the kernel's name.
 */
static void put_float(struct kp_compose *out, uint64_t bits)
{
	const uint64_t sign = UINT64_C(1) << 63, infinity = UINT64_C(0x7ff) << 52;
	uint64_t magnitude = bits & ~sign;
	int exponent, behind = -1; /* digits behind the first one */
	char text[40];
	double value;

	memcpy(&value, &magnitude, sizeof(value));
	if (magnitude > infinity && bits != (UINT64_C(0xfff) << 51)) {
		kp_compose_print(out,
				 "struct.unpack(\">d\", bytes.fromhex(\"%016" PRIx64
				 "\"))[0]",
				 bits);
		return;
	}
	if (magnitude >= infinity) {
		kp_compose_str(out, magnitude > infinity ? "float(\"nan\")"
				    : bits & sign        ? "float(\"-inf\")"
							 : "float(\"inf\")");
		return;
	}
	kp_compose_str(out, bits & sign ? "-" : "");
	do
		snprintf(text, sizeof(text), "%.*e", ++behind, value);
	while (strtod(text, NULL) != value);
	exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	if (exponent < -4 || exponent >= 16)
		kp_compose_str(out, text);
	else /* whole numbers of up to 16 digits are exact */
		kp_compose_print(out, "%.*f", behind > exponent ? behind - exponent : 1,
				 value);
}

/* A string in quotes; as repr() does, what cannot be seen is escaped. */
static void put_string(struct kp_compose *out, struct kpackx_string s)
{
	struct kp_span rest = string_span(s);
	uint32_t c;
	size_t n;

	kp_compose_str(out, "'");
	for (; rest.size; rest = kp_span_tail(rest, n)) {
		struct kp_span bytes;
		char shown[24];

		n = kp_python_char(rest, &c);
		bytes = kp_span_head(rest, n);
		if (c == '\'' || c == '\\')
			kp_compose_print(out, "\\%c", (int)c);
		else if (kp_span_is(bytes, kp_text_escape(bytes, shown, sizeof(shown))))
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
	kp_compose_str(out, "'");
}

/* Write a dotted name, escaped if it is not valid text. */
static void put_name(struct kp_compose *out, struct kpackx_string s, const char *end)
{
	KP_AUTO_FREE char *escaped = xescape(string_span(s));

	kp_compose_str(out, escaped);
	kp_compose_str(out, end);
}

/* The arguments that have a value for each dimension, by the letters of cutile.h. */
static const struct property {
	char letter;
	const char *name, *none;
	bool scalar; /* one value may stand for all dimensions */
} bound = {'l', "stride_lower_bound_incl", "None", true},
  properties[] = {
	  {'t', "stride_constant", "None", false},
	  {'s', "shape_constant", "None", false},
	  {'v', "stride_divisible_by", "1", true},
	  {'i', "shape_divisible_by", "1", true},
};

/*
 * Write property P of the array C: nothing if no dimension states it, one number if it is
 * the same for all that may have it, else a list.  Where a constant implies the number,
 * cuTile has dropped it.  The lower bound is always written, as it has no default.
 */
static void put_property(struct kp_compose *out, const struct kpackx_constraint *c,
			 const struct property *p)
{
	bool stated = false, uniform = p->scalar;
	int64_t value, first = 0;

	for (uint32_t i = 0; i < c->ndim && !stated; i++)
		stated = kp_cutile_predicate(&c->axes[i], p->letter, &first);
	if (!stated && p->letter != 'l')
		return;
	for (uint32_t i = 0; i < c->ndim && uniform; i++) {
		const struct kpackx_axis *a = &c->axes[i];

		if (kp_cutile_predicate(a, p->letter, &value))
			uniform = value == first;
		else if (p->letter == 'i')
			uniform = a->has_shape_constant && a->shape_constant % first == 0;
		else
			uniform = a->has_stride_constant &&
				  (p->letter == 'l' ? a->stride_constant >= first
						    : a->stride_constant % first == 0);
	}
	kp_compose_print(out, ", %s=", p->name);
	if (!stated) {
		kp_compose_str(out, p->none);
	} else if (uniform) {
		kp_compose_print(out, "%" PRId64, first);
	} else {
		for (uint32_t i = 0; i < c->ndim; i++) {
			kp_compose_str(out, i ? ", " : "[");
			if (kp_cutile_predicate(&c->axes[i], p->letter, &value))
				kp_compose_print(out, "%" PRId64, value);
			else
				kp_compose_str(out, p->none);
		}
		kp_compose_str(out, "]");
	}
}

/* Write the alias groups with made-up names: a kernel's name does not keep theirs. */
static void put_groups(struct kp_compose *out, const struct kpackx_constraint *c,
		       const char *alias)
{
	kp_compose_str(out, ", alias_groups=[");
	for (size_t i = 0; i < c->n_alias_groups; i++)
		kp_compose_print(out, "%s\"group%" PRIu32 "\"", i ? ", " : "",
				 c->alias_groups[i]);
	kp_compose_print(out, "], %s=%s", alias, c->may_alias ? "True" : "False");
}

static void put_constraint(struct kp_compose *out, const struct kpackx_constraint *c)
{
	switch (c->kind) {
	case KPACKX_SCALAR:
		kp_compose_print(out, "ScalarConstraint(ct.%s)",
				 kp_cutile_dtypes[c->dtype].python);
		break;
	case KPACKX_ARRAY:
		kp_compose_print(out,
				 "ArrayConstraint(ct.%s, %" PRIu32 ", index_dtype=ct.%s",
				 kp_cutile_dtypes[c->dtype].python, c->ndim,
				 kp_cutile_dtypes[c->index_dtype].python);
		put_property(out, c, &bound);
		put_groups(out, c, "may_alias_internally");
		for (size_t i = 0; i < KP_COUNT(properties); i++)
			put_property(out, c, &properties[i]);
		if (c->base_addr_divisible_by > 1)
			kp_compose_print(out, ", base_addr_divisible_by=%" PRId64,
					 c->base_addr_divisible_by);
		kp_compose_str(out, ")");
		break;
	case KPACKX_LIST:
		kp_compose_str(out, "ListConstraint(");
		put_constraint(out, c->items);
		put_groups(out, c, "elements_may_alias");
		kp_compose_str(out, ")");
		break;
	case KPACKX_TUPLE:
	case KPACKX_DATACLASS:
		if (c->kind == KPACKX_DATACLASS) {
			kp_compose_str(out, "DataclassConstraint(");
			put_name(out, c->module, ".");
			put_name(out, c->qualname, ", [");
		} else {
			kp_compose_str(out, "TupleConstraint([");
		}
		for (size_t i = 0; i < c->n_items; i++) {
			kp_compose_str(out, i ? ", " : "");
			put_constraint(out, &c->items[i]);
		}
		kp_compose_str(out, "])");
		break;
	case KPACKX_CONST_BOOL:
		kp_compose_str(out, c->bits ? "True" : "False");
		break;
	case KPACKX_CONST_INT:
		kp_compose_span(out, string_span(c->text));
		break;
	case KPACKX_CONST_FLOAT:
		put_float(out, c->bits);
		break;
	case KPACKX_CONST_NONE:
		kp_compose_str(out, "None");
		break;
	case KPACKX_CONST_STR:
		put_string(out, c->text);
		break;
	case KPACKX_CONST_ENUM:
		put_name(out, c->module, ".");
		put_name(out, c->qualname, ".");
		put_name(out, c->text, "");
		break;
	case KPACKX_CONST_DTYPE:
		kp_compose_print(out, "ct.%s", kp_cutile_dtypes[c->dtype].python);
	}
}

/*
 * S as Python, for free(): one line or, with MARGIN, each parameter on a line of its own,
 * indented by MARGIN and four spaces.
 */
static char *signature_python(const struct kpackx_signature *s, const char *margin)
{
	bool lines = margin && s->n_parameters;
	struct kp_compose out = {0};
	char *text;

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
	if (kp_compose_take(&out, &text, NULL))
		xalloc_fail(0);
	return text;
}

/* ---- as data ---- */

/* Add text that may hold any bytes; they are escaped so that readers can print it. */
static void put_text(struct facts *f, const char *name, struct kp_span s)
{
	KP_AUTO_FREE char *shown = xescape(s);

	facts_string(f, name, shown);
}

/* Describe the signature in KERNEL's name, or say why it is invalid. */
static struct facts describe_kernel(const char *kernel)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};
	struct facts f = {0};
	KP_AUTO_FREE struct facts *maps = NULL;
	KP_AUTO_FREE char *python = NULL;
	char convention[32];
	kpack_error_t err = kpackx_demangle(kernel, &s, &why);

	put_text(&f, "symbol", kp_span_str(kernel));
	if (err == KPACK_ERROR_OUT_OF_MEMORY)
		xalloc_fail(0);
	if (err) {
		facts_string(&f, "error", why.text);
		return f;
	}
	python = signature_python(s, NULL);
	snprintf(convention, sizeof(convention), "cutile_python_v%u", s->convention);
	put_text(&f, "function", string_span(s->function));
	facts_string(&f, "convention", convention);
	facts_string(&f, "python", python);
	maps = xcalloc(s->n_arguments, sizeof(*maps));
	for (size_t i = 0; i < s->n_arguments; i++) {
		const struct kpackx_argument *a = &s->arguments[i];

		facts_string(&maps[i], "name", a->name);
		facts_string(&maps[i], "type", a->type);
		facts_number(&maps[i], "bytes", a->size);
		facts_string(&maps[i], "meaning", a->meaning);
		facts_number(&maps[i], "parameter", a->parameter);
		if (a->words)
			facts_number(&maps[i], "words", a->words);
	}
	facts_maps(&f, "arguments", maps, s->n_arguments);
	for (size_t i = 0; i < s->n_arguments; i++)
		facts_fini(&maps[i]);
	kpackx_signature_free(s);
	return f;
}

/* Readers of archives must be able to read all metadata, so what is too much is counted. */
void signature_facts(struct facts *f, const struct kp_object *object)
{
	KP_AUTO_FREE struct facts *maps = xcalloc(object->n_kernels, sizeof(*maps));
	size_t count = 0, size = 0, left_out = 0;

	for (size_t i = 0; i < object->n_kernels; i++) {
		const char *kernel = object->kernels[i].name;

		if (!kp_cutile_named(kp_span_str(kernel)))
			continue;
		maps[count] = describe_kernel(kernel);
		if (size + maps[count].size > FACTS_MAX) {
			facts_fini(&maps[count]);
			left_out++;
		} else {
			size += maps[count++].size;
		}
	}
	if (count)
		facts_maps(f, "signatures", maps, count);
	if (left_out)
		facts_number(f, "signatures_left_out", left_out);
	while (count)
		facts_fini(&maps[--count]);
}

json_t *signature_json(const char *kernel, size_t *left)
{
	KP_AUTO(facts) f = {0}, outer = {0};
	struct kp_mp cursor;
	KP_AUTO(kp_json) text = {.limit = SIZE_MAX};
	struct kp_span json;
	json_t *out = NULL;

	if (!kp_cutile_named(kp_span_str(kernel)))
		return NULL;
	if (*left)
		f = describe_kernel(kernel);
	if (!*left || f.size > *left) {
		*left = 0;
		facts_fini(&f);
		put_text(&f, "symbol", kp_span_str(kernel));
		facts_string(&f, "error",
			     "this object's signatures take more than 16 MiB");
	} else {
		*left -= f.size;
	}
	/* core converts a whole value: the facts as the map of one pair, behind its name */
	facts_map(&outer, "signature", &f);
	cursor = kp_mp_over((struct kp_span){outer.pairs, outer.size});
	kp_mp_skip(&cursor);
	kp_json_value(&text, &cursor);
	if (kp_json_finish(&text, &json, NULL) == KPACK_SUCCESS)
		out = json_loadb((const char *)json.data, json.size, JSON_ALLOW_NUL,
				 NULL);
	return out;
}

/* ---- for people ---- */

void signature_print(const char *kernel, const char *margin)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};
	KP_AUTO_FREE char *python = NULL;

	if (!kp_cutile_named(kp_span_str(kernel)))
		return;
	if (kpackx_demangle(kernel, &s, &why)) {
		printf("%sno cuTile signature: ", margin);
		report_message(why.text);
		putchar('\n');
		return;
	}
	python = signature_python(s, margin);
	printf("%s%s\n", margin, python); /* strings in it are escaped */
	printf("%slaunch arguments:%s\n", margin, s->n_arguments ? "" : " none");
	for (size_t i = 0; i < s->n_arguments; i++) {
		const struct kpackx_argument *a = &s->arguments[i];

		printf("%s  %s%s%s: %s", margin, a->type,
		       a->type[strlen(a->type) - 1] == '*' ? "" : " ", a->name,
		       a->meaning);
		if (a->words)
			printf(" (%u word%s each)", a->words, a->words > 1 ? "s" : "");
		putchar('\n');
	}
	kpackx_signature_free(s);
}
