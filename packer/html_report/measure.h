/* SPDX-License-Identifier: MIT */
/* What device code that is not packed would be, packed: it is packed, and looked at. */
#ifndef PACKER_HTML_REPORT_MEASURE_H
#define PACKER_HTML_REPORT_MEASURE_H

#include "input.h"

/* What ROOT is. */
enum page_measured {
	PAGE_FILE,
	PAGE_TREE, /* without archives */
	PAGE_REST, /* a tree with archives: binaries in it may be not packed */
};

/*
 * Pack ROOT as kpack pack does by default, into files without a name ($TMPDIR, or /var/tmp
 * has room for them), and add the archives to IN.  What goes wrong is reported, and a fault of IN;
 * what is faulty in a tree is left out.
 */
void page_measure(struct page_input *in, const char *root, const char *name,
		  enum page_measured what, bool quiet);

#endif
