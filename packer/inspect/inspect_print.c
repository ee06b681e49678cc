/* SPDX-License-Identifier: MIT */
/*
 * The two outputs of kpack inspect.  Threads hash and describe every image.  For JSON they also turn
 * images into text, which is printed as soon as it is its turn; the tree follows at the end and refers to
 * images by number.  As text a summary comes first, for which everything has been read.
 *
 *	text   one line for the file, a table of GPUs, a table of rows, "N kernels", a table of wrappers
 *	JSON   {file, format, images: [...], wrappers: [...], converted, tree: [...]}
 *
 * A library of AMD's has thousands of images and millions of kernels.  So whatever a thread learned of an
 * image is dropped as soon as it is printed, or is text.  Of many images only numbers stay for the summary;
 * if their kernels are listed, the file is read once more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/sink.h"
#include "core/base/text.h"
#include "inspect.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/gpu/code_table.h"
#include "packer/library/cutile_signature.h"

/* The numbers of a kernel, with their labels for people and their JSON keys. */
static const struct kernel_number {
	const char *label, *key;
	size_t at; /* offset in struct kp_kernel */
} kernel_numbers[] = {
	{"VGPRs", "vgprs", offsetof(struct kp_kernel, vgprs)},
	{"AGPRs", "agprs", offsetof(struct kp_kernel, agprs)},
	{"SGPRs", "sgprs", offsetof(struct kp_kernel, sgprs)},
	{"LDS", "lds", offsetof(struct kp_kernel, lds)},
	{"scratch", "scratch", offsetof(struct kp_kernel, scratch)},
	{"kernarg", "kernarg", offsetof(struct kp_kernel, kernarg)},
	{"wavefront", "wavefront", offsetof(struct kp_kernel, wavefront)},
	{"threads", "threads", offsetof(struct kp_kernel, threads)},
};

/* The value of NUMBER in KERNEL, or KP_NOT_STATED. */
static int64_t kernel_number(const struct kp_kernel *kernel,
			     const struct kernel_number *number)
{
	int64_t value;

	memcpy(&value, (const char *)kernel + number->at, sizeof(value));
	return value;
}

/* ---- looking at images ---- */

/*
 * Images up to this size are held in memory and read once; larger ones are partly reread.
 */
#define HOLD_MAX (64 << 20)

/* Facts about an image. */
struct seen_image {
	const char *type; /* NULL: it could not be read */
	bool in_file;
	uint64_t offset;               /* in the file, where in_file */
	char sha256[DIGEST_TEXT];      /* "" if it is unknown */
	char arch[KP_TARGET_TEXT_MAX]; /* see inspect_arch */
	struct kp_object *object;      /* NULL: not read, or freed already */
	size_t n_kernels;
	char *json;
};

/* What is printed of a file, as text or as JSON. */
struct printing {
	struct inspect_file *file;
	struct seen_image *seen; /* per image */
	bool json;
	size_t row; /* the next row to print */

	/* Text: */
	bool all;      /* list every kernel */
	bool details;  /* objects stay until they are printed, with facts about them */
	size_t hidden; /* kernels that were only counted */
	int width;     /* of the first column */

	/* JSON: */
	size_t printed;    /* images so far */
	size_t *positions; /* per image: its number in "images", or KP_NOWHERE */
};

static void drop_object(struct seen_image *seen)
{
	if (seen->object)
		kp_object_fini(seen->object);
	free(seen->object);
	seen->object = NULL;
}

static json_t *text_or_null(const char *s)
{
	return s && *s ? report_json_text(s) : json_null();
}

/*
 * The last of equal names counts, as for LLVM's tools in the strings of offload binaries.
 */
static json_t *pairs_json(const struct kp_pairs *pairs)
{
	json_t *object = json_object();

	for (size_t i = 0; i < pairs->count; i++) {
		const struct kp_pair *p = &pairs->items[i];
		json_t *name = report_json_text(p->name);
		const char *key = json_string_value(name);

		if (key)
			json_object_set_new(object, key,
					    report_json_span((struct kp_span){
						    (const uint8_t *)p->value, p->size}));
		json_decref(name);
	}
	return object;
}

