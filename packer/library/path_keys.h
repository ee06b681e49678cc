/* SPDX-License-Identifier: MIT */
/* The keys of code objects that tables of kernel paths name. */
#ifndef PACKER_LIBRARY_ROCFFT_PATH_KEYS_H
#define PACKER_LIBRARY_ROCFFT_PATH_KEYS_H

#include "library.h"

/*
 * Add a key for each row of SELF's databases: the code object that the row names gets the
 * key fft/<arch>/<length>/<precision>/kernel, with the row's columns as metadata.  The
 * entry with the file's path has the metadata on which all rows that name the file agree.
 * Further rows of the same arch, length and precision get kernel#1, kernel#2 ..., in order
 * of databases and rows.  A code object that belongs to no library becomes SELF's.  A row
 * that cannot be used gives its database a warning.  OUT_OF_MEMORY, and IO_ERROR.
 */
kpack_error_t path_keys_add(const struct library *self, struct library_found *found,
			    struct kpackx_error *why);

#endif
