/* SPDX-License-Identifier: MIT */
/* Find objects that decode to the same bytes, across archives. */
#ifndef PACKER_HTML_REPORT_CONTENTS_H
#define PACKER_HTML_REPORT_CONTENTS_H

#include "report_figures.h"

/*
 * Give each object of F the number of its content, and fill in the largest objects and
 * the duplicates.  Hashes that archives state are trusted.
 */
void page_contents(struct page_figures *f, struct page_input *in, bool progress);

#endif
