/* SPDX-License-Identifier: MIT */
#include "core/base/decimal.h"
#include "tests/unit/unit.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(test_known)
{
	static const struct {
		double value;
		const char *digits;
		int exponent;
	} known[] = {
		{1, "1", 0},
		{0.1, "1", -1},
		{10, "1", 1},
		{3.14, "314", 0},
		{0.1 + 0.2, "30000000000000004", -1},
		{1e22, "1", 22},
		{1e23, "1", 23},
		{1e-30, "1", -30},
		{9007199254740993.0, "9007199254740992", 15},
		{DBL_MAX, "17976931348623157", 308},
		{DBL_MIN, "22250738585072014", -308},
		{DBL_TRUE_MIN, "5", -324},
		{2.718281828459045, "2718281828459045", 0},
	};
	char digits[KP_DECIMAL_MAX + 1];
	int exponent;

	for (size_t i = 0; i < COUNT(known); i++) {
		assert_int_equal(kp_decimal_digits(known[i].value, digits, &exponent),
				 strlen(known[i].digits));
		assert_string_equal(digits, known[i].digits);
		assert_int_equal(exponent, known[i].exponent);
	}
}

/* The digits read back as VALUE, and with one digit less as another value. */
static void check(double value)
{
	char digits[KP_DECIMAL_MAX + 1], text[64];
	int exponent;
	size_t n = kp_decimal_digits(value, digits, &exponent);

	snprintf(text, sizeof(text), "%c.%se%d", digits[0], digits + 1, exponent);
	assert_true(strtod(text, NULL) == value);
	if (n == 1)
		return;
	snprintf(text, sizeof(text), "%.*e", (int)n - 2, value);
	assert_true(strtod(text, NULL) != value);
}

static void check_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	if (isfinite(value) && value > 0)
		check(value);
}

TEST(test_any)
{
	uint64_t bits = 1;

	for (int i = 0; i < 20000; i++) {
		bits = bits * UINT64_C(6364136223846793005) +
		       UINT64_C(1442695040888963407);
		check_bits(bits & ~(UINT64_C(1) << 63));
	}
	for (uint64_t exponent = 0; exponent < 0x7ff; exponent++)
		for (uint64_t next = 0; next < 3; next++)
			check_bits((exponent << 52) + next - 1);
}
