/* SPDX-License-Identifier: MIT */
#include "kernel_name.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "core/base/text.h"

/* Words and their meanings. */
static const struct word {
	const char *word, *meaning;
	size_t field;
} words[] = {
	{"fwd", "fwd", offsetof(struct kernel_name, direction)},
	{"back", "back", offsetof(struct kernel_name, direction)},
	{"ip", "ip", offsetof(struct kernel_name, placement)},
	{"op", "op", offsetof(struct kernel_name, placement)},
	{"sbrr", "sbrr", offsetof(struct kernel_name, scheme)},
	{"sbcc", "sbcc", offsetof(struct kernel_name, scheme)},
	{"sbrc", "sbrc", offsetof(struct kernel_name, scheme)},
	{"sbcr", "sbcr", offsetof(struct kernel_name, scheme)},
	{"sp", "single", offsetof(struct kernel_name, precision)},
	{"dp", "double", offsetof(struct kernel_name, precision)},
	{"half", "half", offsetof(struct kernel_name, precision)},
};

/* Take the next word from *REST. */
static bool next_word(struct kp_span *rest, struct kp_span *word)
{
	const uint8_t *end;

	if (!rest->data)
		return false;
	end = rest->size ? memchr(rest->data, '_', rest->size) : NULL;
	word->data = rest->data;
	word->size = end ? (size_t)(end - rest->data) : rest->size;
	rest->size -= end ? word->size + 1 : rest->size;
	rest->data = end ? end + 1 : NULL;
	return true;
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool parse_number(struct kp_span text, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (!is_digit(text.data[i]) || *out > (UINT64_MAX - 9) / 10)
			return false;
		*out = *out * 10 + (uint64_t)(text.data[i] - '0');
	}
	return text.size > 0;
}

/* 100, 64x64 */
static bool is_length(struct kp_span s)
{
	bool digit = false;

	for (size_t i = 0; i < s.size; i++) {
		if (!is_digit(s.data[i]) && !(digit && s.data[i] == 'x'))
			return false;
		digit = is_digit(s.data[i]);
	}
	return digit && s.size < sizeof(((struct kernel_name *)0)->length);
}

/* The part of WORD after PREFIX, or if that is empty, the next word: len100, len_100. */
static bool value_of(struct kp_span word, const char *prefix, struct kp_span rest,
		     struct kp_span *value)
{
	size_t n = strlen(prefix);

	if (!kp_span_starts(word, prefix, n))
		return false;
	*value = (struct kp_span){word.data + n, word.size - n};
	return value->size > 0 || next_word(&rest, value);
}

/* Parse a length or a batch; "parent_len..." is not this kernel's length. */
static void parse_value(struct kp_span before, struct kp_span word, struct kp_span rest,
			struct kernel_name *out)
{
	struct kp_span value;

	if (!out->length[0] && !kp_span_is(before, "parent") &&
	    value_of(word, "len", rest, &value) && is_length(value))
		snprintf(out->length, sizeof(out->length), "%.*s", (int)value.size,
			 (const char *)value.data);
	if (!out->batch && value_of(word, "batch", rest, &value) &&
	    !parse_number(value, &out->batch))
		out->batch = 0;
}

static void parse_word(struct kp_span word, struct kernel_name *out)
{
	for (size_t i = 0; i < KP_COUNT(words); i++) {
		const char **field =
			(const char **)(void *)((char *)out + words[i].field);

		if (!*field && kp_span_is(word, words[i].word))
			*field = words[i].meaning;
	}
}

/* Parse the numbers after "factors": factors_8_8, factors_8_8_x_4_4. */
static void parse_factors(struct kp_span rest, struct kernel_name *out)
{
	struct kp_span word;
	size_t row = 0;
	uint64_t factor;

	while (next_word(&rest, &word)) {
		if (row == 0 && out->n_factors[0] && kp_span_is(word, "x"))
			row = 1;
		else if (parse_number(word, &factor) &&
			 out->n_factors[row] < KERNEL_NAME_FACTORS_MAX)
			out->factors[row][out->n_factors[row]++] = factor;
		else
			return;
	}
}

void kernel_name_parse(struct kp_span name, struct kernel_name *out)
{
	struct kp_span before = {0}, word;

	*out = (struct kernel_name){0};
	while (next_word(&name, &word)) {
		parse_word(word, out);
		parse_value(before, word, name, out);
		if (out->n_factors[0] == 0 && kp_span_is(word, "factors"))
			parse_factors(name, out);
		before = word;
	}
	if (!out->precision)
		out->precision = "any";
	if (!out->length[0])
		strcpy(out->length, "any");
}

void kernel_name_length_fact(struct kp_span length, struct facts *facts)
{
	uint64_t n;

	if (parse_number(length, &n))
		facts_number(facts, "length", n);
	else
		facts_text(facts, "length", length);
}

static void add_text(struct facts *facts, const char *name, const char *text)
{
	if (text)
		facts_string(facts, name, text);
}

void kernel_name_facts(const struct kernel_name *name, struct facts *facts)
{
	static const char *const factors[2] = {"factors", "factors2"};

	if (strcmp(name->length, "any") != 0)
		kernel_name_length_fact(kp_span_str(name->length), facts);
	if (strcmp(name->precision, "any") != 0)
		facts_string(facts, "precision", name->precision);
	for (size_t i = 0; i < 2; i++)
		if (name->n_factors[i])
			facts_numbers(facts, factors[i], name->factors[i],
				      name->n_factors[i]);
	if (name->batch)
		facts_number(facts, "batch", name->batch);
	add_text(facts, "scheme", name->scheme);
	add_text(facts, "placement", name->placement);
	add_text(facts, "direction", name->direction);
}

/* Size of the first character of S if it needs no escape; 0: escape its first byte. */
static size_t plain_bytes(struct kp_span s, bool dots)
{
	uint32_t c;
	size_t n = kp_text_char(s, &c);

	if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || c == '/' || c == '%' ||
	    c == '@' || c == '#' || (dots && c == '.'))
		return 0;
	return n;
}

char *kernel_name_component(struct kp_span name)
{
	bool dots = kp_span_is(name, ".") || kp_span_is(name, "..");
	char *text = xmalloc(3 * name.size + 1), *to = text;

	while (name.size) {
		size_t n = plain_bytes(name, dots);

		if (n)
			memcpy(to, name.data, n);
		else
			snprintf(to, 4, "%%%02X", name.data[0]);
		to += n ? n : 3;
		n = n ? n : 1;
		name = (struct kp_span){name.data + n, name.size - n};
	}
	*to = 0;
	return text;
}
