/* SPDX-License-Identifier: MIT */
#include "report_map.h"
#include <inttypes.h>
#include <stdlib.h>
#include "report_legend.h"
#include "report_nodes.h"
#include "report_text.h"
#include "report_treemap.h"
#include "packer/cli/markup.h"
#include "packer/cli/xalloc.h"

/* Sizes of letters, to find out what fits into a box. */
enum { LETTER = 7, LINE = 15, MARGIN = 6, LEAST = 10 };

/* --- drawing ------------------------------------------------------------------------ */

struct drawing {
	FILE *out;
	const struct page_figures *f;
	const struct page_map *map;
	const uint32_t *keys;    /* per cell: the row of its architecture */
	struct page_node *nodes; /* room for the cells of any library */
	uint64_t *sizes;
	struct treemap_box *boxes;
	double least;
};

static void print_key(FILE *out, uint32_t key)
{
	if (key < PAGE_KEYS)
		fprintf(out, "k%" PRIu32, key);
	else
		fputs("kx", out);
}

static void print_sizes(FILE *out, const struct page_node *n)
{
	page_size(out, n->stored);
	fputs(" stored, ", out);
	page_size(out, n->decoded);
	fputs(" decoded", out);
}

static void print_box(FILE *out, const struct treemap_box *b)
{
	fprintf(out, " x=\"%.3f\" y=\"%.3f\" width=\"%.3f\" height=\"%.3f\"", b->x, b->y,
		b->w, b->h);
}

static size_t letters(double width)
{
	return width > 2 * MARGIN ? (size_t)((width - 2 * MARGIN) / LETTER) : 0;
}

/* The number of bytes of the first MOST characters. */
static size_t head_of(const char *text, size_t most)
{
	size_t n = 0;

	for (; text[n]; n++)
		if (((unsigned char)text[n] & 0xc0) != 0x80 && most-- == 0)
			break;
	return n;
}

/* Print as much of NAME as there is room for; for a path prefer its last component. */
static void print_label(FILE *out, struct kp_span name, size_t room)
{
	char *text = page_shortened(name, PAGE_LABEL);
	const char *shown = text, *slash = strrchr(shown, '/');
	size_t n;

	if (head_of(shown, room) < strlen(shown) && slash && slash[1])
		shown = slash + 1;
	n = head_of(shown, room);
	if (shown[n])
		n = head_of(shown, room - 1);
	markup_put(out, (struct kp_span){(const uint8_t *)shown, n});
	if (shown[n])
		fputs("\u2026", out);
	free(text);
}

static void print_others(FILE *out, const struct page_node *n, const char *what)
{
	page_number(out, n->others);
	fprintf(out, " other %s", what);
}

static void begin_text(FILE *out, const char *class, double x, double y)
{
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
}

/* Whether there is room for the name, or for a recognisable part of it. */
static bool label_fits(const struct page_node *n, size_t room)
{
	return room >= LEAST || (room >= 4 && (!n->row || n->row->second.size <= room));
}

/*
 * Draw the architecture's name and size at the bottom: the library's name is at the top.
 */
static void draw_cell_label(struct drawing *d, const struct page_node *n,
			    const struct treemap_box *b, bool below_name)
{
	size_t room = letters(b->w);
	double high = b->h - (below_name ? LINE + 4 : 0);

	if (high < LINE + 4 || !label_fits(n, room))
		return;
	if (high >= 2 * LINE + 4 && room >= 8) {
		begin_text(d->out, "s", b->x + MARGIN, b->y + b->h - MARGIN);
		page_size(d->out, n->size);
		fputs("</text>", d->out);
		begin_text(d->out, "a", b->x + MARGIN, b->y + b->h - MARGIN - LINE);
	} else {
		begin_text(d->out, "a", b->x + MARGIN, b->y + b->h - MARGIN);
	}
	if (n->row)
		print_label(d->out, n->row->second, room);
	else
		fprintf(d->out, "+%zu", n->others);
	fputs("</text>\n", d->out);
}

static void draw_cell(struct drawing *d, const struct page_node *library,
		      const struct page_node *n, const struct treemap_box *b)
{
	FILE *out = d->out;

	fputs("<rect class=\"", out);
	print_key(out, n->row ? d->keys[n->row - d->f->cells.items] : PAGE_KEYS);
	putc('"', out);
	print_box(out, b);
	fprintf(out, " data-b=\"%" PRIu64 "\"><title>", n->size);
	page_text(out, library->row->name, PAGE_LABEL);
	fputs("\n", out);
	if (n->row)
		page_text(out, n->row->second, PAGE_LABEL);
	else
		print_others(out, n, "architectures");
	fputs("\n", out);
	print_sizes(out, n);
	fputs("</title></rect>\n", out);
}

/* Whether there is room for the name of a library. */
static bool name_fits(const struct treemap_box *b)
{
	return letters(b->w) >= 5 && b->h >= LINE + 6;
}

