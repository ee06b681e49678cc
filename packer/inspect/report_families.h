/* SPDX-License-Identifier: MIT */
/* The sizes of one archive for several architectures and of an archive for each. */
#ifndef PACKER_HTML_REPORT_FAMILIES_H
#define PACKER_HTML_REPORT_FAMILIES_H

#include "report_figures.h"
#include "core/target/target.h"

struct page_family {
	/* for several families with the same members, their names joined by " / " */
	char name[4 * KP_TARGET_TEXT_MAX];
	const char *kind;  /* "features", "family", ...; for several names the first's */
	bool all;          /* the family of every GPU */
	uint32_t *members; /* rows of the figures' ARCHES */
	size_t n_members;
	uint64_t apart;       /* sum over an archive for each member */
	uint64_t together;    /* one archive, which has every content once */
	uint64_t least, most; /* size of a separate archive: a user's download now */
};

struct page_families {
	struct page_family *items; /* sorted by saving, most first */
	size_t count;
};

/*
 * Find the families of which F has two architectures or more.  The architecture of code
 * that suits every GPU is in no family.
 */
void page_families_open(const struct page_figures *f, struct page_families *out);
void page_families_close(struct page_families *families);

#endif
