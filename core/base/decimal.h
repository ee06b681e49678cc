/* SPDX-License-Identifier: MIT */
/* Numbers as decimal text that reads back as the same number in every locale. */
#ifndef KP_CORE_BASE_DECIMAL_H
#define KP_CORE_BASE_DECIMAL_H

#include <stddef.h>

enum { KP_DECIMAL_MAX = 17 };

/*
 * Write to DIGITS the fewest significant digits that read back as VALUE, which is finite
 * and above 0, and a NUL: VALUE is D.DDDD * 10^EXPONENT.  Returns the number of digits.
 */
size_t kp_decimal_digits(double value, char digits[KP_DECIMAL_MAX + 1], int *exponent);

#endif
