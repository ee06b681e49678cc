/* SPDX-License-Identifier: MIT */
/* The boxes of a map before they have a place: what each shows, and how much of it. */
#ifndef PACKER_HTML_REPORT_NODES_H
#define PACKER_HTML_REPORT_NODES_H

#include "figures.h"

/* A box to be: what it shows, and how much. */
struct page_node {
	const struct page_row *row; /* NULL: OTHERS small ones together */
	size_t others;
	size_t first, count; /* of a library: its cells */
	uint64_t size;
	uint64_t decoded, stored;
};

struct page_nodes {
	struct page_node *items;
	size_t count;
	uint64_t total;
};

/* ROW by itself; its size is that of decoded bytes, or of stored ones. */
struct page_node page_node_of(const struct page_row *row, bool decoded);

/* A node for each library of F, with its cells; OUT has room for as many as there are cells. */
void page_nodes_libraries(const struct page_figures *f, bool decoded,
			  struct page_nodes *out);

/* Put those below LEAST together, then sort them by size. */
void page_nodes_settle(struct page_nodes *nodes, double least);

#endif
