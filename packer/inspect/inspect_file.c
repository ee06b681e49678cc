/* SPDX-License-Identifier: MIT */
/*
 * Opening a file to inspect: its containers become a tree of rows, and of jobs that read them
 * (the tree); the wrappers of a host binary are matched with its containers (wrappers); and
 * what is damaged is reported with its place (faults).
 */
#include "inspect_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* --- faults --------------------------------------------------------------------- */

/* "TEXT: MORE", or MORE if TEXT is NULL; frees TEXT. */
static char *join_texts(char *text, const char *more)
{
	char *both = text ? xasprintf("%s: %s", text, more) : xstrdup(more);

	free(text);
	return both;
}

/* The place of IMAGE: the names of all that encloses it; NULL for the file itself. */
static char *place_text(const struct kp_containers *list, size_t image)
{
	const struct kp_image *img;
	const struct kp_container *c;
	char own[64], *text, *id;

	if (image == KP_NOWHERE)
		return NULL;
	img = &list->images[image];
	c = &list->items[img->container];
	text = place_text(list, c->inside);
	/* in these containers the names of the images say enough */
	if (!c->format->type && !kp_format_is_host(c->format) &&
	    c->format != &kp_format_archive) {
		snprintf(own, sizeof(own), "%s at offset %" PRIu64, c->format->name,
			 c->offset);
		text = join_texts(text, own);
	}
	if (c->format->type)
		return text;
	snprintf(own, sizeof(own), "image %zu", image - c->first_image);
	id = img->id ? kp_text_escape_new(kp_span_str(img->id)) : NULL;
	text = join_texts(text, id ? id : own);
	free(id);
	return text;
}

void inspect_fault(struct inspect_file *file, size_t image, const char *text)
{
	char *whole = join_texts(place_text(&file->list, image), text);

	for (size_t i = 0; i < file->n_reported; i++) {
		if (strcmp(file->reported[i], whole) == 0) {
			free(whole);
			return;
		}
	}
	file->faults++;
	if (file->n_reported == KP_FAULTS_MAX) {
		free(whole);
		return;
	}
	report_error(file->path, "%s", whole);
	xgrow(&file->reported, file->n_reported, &file->reported_cap,
	      sizeof(*file->reported));
	file->reported[file->n_reported++] = whole;
}

static void scan_fault(void *arg, const struct kp_containers *list, size_t image,
		       const struct kpackx_error *why)
{
	(void)list; /* it is FILE's */
	inspect_fault(arg, image, why->text);
}

/* --- the tree ------------------------------------------------------------------- */

/* Whether IMAGE is the .hip_fatbin of a host ELF, into which wrappers lead. */
static bool is_fatbin(const struct kp_containers *list, size_t image)
{
	const struct kp_image *img = &list->images[image];

	return list->items[img->container].format == &kp_format_host_elf && img->stream &&
	       img->id && strcmp(img->id, KP_FATBIN_SECTION) == 0;
}

static void add_row(struct inspect_file *f, struct inspect_row row)
{
	xgrow(&f->rows, f->n_rows, &f->rows_cap, sizeof(row));
	f->rows[f->n_rows++] = row;
	/* archives, and host ELF in them, may have no device code */
	f->device |=
		row.kind != INSPECT_CONTAINER || f->numbers[row.container] != KP_NOWHERE;
	if (row.depth > f->depth)
		f->depth = row.depth;
}

static void add_job(struct inspect_file *f, struct inspect_job job)
{
	xgrow(&f->jobs, f->n_jobs, &f->jobs_cap, sizeof(job));
	f->jobs[f->n_jobs++] = job;
}

/* Bytes that are plain in the file; NULL: they come out of a decoder. */
typedef const struct kp_source place_source;

static void add_place(struct inspect_file *f, size_t first, place_source *src,
		      unsigned depth);
static void add_container(struct inspect_file *f, size_t number, size_t image,
			  place_source *around, unsigned depth);

/* An empty image may state any offset. */
bool inspect_image_source(const struct kp_image *image, const struct kp_source *payload,
			  struct kp_source *out)
{
	if (kp_source_sub(payload, image->offset, image->size, out))
		return true;
	*out = kp_source_memory(NULL, 0);
	return image->size == 0;
}

const char *inspect_arch(const struct kp_containers *list, const struct kp_image *image,
			 const char *says)
{
	size_t inside = list->items[image->container].inside;

	if (image->host || image->arch[0])
		return image->arch;
	if (*says)
		return says;
	for (; inside != KP_NOWHERE;
	     inside = list->items[list->images[inside].container].inside)
		if (list->images[inside].arch[0])
			return list->images[inside].arch;
	return "";
}

