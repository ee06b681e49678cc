/* SPDX-License-Identifier: MIT */
/* The keys of code objects that tables of kernel paths name. */
#ifndef PACKER_LIBRARY_ROCFFT_PATH_KEYS_H
#define PACKER_LIBRARY_ROCFFT_PATH_KEYS_H

#include "packer/library/library.h"

/*
 * For each row of the databases that are SELF's: the code object gets the key
 * fft/<arch>/<length>/<precision>/kernel with what the row says as metadata; the file's path has what
 * all rows that name it agree on.  Later rows of the same arch, length and precision are kernel#1, kernel#2 ...,
 * in order of databases and rows.  A code object that is nobody's becomes SELF's.
 * What cannot be done is the database's warning.  OUT_OF_MEMORY, and IO_ERROR.
 */
kpack_error_t path_keys_add(const struct library *self, struct library_found *found,
			    struct kpackx_error *why);

#endif
