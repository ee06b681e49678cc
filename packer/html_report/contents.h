/* SPDX-License-Identifier: MIT */
/* Which objects decode to the same bytes, across archives. */
#ifndef PACKER_HTML_REPORT_CONTENTS_H
#define PACKER_HTML_REPORT_CONTENTS_H

#include "figures.h"

/*
 * Give each object of F the number of its content; then what is largest, and what is there
 * twice.  Hashes that archives state are believed.
 */
kpack_error_t page_contents(struct page_figures *f, struct page_input *in, bool progress,
			    struct kpackx_error *why);

#endif