/* Whether IMAGE may be device code: an archive's member can be anything. */
static bool may_be_code(const struct kp_containers *list, const struct kp_image *image,
			place_source *src)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	if (list->items[image->container].format != &kp_format_archive || !src)
		return true;
	return kp_source_head(src, 0, bytes, sizeof(bytes), &head, NULL) !=
		       KPACK_SUCCESS ||
	       kp_format_probe(head) != NULL;
}

static void add_leaf(struct inspect_file *f, size_t image, place_source *payload,
		     unsigned depth)
{
	struct inspect_job job = {.container = KP_NOWHERE, .image = image};
	size_t container = f->list.images[image].container;

	f->n_leaves++;
	if (f->numbers[container] == KP_NOWHERE)
		f->numbers[container] = f->n_numbered++;
	add_row(f, (struct inspect_row){INSPECT_IMAGE, depth, container, image});
	job.end_row = f->n_rows;
	/* an image that passes the end was reported when it was found */
	if (payload && inspect_image_source(&f->list.images[image], payload, &job.src))
		add_job(f, job);
}

static void add_image(struct inspect_file *f, size_t image, place_source *payload,
		      unsigned depth)
{
	const struct kp_containers *list = &f->list;
	const struct kp_image *img = &list->images[image];
	struct kp_source src;
	place_source *own =
		payload && inspect_image_source(img, payload, &src) ? &src : NULL;

	if (inspect_leaf(img)) {
		if (may_be_code(list, img, own))
			add_leaf(f, image, payload, depth);
	} else if (!img->stream && list->items[img->inside].next == KP_NOWHERE) {
		/* a container that is all of the image has no line of its own */
		add_container(f, img->inside, image, own, depth);
	} else {
		add_row(f, (struct inspect_row){INSPECT_PLACE, depth, img->container,
						image});
		add_place(f, img->inside, own, depth + 1);
	}
}

static void add_container(struct inspect_file *f, size_t number, size_t image,
			  place_source *around, unsigned depth)
{
	const struct kp_container *c = &f->list.items[number];
	place_source *plain = NULL; /* the container's bytes, if they are in the file */
	bool host = kp_format_is_host(c->format);
	size_t job = f->n_jobs;
	struct kp_source payload;

	if (!host && c->format != &kp_format_archive)
		f->numbers[number] = f->n_numbered++;
	/*
	 * these have no row of their own: an object is its image, and the head line shows
	 * a file's host ELF
	 */
	if (!c->format->type &&
	    !(host && (c->inside == KP_NOWHERE || c->n_images == 0))) {
		add_row(f, (struct inspect_row){INSPECT_CONTAINER, depth, number, image});
		depth++;
	}
	/* one job decodes a container with all its images */
	if (around && c->format->load)
		add_job(f, (struct inspect_job){.src = *around,
						.container = number,
						.image = KP_NOWHERE});
	else if (around && kp_source_sub(around, c->offset, c->size, &payload))
		plain = &payload;
	/* wrappers lead into the .hip_fatbin, whose containers get the first numbers */
	for (int round = 0; round < 2; round++) {
		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
			if (is_fatbin(&f->list, i) == (round == 0))
				add_image(f, i, plain, depth);
	}
	if (around && c->format->load)
		f->jobs[job].end_row = f->n_rows;
}

/* Add the containers from FIRST on, which are in SRC. */
static void add_place(struct inspect_file *f, size_t first, place_source *src,
		      unsigned depth)
{
	for (size_t c = first; c != KP_NOWHERE; c = f->list.items[c].next)
		add_container(f, c, KP_NOWHERE, src, depth);
}

static void build_tree(struct inspect_file *f)
{
	size_t n = f->list.count;

	f->numbers = xmalloc(n * sizeof(*f->numbers));
	for (size_t i = 0; i < n; i++)
		f->numbers[i] = KP_NOWHERE;
	if (n)
		add_place(f, 0, &f->source, 0);
}

/* --- wrappers ------------------------------------------------------------------- */

/* A container of .hip_fatbin. */
struct fatbin_item {
	uint64_t offset;
	size_t number;
};

/* The containers of the section that wrappers lead into, in the order of their offsets. */
static struct fatbin_item *fatbin_items(const struct inspect_file *f, size_t *count)
{
	const struct kp_container *c = &f->list.items[0], *items = f->list.items;
	struct fatbin_item *order = xmalloc(f->list.count * sizeof(*order));
	size_t image = c->first_image, end = c->first_image + c->n_images;

