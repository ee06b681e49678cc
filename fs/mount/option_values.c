/* SPDX-License-Identifier: MIT */
#include "option_values.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "fs/base/log.h"

bool option_wrong(const char *option, const char *text)
{
	log_about(LOG_ERR, option, text);
	return false;
}

bool option_has_value(const char *option)
{
	return strchr(option, '=')[1] || option_wrong(option, "has no value");
}

bool option_number(const char *option, int base, const char *suffixes, uint64_t min,
		   uint64_t max, uint64_t *out)
{
	const char *text = strchr(option, '=') + 1, *suffix;
	unsigned long long n;
	unsigned shift = 0;
	char *end;

	errno = 0;
	n = strtoull(text, &end, base);
	if (end == text || errno || text[strspn(text, "0123456789")] != *end)
		return option_wrong(option, "not a number");
	if (*end) {
		suffix = strchr(suffixes, *end | 0x20);
		if (!suffix || end[1])
			return option_wrong(option, "not a number");
		shift = 10 * (unsigned)(suffix - suffixes + 1);
	}
	if (n > max >> shift || n << shift < min)
		return option_wrong(option, "out of range");
	*out = n << shift;
	return true;
}

bool option_unsigned(const char *option, int base, uint64_t min, uint64_t max,
		     unsigned *out)
{
	uint64_t n;

	if (!option_number(option, base, "", min, max, &n))
		return false;
	*out = (unsigned)n;
	return true;
}

bool option_seconds(const char *option, unsigned *out)
{
	static const struct {
		char letter;
		unsigned seconds;
	} units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}};
	const char *text = strchr(option, '=') + 1;
	size_t digits = strspn(text, "0123456789");
	unsigned long n = strtoul(text, NULL, 10);

	for (size_t i = 0; digits && i < KP_COUNT(units); i++) {
		if (text[digits] != units[i].letter || (text[digits] && text[digits + 1]))
			continue;
		if (n > 1000000000 / units[i].seconds)
			return option_wrong(option, "out of range");
		*out = (unsigned)n * units[i].seconds;
		return true;
	}
	return option_wrong(option, "not a time");
}
