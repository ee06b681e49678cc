/* SPDX-License-Identifier: MIT */
/*
 * The grammar of names:
 *
 * TensileLibrary[_PROBLEM][_Type_TYPES[_OPTION]..._Contraction_l_Ailk_Bljk_Cijk_Dijk]
 *	[_CU80][_APU|_XPU][_fallback][_ARCH].dat
 *
 * Other forms are the name of a single kernel,
 * Cijk_Ailk_Bljk_HBH_MT64x64x16_SE_gfx900.co, and names in libraries that number or
 * describe their kernels in their own way, gemm_4096x4096x4096_FP16_NT.co.
 */
#include <stdio.h>
#include <strings.h>
#include "arch_name.h"
#include "tensile_name.h"

static bool span_begins(struct kp_span s, const char *text)
{
	return kp_span_starts(s, text, strlen(text));
}

/* Offset of TEXT in S, or -1. */
static ptrdiff_t find_text(struct kp_span s, const char *text)
{
	const uint8_t *at = s.size ? memmem(s.data, s.size, text, strlen(text)) : NULL;

	return at ? at - s.data : -1;
}

/* Whether S is one of the words of LIST, which blanks separate. */
static bool is_one_of(struct kp_span s, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, " ");

		if (s.size == n && memcmp(s.data, list, n) == 0)
			return true;
		list += n + (list[n] == ' ');
	}
	return false;
}

/* --- the role of a name -------------------------------------------------------------------- */

static const char endings[] = "dat yaml yml co hsaco txt csv json";

static void cut_ending(struct kp_span *name, struct kp_span *ending)
{
	const uint8_t *dot = name->size ? memrchr(name->data, '.', name->size) : NULL;
	size_t at = dot ? (size_t)(dot - name->data) : 0;

	*ending = (struct kp_span){NULL, 0};
	if (!dot || !is_one_of(kp_span_tail(*name, at + 1), endings))
		return;
	*ending = kp_span_tail(*name, at + 1);
	*name = kp_span_head(*name, at);
}

static void cut_end(struct kp_span *name, const char *text)
{
	if (kp_span_ends(*name, text))
		*name = kp_span_head(*name, name->size - strlen(text));
}

/* Whether STEM is TensileLibrary or TensileLibrary_lazy, with or without a GPU. */
static bool is_parent(struct kp_span stem)
{
	char arch[KP_TARGET_TEXT_MAX];

	if (!span_begins(stem, "TensileLibrary") &&
	    !span_begins(stem, "TensileLiteLibrary"))
		return false;
	stem = kp_span_tail(stem, (size_t)find_text(stem, "Library") + strlen("Library"));
	if (span_begins(stem, "_lazy"))
		stem = kp_span_tail(stem, strlen("_lazy"));
	return stem.size == 0 || (stem.data[0] == '_' &&
				  arch_of_directory(kp_span_tail(stem, 1), arch, NULL));
}

static const char *role_of(const struct tensile_name *name)
{
	static const struct {
		const char *role, *begins, *has, *endings;
	} roles[] = {
		{"manifest", "TensileManifest", "", "txt"},
		{"mapping", "Tensile", "_Mapping", "dat"},
		{"extop", "hipblasltExtOpLibrary", "", "dat"},
		{"extop", "hipsparseltExtOpLibrary", "", "dat"},
		{"extop", "extop", "", "co hsaco"},
		{"transform", "hipblasltTransform", "", "co hsaco"},
		{"helper", "Kernels", ".so-", "co hsaco"},
		{"fallback", "", "_fallback", "dat yaml co hsaco"},
		{"code", "", "", "co hsaco"},
		{"child", "Tensile", "_", "dat yaml"},
	};

	if (is_one_of(name->ending, "dat yaml yml json") && is_parent(name->stem))
		return "parent";
	for (size_t i = 0; i < KP_COUNT(roles); i++)
		if (span_begins(name->stem, roles[i].begins) &&
		    find_text(name->stem, roles[i].has) >= 0 &&
		    is_one_of(name->ending, roles[i].endings))
			return roles[i].role;
	return "file";
}

struct tensile_name tensile_name_split(struct kp_span name)
{
	struct tensile_name out = {.stem = name,
				   .compressed = kp_span_ends(name, ".zlib")};

	cut_end(&out.stem, ".zlib");
	cut_ending(&out.stem, &out.ending);
	cut_end(&out.stem, "-xnack+");
	cut_end(&out.stem, "-xnack-");
	out.role = role_of(&out);
	return out;
}

bool tensile_name_is_code(const struct tensile_name *name)
{
	return !name->compressed && is_one_of(name->ending, "co hsaco");
}

