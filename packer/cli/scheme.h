/* SPDX-License-Identifier: MIT */
/* The option --scheme of subcommands that write archives. */
#ifndef PACKER_CLI_SCHEME_H
#define PACKER_CLI_SCHEME_H

#include "options.h"

/* As `take` of struct option_place; SLOT is a kpack_compression_t. */
int scheme_take(const struct options *o, const struct option_help *row, void *slot);

#endif
