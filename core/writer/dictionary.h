/* SPDX-License-Identifier: MIT */
/*
 * Choosing a dictionary for the blocks of a shared archive: the parts of the unique bytes
 * whose content is in most blocks.
 */
#ifndef KP_CORE_WRITER_DICTIONARY_H
#define KP_CORE_WRITER_DICTIONARY_H

#include "core/base/errors.h"
#include "unique.h"

/* A dictionary is at most this part of the unique bytes that it is chosen for. */
enum { KP_DICTIONARY_SHARE = 4 };

/*
 * Choose at most MOST bytes; *SIZE 0 and *OUT NULL: there is nothing worth it.  The caller
 * frees *OUT.  IO_ERROR; OUT_OF_MEMORY.
 */
kpack_error_t kp_dictionary_choose(const struct kp_unique *u, uint64_t block_size,
				   size_t most, uint8_t **out, size_t *size,
				   struct kpackx_error *why);

#endif
