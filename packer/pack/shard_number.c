/* SPDX-License-Identifier: MIT */
#include "shard_number.h"

static bool parse_number(const char **text, unsigned *out)
{
	unsigned n = 0;
	const char *p = *text;

	for (; *p >= '0' && *p <= '9' && n <= SHARDS_MAX; p++)
		n = 10 * n + (unsigned)(*p - '0');
	if (p == *text || n == 0 || n > SHARDS_MAX)
		return false;
	*text = p;
	*out = n;
	return true;
}

bool shard_parse(const char *text, struct shard *out)
{
	struct shard shard;

	if (!parse_number(&text, &shard.index) || *text++ != '/' ||
	    !parse_number(&text, &shard.count) || *text || shard.index > shard.count)
		return false;
	*out = shard;
	return true;
}