/* --- the facts in a name --------------------------------------------------------------------- */

enum { M, N, K, DIMENSIONS };

struct said {
	struct kp_span problem, types, options, operation;
	const char *datatype;
	bool hpa;
	bool tensile; /* Tensile's grammar, which has no words for M, N and K */
	bool stated_a, stated_b, transpose_a, transpose_b, conjugate_a, conjugate_b;
	uint64_t size[DIMENSIONS]; /* 0: not stated */
	size_t run;                /* how many numbers are right before this word */
	uint64_t *label;           /* the dimension that the word before named: "M" */
	uint64_t cu_count;
	bool stated_apu, apu;
};

/* Read the digits at the start of S, and move S past them.  false: none, or over nine. */
static bool take_number(struct kp_span *s, uint64_t *out)
{
	size_t n = 0;

	*out = 0;
	for (; n < s->size && n < 10 && s->data[n] >= '0' && s->data[n] <= '9'; n++)
		*out = *out * 10 + (uint64_t)(s->data[n] - '0');
	*s = kp_span_tail(*s, n);
	return n > 0 && n < 10;
}

/* Take the next word of a name; these characters separate words. */
static struct kp_span next_word(struct kp_span *rest)
{
	size_t n = 0;
	struct kp_span word;

	while (n < rest->size && !memchr("_-.,=", rest->data[n], 5))
		n++;
	word = kp_span_head(*rest, n);
	*rest = kp_span_tail(*rest, n < rest->size ? n + 1 : n);
	return word;
}

static struct kp_span span_between(struct kp_span s, size_t from, size_t to)
{
	return from < to ? kp_span_head(kp_span_tail(s, from), to - from)
			 : (struct kp_span){NULL, 0};
}

/* Whether WORD lists the indices of MATRIX (A to D): "Ailk"; "BjlkC" is conjugated. */
static bool is_form(struct kp_span word, uint8_t matrix)
{
	size_t n = word.size;

	if (n < 3 || word.data[0] != matrix)
		return false;
	n -= word.data[n - 1] == 'C';
	for (size_t i = 1; i < n; i++)
		if (word.data[i] < 'i' || word.data[i] > 'n')
			return false;
	return n >= 3;
}

/* Set *IN_ORDER if index FIRST is before SECOND.  false: WORD does not have both. */
static bool index_order(struct kp_span word, int first, int second, bool *in_order)
{
	const uint8_t *a = memchr(word.data, first, word.size);
	const uint8_t *b = memchr(word.data, second, word.size);

	*in_order = a < b;
	return a && b;
}

/* If the summation index l comes first, A is transposed, and B is not. */
static void parse_form(struct said *said, struct kp_span word)
{
	bool conjugate = word.size && word.data[word.size - 1] == 'C';

	if (is_form(word, 'A')) {
		said->stated_a = index_order(word, 'l', 'i', &said->transpose_a);
		said->conjugate_a = conjugate;
	} else if (is_form(word, 'B')) {
		said->stated_b = index_order(word, 'j', 'l', &said->transpose_b);
		said->conjugate_b = conjugate;
	}
}

static void parse_transposes(struct said *said, struct kp_span word)
{
	bool valid = word.size == 2 && !said->tensile && !said->stated_a;

	for (size_t i = 0; i < 2 && valid; i++)
		valid = strchr("nNtT", word.data[i]) && word.data[i];
	if (!valid)
		return;
	said->stated_a = said->stated_b = true;
	said->transpose_a = (word.data[0] | 0x20) == 't';
	said->transpose_b = (word.data[1] | 0x20) == 't';
}

static const char *datatype_of_word(struct kp_span word)
{
	static const struct {
		const char *word, *datatype;
	} words[] = {
		{"fp16", "FP16"},    {"f16", "FP16"},    {"half", "FP16"},
		{"hgemm", "FP16"},   {"bf16", "BF16"},   {"bfloat16", "BF16"},
		{"fp32", "FP32"},    {"f32", "FP32"},    {"float32", "FP32"},
		{"sgemm", "FP32"},   {"fp64", "FP64"},   {"f64", "FP64"},
		{"float64", "FP64"}, {"dgemm", "FP64"},  {"fp8", "FP8"},
		{"f8", "FP8"},       {"bf8", "BF8"},     {"float16", "FP16"},
		{"fp4", "FP4"},      {"f4", "FP4"},      {"tf32", "TF32"},
		{"xf32", "XF32"},    {"i8", "INT8"},     {"int8", "INT8"},
		{"i32", "INT32"},    {"int32", "INT32"}, {"i4", "INT4"},
		{"int4", "INT4"},    {"double", "FP64"}, {"single", "FP32"},
	};

	for (size_t i = 0; i < KP_COUNT(words); i++)
		if (word.size == strlen(words[i].word) &&
		    strncasecmp((const char *)word.data, words[i].word, word.size) == 0)
			return words[i].datatype;
	return NULL;
}

