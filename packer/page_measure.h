/* SPDX-License-Identifier: MIT */
/* What device code that is not packed would be, packed: it is packed, and looked at. */
#ifndef PAGE_MEASURE_H
#define PAGE_MEASURE_H

#include "page_input.h"

/*
 * Pack ROOT, a tree or a file, as kpack pack does by default, into a temporary directory
 * ($TMPDIR, or /var/tmp), add the archives to IN and remove them.  What goes wrong is told,
 * and a fault of IN.
 */
void page_measure(struct page_input *in, const char *root, const char *name, bool quiet);

#endif
