/* SPDX-License-Identifier: MIT */
/* The option --scheme of subcommands that write archives. */
#ifndef PACKER_CLI_SCHEME_H
#define PACKER_CLI_SCHEME_H

#include "exit.h"
#include "options.h"

/* As `take` of struct option_place; SLOT is a kpack_compression_t. */
static inline int scheme_take(const struct options *o, const struct option_help *row,
			      void *slot)
{
	if (kp_scheme_find(kp_span_str(o->arg), slot))
		return EXIT_OK;
	return options_usage(o->help, "--%s %s: not none, zstd-per-kernel or zstd-shared",
			     row->long_name, o->arg);
}

#endif