/* Turn what is known of an image into text, and forget it. */
static void make_json(const struct printing *p, size_t number)
{
	const struct kp_image *image = &p->file->list.images[number];
	struct seen_image *seen = &p->seen[number];
	size_t left = SIGNATURE_JSON_MAX, container = p->file->numbers[image->container];
	const struct kp_object *object = seen->object;
	json_t *json = json_pack(
		"{sI so so so so sI so so so}", "container", (json_int_t)container,
		"format", text_or_null(seen->type), "target",
		image->id ? report_json_text(image->id) : json_null(), "kind",
		text_or_null(image->kind), "arch", text_or_null(seen->arch), "size",
		(json_int_t)image->size, "offset",
		seen->in_file ? json_integer((json_int_t)seen->offset) : json_null(),
		"sha256", text_or_null(seen->sha256), "pairs", pairs_json(&image->pairs));
	json_t *kernels = json_array();

	for (size_t i = 0; object && i < object->n_kernels; i++) {
		const struct kp_kernel *k = &object->kernels[i];
		json_t *kernel = json_object(), *signature;

		json_object_set_new(kernel, "name", report_json_text(k->name));
		if (k->symbol)
			json_object_set_new(kernel, "symbol",
					    report_json_text(k->symbol));
		for (size_t n = 0; n < KP_COUNT(kernel_numbers); n++) {
			int64_t value = kernel_number(k, &kernel_numbers[n]);

			if (value != KP_NOT_STATED)
				json_object_set_new(kernel, kernel_numbers[n].key,
						    json_integer(value));
		}
		signature = signature_json(k->name, &left);
		if (signature)
			json_object_set_new(kernel, "signature", signature);
		json_array_append_new(kernels, kernel);
	}
	if (object) {
		json_object_set_new(json, "object_arch", text_or_null(object->arch));
		json_object_set_new(json, "facts", pairs_json(&object->facts));
		json_object_set_new(json, "kernels", json_incref(kernels));
	}
	json_decref(kernels);
	seen->json = report_json_new(json, 0);
	drop_object(seen);
}

/* Hash and describe IMAGE, whose bytes are SRC; a leaf of the walk. */
static kpack_error_t see_image(void *arg, struct inspect_thread *thread, size_t image,
			       const struct kp_source *src, struct kpackx_error *why)
{
	const struct printing *p = arg;
	const struct inspect_file *file = p->file;
	struct seen_image *seen = &p->seen[image];
	const struct kp_image *img = &file->list.images[image];
	bool hold = src->size <= HOLD_MAX || src->fd < 0;
	size_t room = hold && src->fd >= 0 ? (size_t)src->size + 1 : 0;
	struct kp_sink sink = {.write = digest_write, .arg = &thread->hash};
	struct kp_source own = *src;
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;
	kpack_error_t err;

	seen->in_file = src->fd >= 0;
	seen->offset = src->offset;
	if (thread->cap < room) {
		free(thread->buf);
		thread->buf = malloc(room);
		thread->cap = thread->buf ? room : 0;
		if (!thread->buf)
			return kp_fail_memory(why, room, "an image");
	}
	if (hold && src->fd >= 0) {
		KP_TRY(kp_source_read(src, 0, thread->buf, (size_t)src->size, why));
		own = kp_source_memory(thread->buf, (size_t)src->size);
	}
	/* if it is known already, it is read again for its kernels */
	if (!seen->sha256[0]) {
		digest_begin(&thread->hash, DIGEST_SHA256);
		KP_TRY(kp_sink_copy(&sink, &own, why));
		KP_TRY(digest_end_text(&thread->hash, seen->sha256, why));
	}
	/* the first bytes tell the type of objects that cannot be described, too */
	KP_TRY(kp_source_head(&own, 0, bytes, sizeof(bytes), &head, why));
	seen->type = kp_image_type(img, head);
	seen->object = xcalloc(1, sizeof(*seen->object));
	err = kp_object_describe(&own, seen->object, why);
	if (!err) {
		seen->n_kernels = seen->object->n_kernels;
		snprintf(seen->arch, sizeof(seen->arch), "%s",
			 inspect_arch(&file->list, img, seen->object->arch));
	}
	/* files have many images: of one that is only listed, or is text already, nothing else stays */
	if (p->json)
		make_json(p, image);
	else if (!p->details)
		drop_object(seen);
	return err;
}

