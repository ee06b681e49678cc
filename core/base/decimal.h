/* SPDX-License-Identifier: MIT */
/* Numbers as decimal text that reads as the same number, whatever the locale. */
#ifndef KP_CORE_BASE_DECIMAL_H
#define KP_CORE_BASE_DECIMAL_H

#include <stddef.h>

enum { KP_DECIMAL_MAX = 17 };

/*
 * The fewest significant digits that stand for VALUE alone, which is finite and above 0:
 * D.DDDD * 10^EXPONENT.  Returns how many there are; a NUL follows.
 */
size_t kp_decimal_digits(double value, char digits[KP_DECIMAL_MAX + 1], int *exponent);

#endif
