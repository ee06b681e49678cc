/* SPDX-License-Identifier: MIT */
/* Report trees that an earlier run made under the same name for other targets. */
#ifndef PACKER_SPLIT_OTHER_TREES_H
#define PACKER_SPLIT_OTHER_TREES_H

#include <stddef.h>

/* Report every directory STEM_TARGET in DIR that is not one of the N trees in MADE. */
void other_trees_report(const char *dir, const char *stem, const char *const *made,
			size_t n);

#endif