/* ---- text ---- */

/* Of more images in a file, facts about their objects are printed with --kernels only. */
#define IMAGES_MAX 16

static void print_name(const struct kp_image *image)
{
	if (image->id)
		report_text(image->id);
	else
		report_text(image->arch[0] ? image->arch : "image");
}

static void print_pairs(const struct kp_pairs *pairs, int margin, const char *between)
{
	if (!pairs->count)
		return;
	printf("%*s", margin, "");
	for (size_t i = 0; i < pairs->count; i++) {
		const struct kp_pair *p = &pairs->items[i];
		const struct kp_span value = {(const uint8_t *)p->value, p->size};

		fputs(i ? ", " : "", stdout);
		report_text(p->name);
		fputs(between, stdout);
		report_span(value);
	}
	putchar('\n');
}

static void print_image(struct printing *t, const struct inspect_row *row)
{
	const struct kp_image *image = &t->file->list.images[row->image];
	struct seen_image *seen = &t->seen[row->image];
	const struct kp_object *object = seen->object;
	const char *says = object ? strchr(object->arch, '_') : NULL;
	const char *stated = strchr(image->arch, '_');
	char arch[4 * KP_TARGET_TEXT_MAX], indent[64];
	int margin = (int)(2 * row->depth);

	printf("%*s%-*s", margin, "", t->width - margin, seen->type ? seen->type : "?");
	printf("  %-24s  %12" PRIu64 "  ",
	       kp_text_escape(kp_span_str(seen->arch[0] ? seen->arch : "-"), arch,
			      sizeof(arch)),
	       image->size);
	if (seen->in_file)
		printf("%12" PRIu64 "  ", seen->offset);
	else
		printf("%12s  ", "-");
	if (seen->n_kernels)
		printf("%7zu  ", seen->n_kernels);
	else
		printf("%7s  ", "-");
	printf("%-64s  ", seen->sha256[0] ? seen->sha256 : "-");
	/* without an ID, print the kind */
	report_text(image->id ? image->id : image->kind[0] ? image->kind : "-");
	putchar('\n');
	margin += 4;
	if (object || t->details)
		print_pairs(&image->pairs, margin, "=");
	/* compute_90 is also sm_90 */
	if (object && object->arch[0] && image->arch[0] &&
	    strcmp(says && stated ? says : object->arch,
		   says && stated ? stated : image->arch) != 0) {
		printf("%*sthe object says ", margin, "");
		report_text(object->arch);
		putchar('\n');
	}
	if (object)
		print_pairs(&object->facts, margin, " ");
	if (!t->all) {
		t->hidden += seen->n_kernels;
		object = NULL;
	}
	snprintf(indent, sizeof(indent), "%*s", margin + 2, "");
	for (size_t i = 0; object && i < object->n_kernels; i++) {
		const struct kp_kernel *k = &object->kernels[i];
		const char *between = ": ";

		printf("%*skernel ", margin, "");
		report_text(k->name);
		for (size_t n = 0; n < KP_COUNT(kernel_numbers); n++) {
			int64_t value = kernel_number(k, &kernel_numbers[n]);

			if (value == KP_NOT_STATED)
				continue;
			printf("%s%s %" PRId64, between, kernel_numbers[n].label, value);
			between = ", ";
		}
		putchar('\n');
		signature_print(k->name, indent);
	}
	drop_object(seen);
}

