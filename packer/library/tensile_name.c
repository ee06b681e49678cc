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
#include <strings.h>
#include "arch_name.h"
#include "tensile.h"

/* --- the role of a name ----------------------------------------------------------------- */

struct tensile_name tensile_name_split(struct kp_span name)
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
	struct tensile_name out = {.stem = name, .role = "file"};
	char arch[KP_TARGET_TEXT_MAX];
	const uint8_t *dot;
	struct kp_span rest;

	out.compressed = kp_span_take_end(&out.stem, ".zlib");
	dot = out.stem.size ? memrchr(out.stem.data, '.', out.stem.size) : NULL;
	if (dot) {
		size_t n = (size_t)(dot - out.stem.data);

		rest = kp_span_tail(out.stem, n + 1);
		if (kp_span_is_one_of(rest, "dat yaml yml co hsaco txt csv json")) {
			out.ending = rest;
			out.stem.size = n;
		}
	}
	kp_span_take_end(&out.stem, "-xnack+");
	kp_span_take_end(&out.stem, "-xnack-");
	out.code = !out.compressed && kp_span_is_one_of(out.ending, "co hsaco");

	/* a parent is TensileLibrary or TensileLibrary_lazy, with or without a GPU */
	rest = out.stem;
	if (kp_span_is_one_of(out.ending, "dat yaml yml json") &&
	    (kp_span_take(&rest, "TensileLibrary") ||
	     kp_span_take(&rest, "TensileLiteLibrary"))) {
		kp_span_take(&rest, "_lazy");
		if (rest.size == 0 ||
		    (kp_span_take(&rest, "_") && arch_of_directory(rest, arch, NULL))) {
			out.role = "parent";
			return out;
		}
	}
	for (size_t i = 0; i < KP_COUNT(roles); i++)
		if (kp_span_begins(out.stem, roles[i].begins) &&
		    (!*roles[i].has || kp_span_has(out.stem, roles[i].has)) &&
		    kp_span_is_one_of(out.ending, roles[i].endings)) {
			out.role = roles[i].role;
			break;
		}
	return out;
}

/* --- the facts in a name ---------------------------------------------------------------- */

/* These characters separate the words of a name. */
#define SEPARATORS "_-.,="

enum { M, N, K, DIMENSIONS };

