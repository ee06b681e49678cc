/* SPDX-License-Identifier: MIT */
/*
 * The two outputs of kpack inspect.  Both print the rows that a job completes as soon as it is
 * their turn.  For JSON the threads that read images also turn them into text, so that files
 * with many kernels need little memory; the tree follows at the end and refers to images by
 * number.
 */
#include "inspect_print.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"
#include "inspect_read.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
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

/* --- text: containers ----------------------------------------------------------- */

/*
 * Beyond these limits kernels are counted and not listed: images of a file, kernels of an
 * object.
 */
#define IMAGES_MAX 16
#define KERNELS_MAX 100

struct text {
	struct inspect_file *file;
	struct inspect_look look;
	bool all;      /* list every kernel */
	bool details;  /* print facts about objects, and kernels if they are few */
	size_t row;    /* the next row to print */
	size_t hidden; /* kernels that were only counted */
	int width;     /* of the first column */
};

static bool lists_kernels(const struct text *t, size_t n)
{
	return t->all || (t->details && n <= KERNELS_MAX);
}

static void finish_text(struct inspect_look *look, size_t image)
{
	const struct text *t = look->arg;

	if (!t->details)
		inspect_seen_drop(&look->seen[image]);
}

static void print_name(const struct kp_image *image)
{
	if (image->id)
		report_text(image->id);
	else
		report_text(image->arch[0] ? image->arch : "image");
}

