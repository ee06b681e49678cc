/* SPDX-License-Identifier: MIT */
#include "page_map.h"
#include <inttypes.h>
#include <stdlib.h>
#include "page_legend.h"
#include "page_text.h"
#include "treemap.h"

/* Sizes of letters, for what fits into a box. */
enum { LETTER = 7, LINE = 15, MARGIN = 6, LEAST = 10 };

/* A box to be: what it shows, and how much. */
struct node {
	const struct page_row *row; /* NULL: OTHERS small ones together */
	size_t others;
	size_t first, count; /* of a library: its cells */
	uint64_t size;
	uint64_t decoded, stored;
};

struct nodes {
	struct node *items;
	size_t count;
	uint64_t total;
};

/* --- nodes --------------------------------------------------------------------------- */

static int by_size(const void *pa, const void *pb)
{
	const struct node *a = pa, *b = pb;

	if (a->size != b->size)
		return a->size < b->size ? 1 : -1;
	if (!a->row || !b->row)
		return !a->row - !b->row;
	return a->row < b->row ? -1 : a->row > b->row;
}

static void add(struct node *to, const struct node *n)
{
	page_add(&to->size, n->size);
	page_add(&to->decoded, n->decoded);
	page_add(&to->stored, n->stored);
}

/* Put those below LEAST together, then sort them by size. */
static void settle(struct nodes *nodes, double least)
{
	struct node others = {0}, alone = {0};
	size_t n = 0;

	for (size_t i = 0; i < nodes->count; i++) {
		if ((double)nodes->items[i].size >= least) {
			nodes->items[n++] = nodes->items[i];
			continue;
		}
		alone = nodes->items[i];
		add(&others, &alone);
		others.others++;
	}
	if (others.others)
		nodes->items[n++] = others.others == 1 ? alone : others;
	nodes->count = n;
	qsort(nodes->items, n, sizeof(*nodes->items), by_size);
}

static struct node node_of(const struct page_map *map, const struct page_row *row)
{
	return (struct node){
		.row = row,
		.size = map->decoded ? row->decoded : row->stored,
		.decoded = row->decoded,
		.stored = row->stored,
	};
}

static bool same_library(const struct page_row *a, const struct page_row *b)
{
	return a->database == b->database && kp_span_eq(a->name, b->name);
}

static void gather_libraries(const struct page_figures *f, const struct page_map *map,
			     struct nodes *out)
{
	const struct page_rows *cells = &f->cells;

	for (size_t i = 0; i < cells->count; i++) {
		struct node n = node_of(map, &cells->items[i]);
		struct node *last = &out->items[out->count ? out->count - 1 : 0];

		page_add(&out->total, n.size);
		if (out->count && same_library(last->row, n.row)) {
			add(last, &n);
			last->count++;
		} else {
			n.first = i;
			n.count = 1;
			out->items[out->count++] = n;
		}
	}
}

/* --- drawing ------------------------------------------------------------------------- */