static void draw_name(struct drawing *d, const struct page_node *n,
		      const struct treemap_box *b)
{
	if (!name_fits(b))
		return;
	begin_text(d->out, "l", b->x + MARGIN, b->y + LINE);
	if (n->row)
		print_label(d->out, n->row->name, letters(b->w));
	else
		fprintf(d->out, "+%zu", n->others);
	fputs("</text>\n", d->out);
}

static void lay_out_nodes(const struct page_node *nodes, size_t n,
			  const struct treemap_box *in, uint64_t *sizes,
			  struct treemap_box *boxes)
{
	for (size_t i = 0; i < n; i++)
		sizes[i] = nodes[i].size;
	treemap_layout(sizes, n, in, boxes);
}

static void draw_cells(struct drawing *d, const struct page_node *library,
		       const struct treemap_box *box)
{
	struct page_nodes cells = {.items = d->nodes, .count = library->count};

	for (size_t i = 0; i < library->count; i++)
		cells.items[i] = page_node_of(&d->f->cells.items[library->first + i],
					      d->map->decoded);
	page_nodes_settle(&cells, d->least);
	lay_out_nodes(cells.items, cells.count, box, d->sizes, d->boxes);
	for (size_t i = 0; i < cells.count; i++)
		if (cells.items[i].size)
			draw_cell(d, library, &cells.items[i], &d->boxes[i]);
	for (size_t i = 0; i < cells.count; i++)
		draw_cell_label(d, &cells.items[i], &d->boxes[i],
				name_fits(box) && d->boxes[i].y - box->y < 1);
}

static void draw_rest(struct drawing *d, const struct page_node *n,
		      const struct treemap_box *b)
{
	fputs("<rect class=\"kx\"", d->out);
	print_box(d->out, b);
	fprintf(d->out, " data-b=\"%" PRIu64 "\"><title>", n->size);
	print_others(d->out, n, "libraries");
	fputs("\n", d->out);
	print_sizes(d->out, n);
	fputs("</title></rect>\n", d->out);
}

static void draw_library(struct drawing *d, const struct page_node *n,
			 const struct treemap_box *b)
{
	if (n->size == 0)
		return;
	fprintf(d->out, "<g class=\"lib\" data-z=\"%.3f %.3f %.3f %.3f\">\n", b->x, b->y,
		b->w, b->h);
	if (n->row)
		draw_cells(d, n, b);
	else
		draw_rest(d, n, b);
	fputs("<rect class=\"o\"", d->out);
	print_box(d->out, b);
	fputs("/>\n", d->out);
	draw_name(d, n, b);
	fputs("</g>\n", d->out);
}

static void draw_head(const struct drawing *d, const struct page_nodes *libraries)
{
	const struct page_map *map = d->map;
	const char *what = map->decoded ? "decoded" : "stored";

	fprintf(d->out,
		"<svg class=\"map\" id=\"%s\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
		"aria-labelledby=\"%s-t %s-d\">\n<title id=\"%s-t\">What is big, by %s "
		"bytes</title>\n<desc id=\"%s-d\">A treemap: a box for each library, in "
		"it "
		"one for each architecture, their areas in proportion to %s bytes; in "
		"all ",
		map->id, map->width, map->height, map->id, map->id, map->id, what,
		map->id, what);
	page_size(d->out, libraries->total);
	fputs(". The tables below say the same in numbers.</desc>\n", d->out);
}

static void draw_map(struct drawing *d, struct page_nodes *libraries,
		     struct treemap_box *boxes, uint64_t *sizes)
{
	struct treemap_box all = {0, 0, d->map->width, d->map->height};

	d->least = d->map->least * (double)libraries->total;
	page_nodes_settle(libraries, d->least);
	lay_out_nodes(libraries->items, libraries->count, &all, sizes, boxes);
	draw_head(d, libraries);
	for (size_t i = 0; i < libraries->count; i++)
		draw_library(d, &libraries->items[i], &boxes[i]);
	fputs("</svg>\n", d->out);
}

void page_map(FILE *out, const struct page_figures *f, const struct page_map *map)
{
	size_t n = f->cells.count + 1;
	struct page_nodes libraries = {.items = xcalloc(n, sizeof(*libraries.items))};
	struct treemap_box *boxes = xcalloc(2 * n, sizeof(*boxes));
	uint64_t *sizes = xcalloc(2 * n, sizeof(*sizes));
	struct page_node *nodes = xcalloc(n, sizeof(*nodes));
	uint32_t *keys = page_legend_keys(f);
	struct drawing d = {.out = out,
			    .f = f,
			    .map = map,
			    .keys = keys,
			    .nodes = nodes,
			    .sizes = sizes + n,
			    .boxes = boxes + n};

	page_nodes_libraries(f, map->decoded, &libraries);
	draw_map(&d, &libraries, boxes, sizes);
	free(libraries.items);
	free(boxes);
	free(sizes);
	free(nodes);
	free(keys);
}