/* Print the rows before END that were not printed yet; as JSON, the images among them. */
static void print_rows(void *arg, size_t end)
{
	struct printing *p = arg;

	for (; p->row < end; p->row++) {
		const struct inspect_row *row = &p->file->rows[p->row];
		const struct kp_container *c = &p->file->list.items[row->container];
		const struct inspect_packed *packed = &p->file->packed[row->container];
		size_t number = p->file->numbers[row->container];
		const struct kp_image *image =
			row->image == KP_NOWHERE ? NULL
						 : &p->file->list.images[row->image];
		struct seen_image *seen;

		if (row->kind == INSPECT_IMAGE && p->json) {
			seen = &p->seen[row->image];
			/* an image that could not be read has none yet */
			if (!seen->json)
				make_json(p, row->image);
			printf("%s\n  %s", p->printed ? "," : "", seen->json);
			p->positions[row->image] = p->printed++;
			free(seen->json);
			seen->json = NULL;
			continue;
		}
		if (p->json)
			continue;
		if (row->kind == INSPECT_IMAGE) {
			print_image(p, row);
			continue;
		}
		printf("%*s", (int)(2 * row->depth), "");
		if (row->kind == INSPECT_PLACE) {
			print_name(image);
			printf(": %" PRIu64 " bytes at %" PRIu64 "\n", image->size,
			       image->offset);
			continue;
		}
		if (image) {
			print_name(image);
			fputs(": ", stdout);
		}
		if (number != KP_NOWHERE)
			printf("container %zu: ", number);
		fputs(c->format->name, stdout);
		if (packed->version)
			printf(" version %u", packed->version);
		if (packed->method)
			printf(", %s", packed->method);
		printf(", %" PRIu64 " bytes at %" PRIu64, c->size, c->offset);
		if (c->payload_size != c->size)
			printf(", %" PRIu64 " decoded (%.2f : 1)", c->payload_size,
			       (double)c->payload_size / (double)c->size);
		if (packed->has_hash)
			printf(", hash %016" PRIx64 " %s", packed->hash,
			       packed->hash_ok ? "ok" : "WRONG");
		putchar('\n');
	}
}

/* Read all images. */
static kpack_error_t see_images(struct printing *p, const char *progress,
				void (*done)(void *arg, size_t end_row),
				struct kpackx_error *why)
{
	const struct kp_containers *list = &p->file->list;
	const struct inspect_walk walk = {.file = p->file,
					  .progress = progress,
					  .arg = p,
					  .leaf = see_image,
					  .done = done};

	if (!p->seen) {
		p->seen = xcalloc(list->n_images, sizeof(*p->seen));
		/* what is known until an image is read */
		for (size_t i = 0; i < list->n_images; i++)
			memcpy(p->seen[i].arch, list->images[i].arch,
			       sizeof(p->seen[i].arch));
	}
	return inspect_walk_run(&walk, why);
}

static void printing_fini(struct printing *p)
{
	for (size_t i = 0; p->seen && i < p->file->list.n_images; i++) {
		drop_object(&p->seen[i]);
		free(p->seen[i].json);
	}
	free(p->seen);
	free(p->positions);
}

static void print_count(size_t n, const char *what)
{
	printf(", %zu %s%s", n, what, plural(n));
}

kpack_error_t inspect_text_print(struct inspect_file *file, bool all,
				 struct kpackx_error *why)
{
	KP_AUTO(printing)
	t = {
		.file = file,
		.all = all,
		.details = file->n_leaves <= IMAGES_MAX,
		.width = (int)(2 * file->depth) + 8,
	};
	KP_AUTO(code_table) table = {0};

	KP_TRY(see_images(&t, "reading", NULL, why));
	report_text(file->path);
	printf(": %s", file->format);
	print_count(file->n_numbered, "container");
	print_count(file->n_leaves, "image");
	if (file->host.type)
		print_count(file->host.n_wrappers, "wrapper");
	puts(file->converted ? ", converted: 'kpack mark show' says where its code is"
			     : "");
	for (size_t i = 0; i < file->n_rows; i++) {
		size_t number = file->rows[i].image;
		const struct seen_image *seen = &t.seen[number];

		if (file->rows[i].kind == INSPECT_IMAGE && seen->arch[0] &&
		    !file->list.images[number].host)
			code_table_add(&table, kp_span_str(seen->arch), number,
				       file->list.images[number].size, seen->n_kernels);
	}
	code_table_match(&table, NULL);
	if (table.count) {
		code_table_print(&table, stdout, "objects", CODE_TABLE_KERNELS, SIZE_MAX);
		putchar('\n');
	}
	if (file->n_leaves)
		printf("%-*s  %-24s  %12s  %12s  %7s  %-64s  %s\n", t.width, "FORMAT",
		       "ARCH", "SIZE", "OFFSET", "KERNELS", "SHA256", "TARGET");
	if (all && !t.details) {
		t.details = true;
		KP_TRY(see_images(&t, NULL, print_rows, why));
	}
	print_rows(&t, file->n_rows);
	if (t.hidden)
		printf("%zu kernel%s; --kernels lists them\n", t.hidden,
		       plural(t.hidden));
	if (file->host.n_wrappers)
		printf("%9s  %s\n", "WRAPPER", "CONTAINER");
	for (size_t i = 0; i < file->host.n_wrappers; i++) {
		if (file->wrapper_number[i] < 0)
			printf("%9zu  -\n", i);
		else
			printf("%9zu  %td\n", i, file->wrapper_number[i]);
	}
	return KPACK_SUCCESS;
}

