/* SPDX-License-Identifier: MIT */
#include "json_members.h"

enum { DIGITS_MAX = 18 };

static void skip_bytes(struct kp_span *s, size_t n)
{
	s->data += n;
	s->size -= n;
}

static void skip_space(struct kp_span *s)
{
	while (s->size && memchr(" \t\r\n", s->data[0], 4))
		skip_bytes(s, 1);
}

static bool take_char(struct kp_span *s, char c)
{
	skip_space(s);
	if (!s->size || s->data[0] != (uint8_t)c)
		return false;
	skip_bytes(s, 1);
	return true;
}

/* Take a string.  *PLAIN: it contains no backslash. */
static bool take_string(struct kp_span *s, struct kp_span *text, bool *plain)
{
	size_t n = 0;

	if (!take_char(s, '"'))
		return false;
	*plain = true;
	while (n < s->size && s->data[n] != '"') {
		bool escape = s->data[n] == '\\';

		*plain &= !escape;
		n += escape ? 2 : 1;
	}
	if (n >= s->size)
		return false;
	*text = (struct kp_span){s->data, n};
	skip_bytes(s, n + 1);
	return true;
}

/* Skip an object or an array with everything in it. */
static bool skip_container(struct kp_span *s)
{
	size_t depth = 0;

	do {
		struct kp_span text;
		bool plain;

		if (!s->size)
			return false;
		if (s->data[0] == '"') {
			if (!take_string(s, &text, &plain))
				return false;
			continue;
		}
		depth += s->data[0] == '{' || s->data[0] == '[';
		depth -= s->data[0] == '}' || s->data[0] == ']';
		skip_bytes(s, 1);
	} while (depth);
	return true;
}

static void skip_word(struct kp_span *s)
{
	while (s->size && !memchr(",]} \t\r\n", s->data[0], 7))
		skip_bytes(s, 1);
}

static bool is_number(struct kp_span s)
{
	return s.size && memchr("-0123456789", s.data[0], 11);
}

static bool take_value(struct kp_span *s, struct json_member *out)
{
	const uint8_t *begin;
	bool plain;

	skip_space(s);
	begin = s->data;
	if (s->size && begin[0] == '"') {
		if (!take_string(s, &out->value, &plain))
			return false;
		out->kind = plain ? MEMBER_TEXT : MEMBER_OTHER;
		return true;
	}
	if (s->size && (begin[0] == '{' || begin[0] == '[')) {
		if (!skip_container(s))
			return false;
		out->kind = begin[0] == '{' ? MEMBER_OBJECT : MEMBER_OTHER;
	} else {
		out->kind = is_number(*s) ? MEMBER_NUMBER : MEMBER_OTHER;
		skip_word(s);
	}
	out->value = (struct kp_span){begin, (size_t)(s->data - begin)};
	return out->value.size > 0;
}

bool member_next(struct kp_span *rest, struct json_member *out)
{
	bool plain;

	if (!take_char(rest, '{') && !take_char(rest, ','))
		return false;
	return take_string(rest, &out->name, &plain) && take_char(rest, ':') &&
	       take_value(rest, out);
}

bool member_integer(struct kp_span number, int64_t *out)
{
	bool minus = number.size && number.data[0] == '-';
	int64_t n = 0;

	if (minus)
		skip_bytes(&number, 1);
	if (!number.size || number.size > DIGITS_MAX)
		return false;
	for (size_t i = 0; i < number.size; i++) {
		if (number.data[i] < '0' || number.data[i] > '9')
			return false;
		n = 10 * n + (number.data[i] - '0');
	}
	*out = minus ? -n : n;
	return true;
}
