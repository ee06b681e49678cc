/* SPDX-License-Identifier: MIT */
#include "scheme.h"
#include "core/base/scheme.h"
#include "exit.h"

int scheme_take(const struct options *o, const struct option_help *row, void *slot)
{
	if (kp_scheme_find(kp_span_str(o->arg), slot))
		return EXIT_OK;
	return options_usage(o->help, "--%s %s: not none, zstd-per-kernel or zstd-shared",
			     row->long_name, o->arg);
}
