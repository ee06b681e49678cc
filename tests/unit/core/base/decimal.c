/* SPDX-License-Identifier: MIT */
#include "core/base/decimal.h"
#include "tests/unit/unit.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

TEST(digits_are_the_fewest_that_read_back)
{
	uint64_t bits = 1;

	for (int i = 0; i < 3000; i++) {
		bits = bits * UINT64_C(6364136223846793005) +
		       UINT64_C(1442695040888963407);
		check_bits(bits & ~(UINT64_C(1) << 63));
	}
	for (uint64_t exponent = 0; exponent < 0x7ff; exponent++)
		for (uint64_t next = 0; next < 3; next++)
			check_bits((exponent << 52) + next - 1);
}