	*count = 0;
	while (image < end && !(is_fatbin(&f->list, image) &&
				f->list.images[image].inside != KP_NOWHERE))
		image++;
	if (image == end)
		return order;
	/* nothing leads to those without a number, which hold no images themselves */
	for (size_t i = f->list.images[image].inside; i != KP_NOWHERE; i = items[i].next)
		if (f->numbers[i] != KP_NOWHERE)
			order[(*count)++] =
				(struct fatbin_item){items[i].offset, f->numbers[i]};
	return order;
}

/* Give the wrappers of F the numbers of the N containers at ORDER that they lead to. */
static void match_wrappers(struct inspect_file *f, const struct fatbin_item *order,
			   size_t n)
{
	struct kp_elf *elf = &f->elf;
	size_t kept = 0;

	f->converted = elf->n_wrappers > 0;
	for (size_t i = 0; i < elf->n_wrappers; i++) {
		const struct kp_elf_wrapper w = elf->wrappers[i];
		bool fat = w.fields.magic != KP_WRAPPER_HIPK;
		bool inside = fat && w.source != KP_POINTER_UNRESOLVED &&
			      w.target >= elf->fatbin_vaddr;
		const struct fatbin_item probe = {.offset = w.target - elf->fatbin_vaddr};
		const struct fatbin_item *found =
			inside ? kp_find(order, n, &probe,
					 KP_BY_NUMBER(struct fatbin_item, offset))
			       : NULL;
		char text[160];

		/* bytes that only look like a wrapper */
		if (fat && !found && elf->wrappers_scanned)
			continue;
		if (fat && !found) {
			if (w.source == KP_POINTER_UNRESOLVED)
				snprintf(text, sizeof(text),
					 "wrapper %zu: its pointer is set from outside "
					 "this file",
					 i);
			else
				snprintf(text, sizeof(text),
					 "wrapper %zu: no container begins at address "
					 "0x%" PRIx64,
					 i, w.target);
			inspect_fault(f, KP_NOWHERE, text);
		}
		f->converted &= !fat;
		f->wrapper_number[kept] = found ? (ptrdiff_t)found->number : -1;
		elf->wrappers[kept++] = w;
	}
	elf->n_wrappers = kept;
	f->converted &= kept > 0;
}

static void read_wrappers(struct inspect_file *f)
{
	struct kpackx_error fault = {0};
	struct fatbin_item *order;
	bool leads = false;
	size_t n;

	if (kp_elf_read(f->fd, f->source.size, &f->elf, &fault)) {
		inspect_fault(f, KP_NOWHERE, fault.text);
		return;
	}
	/* objects whose device code is linked later have wrappers that lead nowhere yet */
	leads = f->elf.has_fatbin;
	for (size_t i = 0; i < f->elf.n_wrappers; i++)
		leads |= f->elf.wrappers[i].fields.magic == KP_WRAPPER_HIPK;
	if (!leads)
		f->elf.n_wrappers = 0;
	order = fatbin_items(f, &n);
	f->wrapper_number = xcalloc(f->elf.n_wrappers, sizeof(*f->wrapper_number));
	match_wrappers(f, order, n);
	free(order);
}

/* --- the file ------------------------------------------------------------------- */

kpack_error_t inspect_file_open(struct inspect_file *f, const char *path,
				struct kpackx_error *why)
{
	const struct kp_container *c;
	struct kp_span head;
	uint8_t bytes[20];
	struct stat st;

	*f = (struct inspect_file){.path = path, .fd = -1};
	KP_TRY(below_file_open(path, &f->fd, &st, why));
	f->source = kp_source_fd(f->fd, 0, (uint64_t)st.st_size);
	KP_TRY(kp_nest_salvage(&f->source, scan_fault, f, &f->list, why));
	build_tree(f);
	if (f->list.count == 0)
		return KPACK_SUCCESS;
	c = &f->list.items[0];
	f->format = c->format->name;
	KP_TRY(kp_source_head(&f->source, 0, bytes, sizeof(bytes), &head, why));
	/* wrappers can be read if the file is an ELF whose sections are known */
	if (kp_elf_host_probe(head) &&
	    (!c->n_images ||
	     strcmp(f->list.images[c->first_image].id, KP_NO_SECTION) != 0))
		read_wrappers(f);
	return KPACK_SUCCESS;
}

void inspect_file_close(struct inspect_file *f)
{
	for (size_t i = 0; i < f->n_reported; i++)
		free(f->reported[i]);
	free(f->reported);
	free(f->rows);
	free(f->jobs);
	free(f->numbers);
	free(f->wrapper_number);
	kp_elf_fini(&f->elf);
	kp_containers_fini(&f->list);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct inspect_file){.fd = -1};
}
