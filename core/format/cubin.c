/* SPDX-License-Identifier: MIT */
#include "format.h"

static bool probe(struct kp_span head)
{
	(void)head;
	return false;
}

const struct kp_format kp_format_cubin = {
	.name = "cubin",
	.type = "cubin",
	.probe = probe,
};