static void print_container(const struct text *t, const struct inspect_row *row)
{
	const struct kp_container *c = &t->file->list.items[row->container];
	const struct inspect_packed *packed = &t->look.packed[row->container];
	size_t number = t->file->numbers[row->container];

	printf("%*s", (int)(2 * row->depth), "");
	if (row->image != KP_NOWHERE) {
		print_name(&t->file->list.images[row->image]);
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

static void print_place(const struct text *t, const struct inspect_row *row)
{
	const struct kp_image *image = &t->file->list.images[row->image];

	printf("%*s", (int)(2 * row->depth), "");
	print_name(image);
	printf(": %" PRIu64 " bytes at %" PRIu64 "\n", image->size, image->offset);
}

/* --- text: images --------------------------------------------------------------- */

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

static void print_kernel(const struct kp_kernel *k, int margin)
{
	const char *between = ": ";
	char indent[64];

	printf("%*skernel ", margin, "");
	report_text(k->name);
	for (size_t i = 0; i < KP_COUNT(kernel_numbers); i++) {
		const struct kernel_number *number = &kernel_numbers[i];
		int64_t value = kernel_number(k, number);

		if (value == KP_NOT_STATED)
			continue;
		printf("%s%s %" PRId64, between, number->label, value);
		between = ", ";
	}
	putchar('\n');
	snprintf(indent, sizeof(indent), "%*s", margin + 2, "");
	signature_print(k->name, indent);
}

/* Whether A and B name the same architecture; compute_90 is also sm_90. */
static bool same_arch(const char *a, const char *b)
{
	const char *x = strchr(a, '_'), *y = strchr(b, '_');

	return strcmp(x && y ? x : a, x && y ? y : b) == 0;
}

/* Print the object's facts, and its architecture if it differs from the container's. */
static void print_object(const struct text *t, const struct kp_image *image,
			 const struct kp_object *object, int margin)
{
	print_pairs(&image->pairs, margin, "=");
	if (object->arch[0] && image->arch[0] && !same_arch(object->arch, image->arch)) {
		printf("%*sthe object says ", margin, "");
		report_text(object->arch);
		putchar('\n');
	}
	print_pairs(&object->facts, margin, " ");
	for (size_t i = 0; i < object->n_kernels && lists_kernels(t, object->n_kernels);
	     i++)
		print_kernel(&object->kernels[i], margin);
}

static void print_image(struct text *t, const struct inspect_row *row)
{
	const struct kp_image *image = &t->file->list.images[row->image];
	struct inspect_seen *seen = &t->look.seen[row->image];
	char arch[4 * KP_TARGET_TEXT_MAX];
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
	if (seen->object)
		print_object(t, image, seen->object, margin + 4);
	else if (t->details)
		print_pairs(&image->pairs, margin + 4, "=");
	if (!lists_kernels(t, seen->n_kernels))
		t->hidden += seen->n_kernels;
	inspect_seen_drop(seen);
}

/* --- text: the whole file ------------------------------------------------------- */

static void print_rows(struct text *t, size_t end)
{
	for (; t->row < end; t->row++) {
		const struct inspect_row *row = &t->file->rows[t->row];

		if (row->kind == INSPECT_CONTAINER)
			print_container(t, row);
		else if (row->kind == INSPECT_PLACE)
			print_place(t, row);
		else
			print_image(t, row);
	}
}

static void text_job_done(struct inspect_look *look, const struct inspect_job *job)
{
	print_rows(look->arg, job->end_row);
}

static void print_count(size_t n, const char *what)
{
	printf(", %zu %s%s", n, what, n == 1 ? "" : "s");
}

static void print_head(const struct text *t)
{
	const struct inspect_file *f = t->file;

	report_text(f->path);
	printf(": %s", f->format);
	print_count(f->n_numbered, "container");
	print_count(f->n_leaves, "image");
	if (f->elf.type)
		print_count(f->elf.n_wrappers, "wrapper");
	puts(f->converted ? ", converted" : "");
	if (f->n_leaves)
		printf("%-*s  %-24s  %12s  %12s  %7s  %-64s  %s\n", t->width, "FORMAT",
		       "ARCH", "SIZE", "OFFSET", "KERNELS", "SHA256", "TARGET");
}

static void print_wrappers(const struct inspect_file *f)
{
	if (f->elf.n_wrappers)
		printf("%9s  %s\n", "WRAPPER", "CONTAINER");
	for (size_t i = 0; i < f->elf.n_wrappers; i++) {
		if (f->wrapper_number[i] < 0)
			printf("%9zu  -\n", i);
		else
			printf("%9zu  %td\n", i, f->wrapper_number[i]);
	}
}

kpack_error_t inspect_text_print(struct inspect_file *file, bool all,
				 struct kpackx_error *why)
{
	struct text t = {
		.file = file,
		.look = {.file = file,
			 .finish = finish_text,
			 .done = text_job_done,
			 .arg = &t},
		.all = all,
		.details = all || file->n_leaves <= IMAGES_MAX,
		.width = (int)(2 * file->depth) + 8,
	};
	kpack_error_t err;

	print_head(&t);
	err = inspect_look_run(&t.look, why);
	if (!err)
		print_rows(&t, file->n_rows);
	inspect_look_fini(&t.look);
	if (t.hidden)
		printf("%zu kernels; --kernels lists them\n", t.hidden);
	print_wrappers(file);
	return err;
}

struct writer {
	struct inspect_file *file;
	struct inspect_look look;
	size_t row;        /* the next row to print */
	size_t printed;    /* images printed so far */
	size_t *positions; /* per image: its number in "images", or KP_NOWHERE */
};

/* --- JSON: an image ------------------------------------------------------------- */

static json_t *text_or_null(const char *s)
{
	return s && *s ? report_json_text(s) : json_null();
}

static json_t *number_json(uint64_t n)
{
	return json_integer((json_int_t)n);
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

static json_t *kernel_json(const struct kp_kernel *k, size_t *signatures_left)
{
	json_t *kernel = json_object(), *signature;

	json_object_set_new(kernel, "name", report_json_text(k->name));
	if (k->symbol)
		json_object_set_new(kernel, "symbol", report_json_text(k->symbol));
	for (size_t i = 0; i < KP_COUNT(kernel_numbers); i++) {
		int64_t value = kernel_number(k, &kernel_numbers[i]);

		if (value != KP_NOT_STATED)
			json_object_set_new(kernel, kernel_numbers[i].key,
					    json_integer(value));
	}
	signature = signature_json(k->name, signatures_left);
	if (signature)
		json_object_set_new(kernel, "signature", signature);
	return kernel;
}

static json_t *image_json(const struct inspect_look *look, size_t image_number)
{
	const struct kp_image *image = &look->file->list.images[image_number];
	const struct inspect_seen *seen = &look->seen[image_number];
	size_t signatures_left = SIGNATURE_JSON_MAX;
	json_t *json = json_object(), *kernels;

	json_object_set_new(json, "container",
			    number_json(look->file->numbers[image->container]));
	json_object_set_new(json, "format", text_or_null(seen->type));
	json_object_set_new(json, "target",
			    image->id ? report_json_text(image->id) : json_null());
	json_object_set_new(json, "kind", text_or_null(image->kind));
	json_object_set_new(json, "arch", text_or_null(seen->arch));
	json_object_set_new(json, "size", number_json(image->size));
	json_object_set_new(json, "offset",
			    seen->in_file ? number_json(seen->offset) : json_null());
	json_object_set_new(json, "sha256", text_or_null(seen->sha256));
	json_object_set_new(json, "pairs", pairs_json(&image->pairs));
	if (!seen->object)
		return json;
	kernels = json_array();
	for (size_t i = 0; i < seen->object->n_kernels; i++)
		json_array_append_new(kernels, kernel_json(&seen->object->kernels[i],
							   &signatures_left));
	json_object_set_new(json, "object_arch", text_or_null(seen->object->arch));
	json_object_set_new(json, "facts", pairs_json(&seen->object->facts));
	json_object_set_new(json, "kernels", kernels);
	return json;
}

static void finish_json(struct inspect_look *look, size_t image)
{
	struct inspect_seen *seen = &look->seen[image];
	json_t *json = image_json(look, image);

	seen->text = report_json_new(json, 0);
	inspect_seen_drop(seen);
}

/* --- JSON: in order ------------------------------------------------------------- */

/* Write the images of the rows before END. */
static void write_images(struct writer *w, size_t end)
{
	for (; w->row < end; w->row++) {
		size_t image = w->file->rows[w->row].image;
		struct inspect_seen *seen = &w->look.seen[image];

		if (w->file->rows[w->row].kind != INSPECT_IMAGE)
			continue;
		/* an image that could not be read has not been finished yet */
		if (!seen->text)
			finish_json(&w->look, image);
		printf("%s\n  %s", w->printed ? "," : "", seen->text);
		w->positions[image] = w->printed++;
		free(seen->text);
		seen->text = NULL;
	}
}

static void json_job_done(struct inspect_look *look, const struct inspect_job *job)
{
	write_images(look->arg, job->end_row);
}

static void write_value(json_t *value)
{
	report_json_put(stdout, value, 0);
}

/* --- JSON: the tree ------------------------------------------------------------- */

static void write_containers(struct writer *w, size_t first);

static void write_node(struct writer *w, size_t image)
{
	const struct kp_image *img = &w->file->list.images[image];

	if (w->positions[image] != KP_NOWHERE) {
		printf("{\"image\": %zu}", w->positions[image]);
		return;
	}
	fputs("{\"name\": ", stdout);
	write_value(img->id ? report_json_text(img->id) : json_null());
	printf(", \"offset\": %" PRIu64 ", \"size\": %" PRIu64 ", \"pairs\": ",
	       img->offset, img->size);
	write_value(pairs_json(&img->pairs));
	fputs(", \"containers\": ", stdout);
	write_containers(w, img->inside);
	putchar('}');
}

static void write_container(struct writer *w, size_t container)
{
	const struct kp_container *c = &w->file->list.items[container];
	const struct inspect_packed *packed = &w->look.packed[container];
	size_t n = w->file->numbers[container];

	printf("{\"format\": \"%s\", \"container\": ", c->format->name);
	if (n == KP_NOWHERE)
		fputs("null", stdout);
	else
		printf("%zu", n);
	printf(", \"offset\": %" PRIu64 ", \"size\": %" PRIu64 ", \"decoded\": %" PRIu64,
	       c->offset, c->size, c->payload_size);
	if (packed->version)
		printf(", \"version\": %u", packed->version);
	if (packed->method) {
		printf(", \"compression\": {\"method\": \"%s\", \"version\": %u, "
		       "\"ratio\": %.4g",
		       packed->method, packed->version,
		       (double)c->payload_size / (double)c->size);
		if (packed->has_hash)
			printf(", \"hash\": \"%016" PRIx64 "\", \"hash_ok\": %s",
			       packed->hash, packed->hash_ok ? "true" : "false");
		putchar('}');
	}
	fputs(", \"images\": [", stdout);
	for (size_t i = 0; i < c->n_images; i++) {
		fputs(i ? ", " : "", stdout);
		write_node(w, c->first_image + i);
	}
	fputs("]}", stdout);
}

static void write_containers(struct writer *w, size_t first)
{
	putchar('[');
	for (size_t c = first; c != KP_NOWHERE; c = w->file->list.items[c].next) {
		if (c != first)
			fputs(",\n  ", stdout);
		write_container(w, c);
	}
	putchar(']');
}

/* --- JSON: the whole file ------------------------------------------------------- */

kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why)
{
	struct writer w = {
		.file = file,
		.look = {.file = file,
			 .finish = finish_json,
			 .done = json_job_done,
			 .arg = &w},
	};
	kpack_error_t err;

	w.positions = xmalloc(file->list.n_images * sizeof(*w.positions));
	for (size_t i = 0; i < file->list.n_images; i++)
		w.positions[i] = KP_NOWHERE;
	fputs("{\n \"file\": ", stdout);
	write_value(report_json_text(file->path));
	printf(",\n \"format\": \"%s\",\n \"images\": [", file->format);
	err = inspect_look_run(&w.look, why);
	if (!err)
		write_images(&w, file->n_rows);
	fputs(w.printed ? "\n ],\n" : "],\n", stdout);
	if (err)
		goto out;
	fputs(" \"wrappers\": [", stdout);
	for (size_t i = 0; i < file->elf.n_wrappers; i++) {
		ptrdiff_t number = file->wrapper_number[i];

		fputs(i ? ", " : "", stdout);
		write_value(json_pack("{sI so}", "index", (json_int_t)i, "container",
				      number < 0 ? json_null() : json_integer(number)));
	}
	printf("],\n \"converted\": %s,\n \"tree\": ",
	       file->converted ? "true" : "false");
	write_containers(&w, 0);
	fputs("\n}\n", stdout);
out:
	inspect_look_fini(&w.look);
	free(w.positions);
	return err;
}
