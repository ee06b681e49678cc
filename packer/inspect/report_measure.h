/* SPDX-License-Identifier: MIT */
/* Measure the packed size of device code that is not packed yet, by packing it. */
#ifndef PACKER_HTML_REPORT_MEASURE_H
#define PACKER_HTML_REPORT_MEASURE_H

#include "report_input.h"

/* The kind of ROOT. */
enum page_measured {
	PAGE_FILE,
	PAGE_TREE, /* without archives */
	PAGE_REST, /* a tree with archives, in which some binaries may not be packed */
};

/*
 * Pack ROOT as kpack pack does by default, into unnamed files in $TMPDIR or /var/tmp, and
 * add the archives to IN.  Failures are reported and are faults of IN; faulty files of a
 * tree are left out.
 */
void page_measure(struct page_input *in, const char *root, const char *name,
		  enum page_measured what, bool quiet);

#endif
