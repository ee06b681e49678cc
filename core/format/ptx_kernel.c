/* SPDX-License-Identifier: MIT */
#include "ptx_kernel.h"
#include <stdlib.h>

/* Limit of the bytes of parameters; GPUs accept 32 KiB in all. */
#define PARAMETERS_MAX (1 << 20)

/* A .param being read. */
struct parameter {
	uint64_t size;  /* of an element; 0: unknown type */
	uint64_t align; /* 0: that of an element */
	uint64_t count;
	bool pointer; /* then .align is that of the target */
};

static uint64_t number(const char *word)
{
	char *end;
	unsigned long long n = strtoull(word, &end, 0);

	return *end == '\0' || *end == 'U' ? n : UINT64_MAX;
}

/* Return the bytes of a type such as ".u64"; 0: not a type. */
static uint64_t type_size(const char *word)
{
	static const struct {
		const char *name;
		uint8_t size;
	} others[] = {
		{".f16x2", 4},  {".bf16x2", 4},     {".b128", 16},   {".bf16", 2},
		{".texref", 8}, {".samplerref", 8}, {".surfref", 8},
	};
	unsigned long bits;
	char *end;

	for (size_t i = 0; i < KP_COUNT(others); i++)
		if (strcmp(word, others[i].name) == 0)
			return others[i].size;
	if (word[0] != '.' || !word[1] || !strchr("bsuf", word[1]))
		return 0;
	bits = strtoul(word + 2, &end, 10);
	if (*end || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
		return 0;
	return bits / 8;
}

/* Read a word of a parameter: an attribute, the type, or the name. */
static void read_attribute(struct kp_ptx_tokens *t, struct parameter *p)
{
	uint64_t size = type_size(t->word);

	if (size)
		p->size = size;
	else if (kp_ptx_is(t, ".ptr"))
		p->pointer = true;
	else if (kp_ptx_is(t, ".align") && kp_ptx_next(t) == KP_PTX_WORD && !p->pointer)
		p->align = number(t->word);
}

/* Add parameter P at *END, and move *END after it; UINT64_MAX: unknown. */
static void lay_parameter(const struct parameter *p, uint64_t *end)
{
	uint64_t align = p->align ? p->align : p->size;

	if (!p->size || p->count > PARAMETERS_MAX || align > PARAMETERS_MAX ||
	    *end > PARAMETERS_MAX)
		*end = UINT64_MAX;
	else
		*end = (*end + align - 1) / align * align + p->size * p->count;
}

/* Read from "(" to ")"; return the bytes of all parameters, or KP_NOT_STATED. */
static int64_t read_parameters(struct kp_ptx_tokens *t)
{
	const struct parameter fresh = {.count = 1};
	struct parameter p = fresh;
	uint64_t end = 0;
	bool some = false;

	while (kp_ptx_next(t) != KP_PTX_END && !kp_ptx_is_sign(t, ')')) {
		if (kp_ptx_is_sign(t, ',')) {
			lay_parameter(&p, &end);
			p = fresh;
		} else if (kp_ptx_is_sign(t, '[')) {
			uint64_t n = kp_ptx_next(t) == KP_PTX_WORD ? number(t->word) : 0;

			p.count = n > PARAMETERS_MAX || p.count > PARAMETERS_MAX
					  ? UINT64_MAX
					  : p.count * n;
		} else if (t->kind == KP_PTX_WORD) {
			some = true;
			read_attribute(t, &p);
		}
	}
	if (some)
		lay_parameter(&p, &end);
	return end > PARAMETERS_MAX ? KP_NOT_STATED : (int64_t)end;
}

/* Read "X [, Y [, Z]]" and the token after it; return the product. */
static int64_t read_threads(struct kp_ptx_tokens *t)
{
	uint64_t product = 1, n;

	do {
		n = kp_ptx_next(t) == KP_PTX_WORD ? number(t->word) : UINT64_MAX;
		if (n > UINT16_MAX || product > UINT16_MAX)
			return KP_NOT_STATED;
		product *= n;
	} while (kp_ptx_next(t) == KP_PTX_SIGN && kp_ptx_is_sign(t, ','));
	return (int64_t)product;
}

/* Read from the last token up to "{" or ";". */
static void read_requirements(struct kp_ptx_tokens *t, int64_t *threads)
{
	while (t->kind != KP_PTX_END && !kp_ptx_is_sign(t, '{') &&
	       !kp_ptx_is_sign(t, ';')) {
		if (kp_ptx_is(t, ".maxntid") || kp_ptx_is(t, ".reqntid"))
			*threads = read_threads(t);
		else
			kp_ptx_next(t);
	}
}

kpack_error_t kp_ptx_kernel(struct kp_ptx_tokens *t, struct kp_object *out,
			    uint64_t *depth, struct kpackx_error *why)
{
	int64_t kernarg = 0, threads = KP_NOT_STATED;
	char name[KP_NAME_MAX + 1];
	struct kp_kernel *k;

	if (kp_ptx_next(t) != KP_PTX_WORD)
		return KPACK_SUCCESS;
	if (t->size > KP_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       ".entry with a name of %zu bytes, at most %d", t->size,
			       KP_NAME_MAX);
	memcpy(name, t->word, t->size + 1);
	kp_ptx_next(t);
	if (kp_ptx_is_sign(t, '(')) {
		kernarg = read_parameters(t);
		kp_ptx_next(t);
	}
	read_requirements(t, &threads);
	if (!kp_ptx_is_sign(t, '{'))
		return KPACK_SUCCESS;
	++*depth;
	KP_TRY(kp_object_add_kernel(out, kp_span_str(name), &k, why));
	k->kernarg = kernarg;
	k->threads = threads;
	return KPACK_SUCCESS;
}
