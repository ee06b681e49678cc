/* SPDX-License-Identifier: MIT */
/* The words of a command line, with @FILE replaced by the words in FILE. */
#ifndef PACKER_OFFLOAD_LLVM_RESPONSE_FILE_H
#define PACKER_OFFLOAD_LLVM_RESPONSE_FILE_H

#include "core/base/errors.h"

/*
 * Copy the words of ARGV, with NULL behind the last.  Behind the first, a word "@FILE"
 * whose file exists is replaced by the words in FILE, recursively.  In files white space
 * separates words; single and double quotes keep white space, and a backslash keeps the
 * next byte, inside quotes too.
 * INVALID_ARGUMENT: a file includes itself, or the files are far too long.
 * The caller frees the words with response_words_free, after a failure too.
 */
kpack_error_t response_words(int argc, char **argv, char ***words, size_t *n_words,
			     struct kpackx_error *why);
void response_words_free(char **words, size_t n_words);

#endif
