/* SPDX-License-Identifier: MIT */
/* Trees of one name that a run did not make: an earlier one did, for other targets. */
#ifndef PACKER_SPLIT_OTHER_TREES_H
#define PACKER_SPLIT_OTHER_TREES_H

#include <stddef.h>

/* Tell every directory STEM_TARGET in DIR that is not one of the N that were MADE. */
void other_trees_tell(const char *dir, const char *stem, const char *const *made,
		      size_t n);

#endif
