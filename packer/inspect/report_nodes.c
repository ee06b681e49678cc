/* SPDX-License-Identifier: MIT */
#include "report_nodes.h"
#include <stdlib.h>

static int by_size(const void *pa, const void *pb)
{
	const struct page_node *a = pa, *b = pb;

	if (a->size != b->size)
		return KP_ORDER(b->size, a->size);
	if (!a->row || !b->row)
		return !a->row - !b->row;
	return KP_ORDER(a->row, b->row);
}

static void add_node(struct page_node *to, const struct page_node *n)
{
	page_add(&to->size, n->size);
	page_add(&to->decoded, n->decoded);
	page_add(&to->stored, n->stored);
}

void page_nodes_settle(struct page_nodes *nodes, double least)
{
	struct page_node others = {0}, alone = {0};
	size_t n = 0;

	for (size_t i = 0; i < nodes->count; i++) {
		if ((double)nodes->items[i].size >= least) {
			nodes->items[n++] = nodes->items[i];
			continue;
		}
		alone = nodes->items[i];
		add_node(&others, &alone);
		others.others++;
	}
	if (others.others)
		nodes->items[n++] = others.others == 1 ? alone : others;
	nodes->count = n;
	qsort(nodes->items, n, sizeof(*nodes->items), by_size);
}

struct page_node page_node_of(const struct page_row *row, bool decoded)
{
	return (struct page_node){
		.row = row,
		.size = decoded ? row->decoded : row->stored,
		.decoded = row->decoded,
		.stored = row->stored,
	};
}

static bool same_library(const struct page_row *a, const struct page_row *b)
{
	return a->database == b->database && kp_span_eq(a->name, b->name);
}

void page_nodes_libraries(const struct page_figures *f, bool decoded,
			  struct page_nodes *out)
{
	const struct page_rows *cells = &f->cells;

	for (size_t i = 0; i < cells->count; i++) {
		struct page_node n = page_node_of(&cells->items[i], decoded);
		struct page_node *last = &out->items[out->count ? out->count - 1 : 0];

		page_add(&out->total, n.size);
		if (out->count && same_library(last->row, n.row)) {
			add_node(last, &n);
			last->count++;
		} else {
			n.first = i;
			n.count = 1;
			out->items[out->count++] = n;
		}
	}
}
