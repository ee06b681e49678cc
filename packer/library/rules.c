/* SPDX-License-Identifier: MIT */
#include "rules.h"

kpack_error_t rules_read(const char *path, struct rules **out, struct kpackx_error *why)
{
	(void)path, (void)out;
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "not built");
}

void rules_free(struct rules *rules)
{
	(void)rules;
}

size_t rules_count(const struct rules *rules)
{
	(void)rules;
	return 0;
}

const struct library *rules_library(const struct rules *rules, size_t i)
{
	(void)rules, (void)i;
	return NULL;
}