/* ---- JSON ---- */

/* Write the containers from FIRST on, with what is inside them. */
static void write_tree(const struct printing *w, size_t first)
{
	const struct kp_containers *list = &w->file->list;

	putchar('[');
	for (size_t number = first; number != KP_NOWHERE;
	     number = list->items[number].next) {
		const struct kp_container *c = &list->items[number];
		const struct inspect_packed *packed = &w->file->packed[number];
		size_t n = w->file->numbers[number];

		printf("%s{\"format\": \"%s\", \"container\": ",
		       number == first ? "" : ",\n  ", c->format->name);
		if (n == KP_NOWHERE)
			fputs("null", stdout);
		else
			printf("%zu", n);
		printf(", \"offset\": %" PRIu64 ", \"size\": %" PRIu64
		       ", \"decoded\": %" PRIu64,
		       c->offset, c->size, c->payload_size);
		if (packed->version)
			printf(", \"version\": %u", packed->version);
		if (packed->method) {
			printf(", \"compression\": {\"method\": \"%s\", "
			       "\"version\": %u, \"ratio\": %.4g",
			       packed->method, packed->version,
			       (double)c->payload_size / (double)c->size);
			if (packed->has_hash)
				printf(", \"hash\": \"%016" PRIx64 "\", \"hash_ok\": %s",
				       packed->hash, packed->hash_ok ? "true" : "false");
			putchar('}');
		}
		fputs(", \"images\": [", stdout);
		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
			const struct kp_image *img = &list->images[i];

			fputs(i > c->first_image ? ", " : "", stdout);
			if (w->positions[i] != KP_NOWHERE) {
				printf("{\"image\": %zu}", w->positions[i]);
				continue;
			}
			fputs("{\"name\": ", stdout);
			report_json_put(stdout,
					img->id ? report_json_text(img->id) : json_null(),
					0);
			printf(", \"offset\": %" PRIu64 ", \"size\": %" PRIu64
			       ", \"pairs\": ",
			       img->offset, img->size);
			report_json_put(stdout, pairs_json(&img->pairs), 0);
			fputs(", \"containers\": ", stdout);
			write_tree(w, img->inside);
			putchar('}');
		}
		fputs("]}", stdout);
	}
	putchar(']');
}

kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why)
{
	KP_AUTO(printing)
	p = {
		.file = file,
		.json = true,
		.positions = xmalloc(file->list.n_images * sizeof(*p.positions)),
	};
	kpack_error_t err;

	for (size_t i = 0; i < file->list.n_images; i++)
		p.positions[i] = KP_NOWHERE;
	fputs("{\n \"file\": ", stdout);
	report_json_put(stdout, report_json_text(file->path), 0);
	printf(",\n \"format\": \"%s\",\n \"images\": [", file->format);
	err = see_images(&p, NULL, print_rows, why);
	if (!err)
		print_rows(&p, file->n_rows);
	fputs(p.printed ? "\n ],\n" : "],\n", stdout);
	if (err)
		return err;
	fputs(" \"wrappers\": [", stdout);
	for (size_t i = 0; i < file->host.n_wrappers; i++) {
		ptrdiff_t number = file->wrapper_number[i];

		fputs(i ? ", " : "", stdout);
		report_json_put(
			stdout,
			json_pack("{sI so}", "index", (json_int_t)i, "container",
				  number < 0 ? json_null() : json_integer(number)),
			0);
	}
	printf("],\n \"converted\": %s,\n \"tree\": ",
	       file->converted ? "true" : "false");
	write_tree(&p, 0);
	fputs("\n}\n", stdout);
	return KPACK_SUCCESS;
}
