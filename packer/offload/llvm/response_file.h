/* SPDX-License-Identifier: MIT */
/* Words of a command line, with @FILE replaced by the words in FILE. */
#ifndef PACKER_OFFLOAD_LLVM_RESPONSE_FILE_H
#define PACKER_OFFLOAD_LLVM_RESPONSE_FILE_H

#include "core/base/errors.h"

/*
 * The words ARGV[1] to ARGV[ARGC - 1]; where one is "@FILE" and there is such a file, its words
 * stand in its place, @FILE among them again.  In files words are separated by white space;
 * quotes, single and double, keep it, and a backslash keeps the next byte, in quotes too.
 * INVALID_ARGUMENT: a file that has itself among its words, or far too many.
 * The caller frees what it gets, with response_words_free, in any case.
 */
kpack_error_t response_words(int argc, char **argv, char ***words, size_t *n_words,
			     struct kpackx_error *why);
void response_words_free(char **words, size_t n_words);

#endif
