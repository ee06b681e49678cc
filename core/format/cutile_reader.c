/* SPDX-License-Identifier: MIT */
#include "cutile_reader.h"
#include <stdarg.h>
#include <stdio.h>
#include "core/base/text.h"

kpack_error_t kp_cutile_no_memory(struct kp_cutile_reader *p)
{
	return kp_fail_memory(p->why, p->name.size, "a cuTile signature");
}

/* Fail with INVALID_FORMAT: WHAT is expected at offset AT, with the bytes found there. */
kpack_error_t kp_cutile_unexpected(struct kp_cutile_reader *p, size_t at,
				   const char *what)
{
	char rest[64];

	if (at >= p->name.size)
		return kp_fail(p->why, KPACK_ERROR_INVALID_FORMAT,
			       "offset %zu: the name ends where %s is expected", at,
			       what);
	kp_text_escape(kp_span_tail(p->name, at), rest, 24);
	return kp_fail(p->why, KPACK_ERROR_INVALID_FORMAT,
		       "offset %zu: %s is expected, not \"%s\"", at, what, rest);
}

kpack_error_t kp_cutile_fail(struct kp_cutile_reader *p, size_t at, const char *fmt, ...)
{
	char text[sizeof(p->why->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return kp_fail(p->why, KPACK_ERROR_INVALID_FORMAT, "offset %zu: %s", at, text);
}

int kp_cutile_peek(const struct kp_cutile_reader *p, size_t ahead)
{
	return p->name.size - p->pos > ahead ? p->name.data[p->pos + ahead] : -1;
}

bool kp_cutile_take(struct kp_cutile_reader *p, char c)
{
	if (kp_cutile_peek(p, 0) != c)
		return false;
	p->pos++;
	return true;
}

bool kp_cutile_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

bool kp_cutile_is_hex(int c)
{
	return kp_cutile_is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_dtype(int c)
{
	return kp_cutile_is_digit(c) || (c >= 'a' && c <= 'z');
}

/* Read all characters of a KIND at the cursor. */
static struct kp_span read_run(struct kp_cutile_reader *p, bool (*kind)(int))
{
	size_t begin = p->pos;

	while (kind(kp_cutile_peek(p, 0)))
		p->pos++;
	return (struct kp_span){p->name.data + begin, p->pos - begin};
}

/* Read the digits of a number without leading zeros. */
kpack_error_t kp_cutile_read_digits(struct kp_cutile_reader *p, bool (*kind)(int),
				    const char *what, struct kp_span *digits)
{
	size_t at = p->pos;

	*digits = read_run(p, kind);
	if (digits->size == 0)
		return kp_cutile_unexpected(p, at, what);
	if (digits->size > 1 && digits->data[0] == '0')
		return kp_cutile_fail(p, at, "%s begins with a zero", what);
	return KPACK_SUCCESS;
}

static unsigned digit_value(uint8_t c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* Read a number of at most MAX. */
kpack_error_t kp_cutile_read_number(struct kp_cutile_reader *p, unsigned base,
				    uint64_t max, const char *what, uint64_t *out)
{
	size_t at = p->pos;
	struct kp_span digits;
	uint64_t n = 0, digit;

	KP_TRY(kp_cutile_read_digits(
		p, base == 16 ? kp_cutile_is_hex : kp_cutile_is_digit, what, &digits));
	for (size_t i = 0; i < digits.size; i++) {
		digit = digit_value(digits.data[i]);
		if (digit > max || n > (max - digit) / base)
			return kp_cutile_fail(p, at, "%s passes the limit of %llu", what,
					      (unsigned long long)max);
		n = n * base + digit;
	}
	*out = n;
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_read_int64(struct kp_cutile_reader *p, const char *what,
				   int64_t *out)
{
	size_t at = p->pos;
	bool negative = kp_cutile_take(p, '_');
	uint64_t n;

	KP_TRY(kp_cutile_read_number(p, 10, (uint64_t)INT64_MAX + negative, what, &n));
	if (negative && n == 0)
		return kp_cutile_fail(p, at, "%s is zero with a sign", what);
	*out = negative ? (int64_t)(0 - n) : (int64_t)n;
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_read_divisor(struct kp_cutile_reader *p, const char *what,
				     int64_t *out)
{
	size_t at = p->pos;

	KP_TRY(kp_cutile_read_int64(p, what, out));
	if (*out < 2)
		return kp_cutile_fail(p, at, "%s is %lld, and must be 2 or more", what,
				      (long long)*out);
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_read_dtype(struct kp_cutile_reader *p, kpackx_dtype_t *out)
{
	size_t at = p->pos;
	struct kp_span code = read_run(p, is_dtype);
	const struct kp_cutile_dtype *dtype = kp_cutile_dtype_of(code);

	if (code.size == 0)
		return kp_cutile_unexpected(p, at, "a data type");
	if (!dtype)
		return kp_cutile_fail(p, at, "no data type is called \"%.*s\"",
				      code.size > 24 ? 24 : (int)code.size,
				      (const char *)code.data);
	*out = dtype->dtype;
	return KPACK_SUCCESS;
}

/* ---- strings ---- */

static bool is_plain(int c)
{
	return kp_cutile_is_digit(c) || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z' && c != 'K');
}

/* Read N hexadecimal digits in lower case. */
kpack_error_t kp_cutile_read_hex(struct kp_cutile_reader *p, unsigned n, uint64_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < n; i++, p->pos++) {
		if (!kp_cutile_is_hex(kp_cutile_peek(p, 0)))
			return kp_cutile_unexpected(p, p->pos, "a hexadecimal digit");
		*out = *out << 4 | digit_value(p->name.data[p->pos]);
	}
	return KPACK_SUCCESS;
}

/* Read an escape after its '_'; each character must have its shortest form. */
static kpack_error_t read_escape(struct kp_cutile_reader *p, uint32_t *out)
{
	size_t at = p->pos - 1;
	uint64_t min = 0, c;

	*out = '_';
	if (kp_cutile_take(p, '_'))
		return KPACK_SUCCESS;
	*out = 'K';
	if (kp_cutile_take(p, 'k'))
		return KPACK_SUCCESS;
	if (kp_cutile_take(p, 'u')) {
		min = 0x100;
		KP_TRY(kp_cutile_read_hex(p, 4, &c));
	} else if (kp_cutile_take(p, 'w')) {
		min = 0x10000;
		KP_TRY(kp_cutile_read_hex(p, 8, &c));
	} else if (kp_cutile_is_hex(kp_cutile_peek(p, 0))) {
		KP_TRY(kp_cutile_read_hex(p, 2, &c));
	} else {
		return kp_cutile_unexpected(p, p->pos,
					    "an escape (_ k z u w or two digits)");
	}
	if (c > 0x10ffff)
		return kp_cutile_fail(p, at, "no character is U+%llX",
				      (unsigned long long)c);
	if (c < min || is_plain((int)c) || c == '_' || c == 'K')
		return kp_cutile_fail(p, at, "U+%04llX has a shorter form",
				      (unsigned long long)c);
	*out = (uint32_t)c;
	return KPACK_SUCCESS;
}

kpack_error_t kp_cutile_read_string(struct kp_cutile_reader *p, struct kpackx_string *out)
{
	size_t n = 0;
	uint32_t c;

	for (;;) {
		struct kp_span plain = read_run(p, is_plain);

		if (plain.size)
			memcpy(p->scratch + n, plain.data, plain.size);
		n += plain.size;
		if (!kp_cutile_take(p, '_'))
			return kp_cutile_unexpected(p, p->pos, "a string's end (_z)");
		if (kp_cutile_take(p, 'z'))
			break;
		KP_TRY(read_escape(p, &c));
		n += kp_python_put(c, p->scratch + n);
	}
	out->data = kp_arena_copy(p->arena, (struct kp_span){p->scratch, n});
	out->size = n;
	return out->data ? KPACK_SUCCESS : kp_cutile_no_memory(p);
}
