/* SPDX-License-Identifier: MIT */
/* The file of an option -o of a command that prints: it is replaced, or printed to. */
#ifndef PACKER_FILES_OUTPUT_H
#define PACKER_FILES_OUTPUT_H

#include <stdbool.h>
#include "core/base/errors.h"

/*
 * A file that is not regular (a pipe, /dev/null) or that is open (/dev/stdout) is written
 * to: standard output becomes this file, and *STREAM true.  Any other PATH is for
 * below_outfile_open, which replaces what has the name, also a link.
 */
kpack_error_t output_open(const char *path, bool *stream, struct kpackx_error *why);

#endif