/* The type of A, which Tensile abbreviates to a letter or two. */
static const char *datatype_of_types(struct kp_span types)
{
	static const struct {
		const char *letters, *datatype;
	} kinds[] = {
		{"4xi8", "INT8"}, {"I8", "INT8"}, {"F8", "FP8"}, {"B8", "BF8"},
		{"F4", "FP4"},    {"H", "FP16"},  {"B", "BF16"}, {"S", "FP32"},
		{"D", "FP64"},    {"X", "XF32"},
	};

	for (size_t i = 0; i < KP_COUNT(kinds); i++)
		if (span_begins(types, kinds[i].letters))
			return kinds[i].datatype;
	return NULL;
}

static bool take_x(struct kp_span *word)
{
	if (!word->size || (word->data[0] | 0x20) != 'x')
		return false;
	*word = kp_span_tail(*word, 1);
	return true;
}

/* 4096x4096x4096 */
static bool take_product(struct kp_span word, uint64_t size[DIMENSIONS])
{
	return take_number(&word, &size[M]) && take_x(&word) &&
	       take_number(&word, &size[N]) && take_x(&word) &&
	       take_number(&word, &size[K]) && word.size == 0;
}

/* M128, M128N64K32, M128xN64xK32 */
static bool take_labelled(struct kp_span word, uint64_t size[DIMENSIONS])
{
	static const char labels[] = "mnk";

	while (word.size) {
		const char *at =
			word.data[0] ? strchr(labels, word.data[0] | 0x20) : NULL;

		word = kp_span_tail(word, 1);
		if (!at || !take_number(&word, &size[at - labels]))
			return false;
		take_x(&word);
	}
	return true;
}

/* _4096_4096_512_: exactly three numbers in a row. */
static void parse_run(struct said *said, struct kp_span word, uint64_t run[4])
{
	uint64_t number;
	bool all = word.size && take_number(&word, &number) && word.size == 0 && number;

	if (all && said->run < 4)
		run[said->run++] = number;
	if (all)
		return;
	if (said->run == DIMENSIONS && !said->size[M])
		memcpy(said->size, run, sizeof(said->size));
	said->run = 0;
}

/* M_4096, M=4096 */
static void parse_label(struct said *said, struct kp_span word)
{
	static const char labels[] = "mnk";
	const char *at = word.size == 1 && word.data[0]
				 ? strchr(labels, word.data[0] | 0x20)
				 : NULL;
	uint64_t number;

	if (said->label && !*said->label && take_number(&word, &number) && !word.size)
		*said->label = number;
	said->label = at ? &said->size[at - labels] : NULL;
}

static void parse_size(struct said *said, struct kp_span word)
{
	uint64_t product[DIMENSIONS], labelled[DIMENSIONS];

	memcpy(labelled, said->size, sizeof(labelled));
	if (take_product(word, product))
		memcpy(said->size, product, sizeof(product));
	else if (word.size && take_labelled(word, labelled))
		memcpy(said->size, labelled, sizeof(labelled));
}

/* CU80, APU, XPU */
static void parse_hardware(struct said *said, struct kp_span word)
{
	struct kp_span rest = word.size > 2 ? kp_span_tail(word, 2) : word;
	uint64_t n;

	if (span_begins(word, "CU") && take_number(&rest, &n) && rest.size == 0)
		said->cu_count = n;
	if (!kp_span_is(word, "APU") && !kp_span_is(word, "XPU"))
		return;
	said->stated_apu = true;
	said->apu = word.data[0] == 'A';
}

static void parse_words(struct said *said, struct kp_span stem)
{
	uint64_t run[4];

	for (struct kp_span rest = stem; rest.size;) {
		struct kp_span word = next_word(&rest);

		parse_form(said, word);
		parse_transposes(said, word);
		parse_hardware(said, word);
		if (said->tensile)
			continue;
		parse_size(said, word);
		parse_label(said, word);
		parse_run(said, word, run);
		if (!said->datatype)
			said->datatype = datatype_of_word(word);
	}
	if (!said->tensile)
		parse_run(said, (struct kp_span){NULL, 0}, run);
}