struct said {
	struct kp_span problem, types, options, operation;
	const char *datatype;
	bool hpa;
	bool tensile; /* Tensile's grammar, which has no words for M, N and K */
	bool stated_a, stated_b, transpose_a, transpose_b, conjugate_a, conjugate_b;
	uint64_t size[DIMENSIONS]; /* 0: not stated */
	uint64_t run[4];           /* the numbers right before this word */
	size_t n_run;
	uint64_t *label; /* the dimension that the word before named: "M" */
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

/* Whether WORD is a number and nothing else. */
static bool is_number(struct kp_span word, uint64_t *out)
{
	return take_number(&word, out) && word.size == 0;
}

/* Whether WORD lists the indices of one of MATRICES (A to D): "Ailk"; "BjlkC" is conjugated. */
static bool is_form(struct kp_span word, const char *matrices)
{
	size_t n = word.size;

	if (n < 3 || !word.data[0] || !strchr(matrices, word.data[0]))
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
		if (kp_span_begins(types, kinds[i].letters))
			return kinds[i].datatype;
	return NULL;
}

static bool take_x(struct kp_span *word)
{
	return kp_span_take(word, "x") || kp_span_take(word, "X");
}

/* The dimension that the letter at the start of WORD names; DIMENSIONS: none. */
static size_t dimension_of(struct kp_span word)
{
	static const char labels[] = "mnk";
	const char *at =
		word.size && word.data[0] ? strchr(labels, word.data[0] | 0x20) : NULL;

	return at ? (size_t)(at - labels) : DIMENSIONS;
}

/* M128, M128N64K32, M128xN64xK32 */
static bool take_labelled(struct kp_span word, uint64_t size[DIMENSIONS])
{
	for (; word.size; take_x(&word)) {
		size_t i = dimension_of(word);

		word = kp_span_tail(word, 1);
		if (i == DIMENSIONS || !take_number(&word, &size[i]))
			return false;
	}
	return true;
}

/* Read the size of a problem, in any of the ways in which people write it. */
static void read_size(struct said *said, struct kp_span word)
{
	uint64_t product[DIMENSIONS], labelled[DIMENSIONS], number;
	struct kp_span rest = word;
	size_t i;

	memcpy(labelled, said->size, sizeof(labelled));
	/* 4096x4096x4096 */
	if (take_number(&rest, &product[M]) && take_x(&rest) &&
	    take_number(&rest, &product[N]) && take_x(&rest) &&
	    is_number(rest, &product[K]))
		memcpy(said->size, product, sizeof(product));
	else if (take_labelled(word, labelled))
		memcpy(said->size, labelled, sizeof(labelled));
	/* M_4096, M=4096 */
	if (said->label && !*said->label && is_number(word, &number))
		*said->label = number;
	i = word.size == 1 ? dimension_of(word) : DIMENSIONS;
	said->label = i < DIMENSIONS ? &said->size[i] : NULL;
	/* _4096_4096_512_: exactly three numbers in a row */
	if (is_number(word, &number) && number) {
		if (said->n_run < KP_COUNT(said->run))
			said->run[said->n_run++] = number;
		return;
	}
	if (said->n_run == DIMENSIONS && !said->size[M])
		memcpy(said->size, said->run, sizeof(said->size));
	said->n_run = 0;
}

/* Read the parts of Tensile's own grammar, which stand at fixed places. */
static void read_grammar(struct said *said, struct kp_span stem)
{
	struct kp_span rest = stem, word, before, after, types, operation = {0};
	uint64_t number;

	/* hipBLASLt's and hipSPARSELt's PROBLEM goes up to a word of another kind */
	if (kp_span_take(&rest, "TensileLibrary_")) {
		said->problem = kp_span_head(rest, 0);
		while (rest.size) {
			struct kp_span cu = word = kp_span_word(&rest, SEPARATORS);

			if (kp_span_is_one_of(word,
					      "Type lazy fallback APU XPU Contraction") ||
			    kp_span_begins(word, "gfx") ||
			    (kp_span_take(&cu, "CU") && take_number(&cu, &number)))
				break;
			said->problem.size =
				(size_t)(word.data - said->problem.data) + word.size;
		}
	}
	if (kp_span_split(stem, "Contraction_", &before, &after)) {
		/* Contraction_l_Ailk_Bljk_Cijk_Dijk */
		operation = kp_span_tail(stem, before.size);
		said->operation = kp_span_head(operation, strlen("Contraction"));
		rest = after;
		while (rest.data[-1] == '_') {
			word = kp_span_word(&rest, SEPARATORS);
			if (!(word.size && word.data[0] >= 'i' && word.data[0] <= 'n') &&
			    !is_form(word, "ABCD"))
				break;
			said->operation.size =
				(size_t)(word.data - operation.data) + word.size;
			if (rest.size == 0)
				break;
		}
	}
	said->tensile = kp_span_begins(stem, "Tensile") ||
			kp_span_begins(stem, "Cijk_") || operation.size;
	if (kp_span_begins(stem, "Cijk_")) {
		/* the type follows the matrices: Cijk_Ailk_Bljk_HBH_MT64x64x16 */
		rest = stem;
		do
			word = kp_span_word(&rest, SEPARATORS);
		while (is_form(word, "ABC"));
		said->datatype = datatype_of_types(word);
	}
	/* types and options are between "_Type_" and the operation */
	if (operation.size && kp_span_split(stem, "_Type_", &before, &types) &&
	    types.data <= operation.data) {
		types.size = (size_t)(operation.data - types.data);
		said->hpa = kp_span_has(types, "_HPA_");
		said->types = kp_span_word(&types, SEPARATORS);
		said->datatype = datatype_of_types(said->types);
		kp_span_take(&types, "HPA_");
		said->options = types;
		if (kp_span_ends(types, "_"))
			said->options.size--;
	}
}

/* Add TEXT, if it is there.  No library writes longer ones: keep them out of the TOC. */
static void add_text(struct facts *facts, const char *name, struct kp_span text)
{
	if (text.size && text.size <= 64)
		facts_text(facts, name, text);
}

void tensile_name_facts(struct kp_span stem, struct facts *facts)
{
	struct said said = {0};

	read_grammar(&said, stem);
	for (struct kp_span words = stem; words.size;) {
		struct kp_span word = kp_span_word(&words, SEPARATORS), rest = word;
		uint64_t number;

		/* if the summation index l comes first, A is transposed, and B is not */
		if (is_form(word, "A")) {
			said.stated_a = index_order(word, 'l', 'i', &said.transpose_a);
			said.conjugate_a = word.data[word.size - 1] == 'C';
		} else if (is_form(word, "B")) {
			said.stated_b = index_order(word, 'j', 'l', &said.transpose_b);
			said.conjugate_b = word.data[word.size - 1] == 'C';
		}
		if (!said.tensile && !said.stated_a &&
		    kp_span_is_one_of(
			    word, "nn NN nN Nn nt NT nT Nt tn TN tN Tn tt TT tT Tt")) {
			said.stated_a = said.stated_b = true;
			said.transpose_a = (word.data[0] | 0x20) == 't';
			said.transpose_b = (word.data[1] | 0x20) == 't';
		}
		if (kp_span_take(&rest, "CU") && is_number(rest, &number))
			said.cu_count = number;
		if (kp_span_is_one_of(word, "APU XPU")) {
			said.stated_apu = true;
			said.apu = word.data[0] == 'A';
		}
		if (said.tensile)
			continue;
		read_size(&said, word);
		if (!said.datatype)
			said.datatype = datatype_of_word(word);
	}
	if (!said.tensile)
		read_size(&said, (struct kp_span){NULL, 0});

	add_text(facts, "problem", said.problem);
	add_text(facts, "types", said.types);
	if (said.datatype)
		facts_string(facts, "datatype", said.datatype);
	if (said.types.size)
		facts_flag(facts, "hpa", said.hpa);
	add_text(facts, "options", said.options);
	add_text(facts, "operation", said.operation);
	if (said.stated_a)
		facts_flag(facts, "transpose_a", said.transpose_a);
	if (said.stated_b)
		facts_flag(facts, "transpose_b", said.transpose_b);
	if (said.conjugate_a)
		facts_flag(facts, "conjugate_a", true);
	if (said.conjugate_b)
		facts_flag(facts, "conjugate_b", true);
	if (said.size[M] && said.size[N] && said.size[K]) {
		facts_number(facts, "M", said.size[M]);
		facts_number(facts, "N", said.size[N]);
		facts_number(facts, "K", said.size[K]);
	}
	if (said.cu_count)
		facts_number(facts, "cu_count", said.cu_count);
	if (said.stated_apu)
		facts_flag(facts, "apu", said.apu);
}
