/* SPDX-License-Identifier: MIT */
#include "decimal.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Low words first.  The largest number, 4 * 2^53 * 10^340, has 1186 bits. */
enum { WORDS = 40 };

struct natural {
	uint32_t words[WORDS];
	int used;
};

static void multiply_natural(struct natural *n, uint32_t by)
{
	uint64_t carry = 0;

	for (int i = 0; i < n->used; i++) {
		carry += (uint64_t)n->words[i] * by;
		n->words[i] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry)
		n->words[n->used++] = (uint32_t)carry;
}

/* N * 10^TENS * 2^TWOS; a negative exponent counts as 0. */
static struct natural scale_natural(uint64_t n, int tens, int twos)
{
	struct natural out = {{(uint32_t)n, (uint32_t)(n >> 32)}, n >> 32 ? 2 : 1};

	for (; tens >= 9; tens -= 9)
		multiply_natural(&out, 1000000000);
	for (; tens > 0; tens--)
		multiply_natural(&out, 10);
	for (; twos >= 31; twos -= 31)
		multiply_natural(&out, UINT32_C(1) << 31);
	if (twos > 0)
		multiply_natural(&out, UINT32_C(1) << twos);
	return out;
}

static int compare_naturals(const struct natural *a, const struct natural *b)
{
	if (a->used != b->used)
		return a->used < b->used ? -1 : 1;
	for (int i = a->used; i-- > 0;)
		if (a->words[i] != b->words[i])
			return a->words[i] < b->words[i] ? -1 : 1;
	return 0;
}

/*
 * Whether N * 10^TENS reads as MANTISSA * 2^TWOS: it is at most half way to either
 * neighbour.  At a power of two the lower neighbour is nearer.  All numbers are times 4.
 */
static bool reads_as(uint64_t n, int tens, uint64_t mantissa, int twos)
{
	const bool even = mantissa % 2 == 0;
	const bool power = mantissa == UINT64_C(1) << 52 && twos > -1074;
	const struct natural text = scale_natural(4 * n, tens, -twos);
	const struct natural low =
		scale_natural(4 * mantissa - (power ? 1 : 2), -tens, twos);
	const struct natural high = scale_natural(4 * mantissa + 2, -tens, twos);
	int above = compare_naturals(&text, &low), below = compare_naturals(&high, &text);

	return even ? above >= 0 && below >= 0 : above > 0 && below > 0;
}

/* Split VALUE into the returned number, of at most 53 bits, and a power of two. */
static uint64_t split_double(double value, int *twos)
{
	uint64_t bits, mantissa;

	memcpy(&bits, &value, sizeof(bits));
	mantissa = bits & ((UINT64_C(1) << 52) - 1);
	*twos = (int)(bits >> 52 & 0x7ff);
	if (*twos == 0) {
		*twos = -1074;
		return mantissa;
	}
	*twos -= 1075;
	return mantissa | UINT64_C(1) << 52;
}

size_t kp_decimal_digits(double value, char digits[KP_DECIMAL_MAX + 1], int *exponent)
{
	char text[40];
	int twos;
	const uint64_t mantissa = split_double(value, &twos);
	size_t n = 0;

	for (int precision = 0; precision < KP_DECIMAL_MAX; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, value);
		*exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
		n = 0;
		for (const char *p = text; *p != 'e'; p++) /* skips the locale's point */
			if (*p >= '0' && *p <= '9')
				digits[n++] = *p;
		digits[n] = '\0';
		if (reads_as(strtoull(digits, NULL, 10), *exponent - precision, mantissa,
			     twos))
			break;
	}
	return n;
}