/* Size of "Contraction_l_Ailk_Bljk_Cijk_Dijk" at the start of S. */
static size_t operation_size(struct kp_span s)
{
	struct kp_span rest = kp_span_tail(s, strlen("Contraction"));
	size_t n = s.size - rest.size;

	while (rest.size && rest.data[0] == '_') {
		struct kp_span word;

		rest = kp_span_tail(rest, 1);
		word = next_word(&rest);
		if (!(word.size && word.data[0] >= 'i' && word.data[0] <= 'n') &&
		    !is_form(word, 'A') && !is_form(word, 'B') && !is_form(word, 'C') &&
		    !is_form(word, 'D'))
			break;
		n = (size_t)(word.data - s.data) + word.size;
		rest = kp_span_tail(s, n);
	}
	return n;
}

/* S is between "_Type_" and the operation: read TYPES and the options after it. */
static void parse_types(struct said *said, struct kp_span s)
{
	struct kp_span rest = s;

	said->types = next_word(&rest);
	said->datatype = datatype_of_types(said->types);
	said->hpa = find_text(s, "_HPA_") >= 0;
	if (span_begins(rest, "HPA_"))
		next_word(&rest);
	said->options = rest;
	if (kp_span_ends(said->options, "_"))
		said->options.size--;
}

/* The type follows the matrices: Cijk_Ailk_Bljk_HBH_MT64x64x16. */
static const char *datatype_of_kernel(struct kp_span stem)
{
	struct kp_span rest = stem, word;

	do
		word = next_word(&rest);
	while (is_form(word, 'A') || is_form(word, 'B') || is_form(word, 'C'));
	return datatype_of_types(word);
}

/* Size of hipBLASLt's and hipSPARSELt's PROBLEM, up to a word of another kind. */
static size_t problem_size(struct kp_span s)
{
	struct kp_span rest = s;
	size_t n = 0;

	while (rest.size) {
		struct kp_span word = next_word(&rest),
			       number = kp_span_tail(word, word.size < 2 ? 0 : 2);
		uint64_t ignored;

		if (is_one_of(word, "Type lazy fallback APU XPU Contraction") ||
		    span_begins(word, "gfx") ||
		    (span_begins(word, "CU") && take_number(&number, &ignored)))
			break;
		n = (size_t)(word.data - s.data) + word.size;
	}
	return n;
}

static void parse_grammar(struct said *said, struct kp_span stem)
{
	static const char library[] = "TensileLibrary_", type[] = "_Type_";
	ptrdiff_t types = find_text(stem, type),
		  operation = find_text(stem, "Contraction_");

	said->tensile = span_begins(stem, "Tensile") || span_begins(stem, "Cijk_") ||
			operation >= 0;
	if (span_begins(stem, library)) {
		struct kp_span rest = kp_span_tail(stem, sizeof(library) - 1);

		said->problem = kp_span_head(rest, problem_size(rest));
	}
	if (operation >= 0)
		said->operation = kp_span_head(
			kp_span_tail(stem, (size_t)operation),
			operation_size(kp_span_tail(stem, (size_t)operation)));
	if (span_begins(stem, "Cijk_"))
		said->datatype = datatype_of_kernel(stem);
	if (types >= 0 && operation > types)
		parse_types(said, span_between(stem, (size_t)types + sizeof(type) - 1,
					       (size_t)operation));
}

static void add_text(struct facts *facts, const char *name, struct kp_span text)
{
	/* no library writes longer ones: keep them out of the TOC */
	if (text.size && text.size <= 64)
		facts_text(facts, name, text);
}

static void add_transposes(const struct said *said, struct facts *facts)
{
	if (said->stated_a)
		facts_flag(facts, "transpose_a", said->transpose_a);
	if (said->stated_b)
		facts_flag(facts, "transpose_b", said->transpose_b);
	if (said->conjugate_a)
		facts_flag(facts, "conjugate_a", true);
	if (said->conjugate_b)
		facts_flag(facts, "conjugate_b", true);
}

static void add_size(const struct said *said, struct facts *facts)
{
	if (!said->size[M] || !said->size[N] || !said->size[K])
		return;
	facts_number(facts, "M", said->size[M]);
	facts_number(facts, "N", said->size[N]);
	facts_number(facts, "K", said->size[K]);
}

void tensile_name_facts(struct kp_span stem, struct facts *facts)
{
	struct said said = {0};

	parse_grammar(&said, stem);
	parse_words(&said, stem);
	add_text(facts, "problem", said.problem);
	add_text(facts, "types", said.types);
	if (said.datatype)
		facts_string(facts, "datatype", said.datatype);
	if (said.types.size)
		facts_flag(facts, "hpa", said.hpa);
	add_text(facts, "options", said.options);
	add_text(facts, "operation", said.operation);
	add_transposes(&said, facts);
	add_size(&said, facts);
	if (said.cu_count)
		facts_number(facts, "cu_count", said.cu_count);
	if (said.stated_apu)
		facts_flag(facts, "apu", said.apu);
}
