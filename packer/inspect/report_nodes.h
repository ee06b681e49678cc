/* SPDX-License-Identifier: MIT */
/* The boxes of a map before they are laid out: the content of each, and its size. */
#ifndef PACKER_HTML_REPORT_NODES_H
#define PACKER_HTML_REPORT_NODES_H

#include "report_figures.h"

/* The content and the size of a future box. */
struct page_node {
	const struct page_row *row; /* NULL: OTHERS small nodes as one */
	size_t others;
	size_t first, count; /* for a library: its cells */
	uint64_t size;
	uint64_t decoded, stored;
};

struct page_nodes {
	struct page_node *items;
	size_t count;
	uint64_t total;
};

/* A node for ROW; its size is the decoded bytes, or the stored bytes. */
struct page_node page_node_of(const struct page_row *row, bool decoded);

/*
 * Fill OUT with a node for each library of F, with its cells.  OUT has room for F's
 * cells.
 */
void page_nodes_libraries(const struct page_figures *f, bool decoded,
			  struct page_nodes *out);

/* Join the nodes smaller than LEAST into one, then sort the nodes by size. */
void page_nodes_settle(struct page_nodes *nodes, double least);

#endif