struct drawing {
	FILE *out;
	const struct page_figures *f;
	const struct page_map *map;
	const uint32_t *keys; /* per cell: its architecture's number */
	struct node *nodes;   /* room for the cells of any library */
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

static void print_sizes(FILE *out, const struct node *n)
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

/* Bytes of the first MOST characters. */
static size_t head_of(const char *text, size_t most)
{
	size_t n = 0;

	for (; text[n]; n++)
		if (((unsigned char)text[n] & 0xc0) != 0x80 && most-- == 0)
			break;
	return n;
}

/* NAME as far as there is room; of a path rather its end. */
static void print_label(FILE *out, struct kp_span name, size_t room)
{
	char *text = page_shortened(name, PAGE_LABEL);
	const char *shown = text ? text : "?";
	const char *slash = strrchr(shown, '/');
	size_t n;

	if (head_of(shown, room) < strlen(shown) && slash && slash[1])
		shown = slash + 1;
	n = head_of(shown, room);
	if (shown[n])
		n = head_of(shown, room - 1);
	page_markup(out, (struct kp_span){(const uint8_t *)shown, n});
	if (shown[n])
		fputs("\u2026", out);
	free(text);
}

static void print_others(FILE *out, const struct node *n, const char *what)
{
	page_number(out, n->others);
	fprintf(out, " other %s", what);
}

static void begin_text(FILE *out, const char *class, double x, double y)
{
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
}

/* Is there room for the name, or for so much of it that it tells something? */
static bool fits(const struct node *n, size_t room)
{
	return room >= LEAST || (room >= 4 && (!n->row || n->row->second.size <= room));
}

/* The architecture's name and size, at the bottom: the library's name is on top. */
static void draw_cell_label(struct drawing *d, const struct node *n,
			    const struct treemap_box *b, bool below_name)
{
	size_t room = letters(b->w);
	double high = b->h - (below_name ? LINE + 4 : 0);

	if (high < LINE + 4 || !fits(n, room))
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

static void draw_cell(struct drawing *d, const struct node *library, const struct node *n,
		      const struct treemap_box *b)
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

/* Is there room for the name of a library? */
static bool named(const struct treemap_box *b)
{
	return letters(b->w) >= 5 && b->h >= LINE + 6;
}

static void draw_name(struct drawing *d, const struct node *n,
		      const struct treemap_box *b)
{
	if (!named(b))
		return;
	begin_text(d->out, "l", b->x + MARGIN, b->y + LINE);
	if (n->row)
		print_label(d->out, n->row->name, letters(b->w));
	else
		fprintf(d->out, "+%zu", n->others);
	fputs("</text>\n", d->out);
}

static void layout(const struct node *nodes, size_t n, const struct treemap_box *in,
		   uint64_t *sizes, struct treemap_box *boxes)
{
	for (size_t i = 0; i < n; i++)
		sizes[i] = nodes[i].size;
	treemap_layout(sizes, n, in, boxes);
}

static void draw_cells(struct drawing *d, const struct node *library,
		       const struct treemap_box *box)
{
	struct nodes cells = {.items = d->nodes, .count = library->count};

	for (size_t i = 0; i < library->count; i++)
		cells.items[i] = node_of(d->map, &d->f->cells.items[library->first + i]);
	settle(&cells, d->least);
	layout(cells.items, cells.count, box, d->sizes, d->boxes);
	for (size_t i = 0; i < cells.count; i++)
		if (cells.items[i].size)
			draw_cell(d, library, &cells.items[i], &d->boxes[i]);
	for (size_t i = 0; i < cells.count; i++)
		draw_cell_label(d, &cells.items[i], &d->boxes[i],
				named(box) && d->boxes[i].y - box->y < 1);
}

static void draw_rest(struct drawing *d, const struct node *n,
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

static void draw_library(struct drawing *d, const struct node *n,
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

static void draw_head(const struct drawing *d, const struct nodes *libraries)
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

static void draw(struct drawing *d, struct nodes *libraries, struct treemap_box *boxes,
		 uint64_t *sizes)
{
	struct treemap_box all = {0, 0, d->map->width, d->map->height};

	d->least = d->map->least * (double)libraries->total;
	settle(libraries, d->least);
	layout(libraries->items, libraries->count, &all, sizes, boxes);
	draw_head(d, libraries);
	for (size_t i = 0; i < libraries->count; i++)
		draw_library(d, &libraries->items[i], &boxes[i]);
	fputs("</svg>\n", d->out);
}

/* --- keys ---------------------------------------------------------------------------- */

static int by_name(const void *pa, const void *pb, void *arg)
{
	const struct page_row *rows = arg;

	return kp_span_cmp(rows[*(const uint32_t *)pa].name,
			   rows[*(const uint32_t *)pb].name);
}

static uint32_t key_of(const struct page_figures *f, const uint32_t *order,
		       struct kp_span arch)
{
	size_t low = 0, high = f->arches.count;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (kp_span_cmp(f->arches.items[order[mid]].name, arch) <= 0)
			low = mid;
		else
			high = mid;
	}
	return order[low];
}

/* The number of an architecture is its place among them by size. */
static uint32_t *keys_of(const struct page_figures *f)
{
	uint32_t *order = malloc((f->arches.count + 1) * sizeof(*order));
	uint32_t *keys = malloc((f->cells.count + 1) * sizeof(*keys));

	if (!order || !keys) {
		free(order);
		free(keys);
		return NULL;
	}
	for (size_t i = 0; i < f->arches.count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, f->arches.count, sizeof(*order), by_name, f->arches.items);
	for (size_t i = 0; i < f->cells.count; i++)
		keys[i] = key_of(f, order, f->cells.items[i].second);
	free(order);
	return keys;
}

kpack_error_t page_map(FILE *out, const struct page_figures *f,
		       const struct page_map *map, struct kpackx_error *why)
{
	size_t n = f->cells.count + 1;
	struct nodes libraries = {.items = calloc(n, sizeof(*libraries.items))};
	struct treemap_box *boxes = calloc(2 * n, sizeof(*boxes));
	uint64_t *sizes = calloc(2 * n, sizeof(*sizes));
	struct node *nodes = calloc(n, sizeof(*nodes));
	uint32_t *keys = keys_of(f);
	kpack_error_t err = KPACK_SUCCESS;
	struct drawing d = {.out = out, .f = f, .map = map, .keys = keys, .nodes = nodes};

	if (libraries.items && boxes && sizes && nodes && keys) {
		d.sizes = sizes + n;
		d.boxes = boxes + n;
		gather_libraries(f, map, &libraries);
		draw(&d, &libraries, boxes, sizes);
	} else {
		err = kp_fail_memory(why, n * sizeof(*nodes), "a map");
	}
	free(libraries.items);
	free(boxes);
	free(sizes);
	free(nodes);
	free(keys);
	return err;
}
