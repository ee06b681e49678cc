/* SPDX-License-Identifier: MIT */
/* What one archive for several architectures would cost, or save. */
#ifndef PACKER_HTML_REPORT_FAMILIES_H
#define PACKER_HTML_REPORT_FAMILIES_H

#include "figures.h"
#include "core/target/target.h"

struct page_family {
	char name[4 * KP_TARGET_TEXT_MAX]; /* several, where they have the same members */
	const char *kind;  /* by what it is one; of several names the first's */
	bool all;          /* of every GPU */
	uint32_t *members; /* rows of arches in the figures */
	size_t n_members;
	uint64_t apart;       /* an archive for each: the sum */
	uint64_t together;    /* one archive: every content once */
	uint64_t least, most; /* of the archives apart: what a user downloads now */
};

struct page_families {
	struct page_family *items; /* by what they save, most first */
	size_t count;
};

/*
 * The families of which F has two architectures or more; that of what suits every GPU is
 * in none.  OUT_OF_MEMORY.
 */
kpack_error_t page_families_open(const struct page_figures *f, struct page_families *out,
				 struct kpackx_error *why);
void page_families_close(struct page_families *families);

#endif
