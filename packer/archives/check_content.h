/* SPDX-License-Identifier: MIT */
/*
 * Is what archives store what they say?  What copies stored bytes asks first, so that damage
 * does not spread to archives that look new.
 */
#ifndef PACKER_ARCHIVES_CHECK_CONTENT_H
#define PACKER_ARCHIVES_CHECK_CONTENT_H

#include "core/archive/archive.h"

enum check_what {
	/* an entry decodes to its size and its hash, or its stored bytes match their hashes */
	CHECK_BYTES,
	CHECK_TYPES, /* and code is what its type says */
};

/*
 * Decode entries of A, and report each that is damaged, with its archive, in order of
 * entries.  ENTRIES says which to look at (NULL: all), and afterwards which are damaged.
 * JOBS threads do it; 0: one for each processor.  Returns whether all is right.
 */
bool check_content(const struct kpack_archive *a, bool *entries, enum check_what what,
		   uint64_t jobs);

#endif
