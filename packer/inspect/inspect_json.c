/* SPDX-License-Identifier: MIT */
/*
 * The threads that read images also turn them into text, so that files with many kernels
 * need little memory.  The tree follows at the end and refers to images by number.
 */
#include "inspect_json.h"
#include "packer/cli/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include "kernel.h"
#include "packer/cli/xalloc.h"
#include "packer/library/cutile_signature.h"

struct writer {
	struct inspect_file *file;
	struct inspect_look look;
	size_t row;        /* the next row to print */
	size_t printed;    /* images printed so far */
	size_t *positions; /* per image: its number in "images", or KP_NOWHERE */
};

static json_t *text_or_null(const char *s)
{
	return s && *s ? report_json_text(s) : json_null();
}

static json_t *number_json(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* --- an image --------------------------------------------------------------------- */

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
	for (size_t i = 0; i < inspect_kernel_numbers; i++) {
		int64_t value = inspect_kernel_number(k, i);

		if (value != KP_NOT_STATED)
			json_object_set_new(kernel, inspect_kernel_key(i),
					    json_integer(value));
	}
	signature = signature_json(k->name, signatures_left);
	if (signature)
		json_object_set_new(kernel, "signature", signature);
	return kernel;
}

static void add_object(json_t *image, const struct kp_object *object)
{
	json_t *kernels = json_array();
	size_t left = SIGNATURE_JSON_MAX;

	for (size_t i = 0; i < object->n_kernels; i++)
		json_array_append_new(kernels, kernel_json(&object->kernels[i], &left));
	json_object_set_new(image, "object_arch", text_or_null(object->arch));
	json_object_set_new(image, "facts", pairs_json(&object->facts));
	json_object_set_new(image, "kernels", kernels);
}

static json_t *image_json(const struct inspect_look *look, size_t number_of)
{
	const struct kp_image *image = &look->file->list.images[number_of];
	const struct inspect_seen *seen = &look->seen[number_of];
	json_t *json = json_object();

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
	if (seen->object)
		add_object(json, seen->object);
	return json;
}

static void finish_image(struct inspect_look *look, size_t image)
{
	struct inspect_seen *seen = &look->seen[image];
	json_t *json = image_json(look, image);

	seen->text = report_json_new(json, 0);
	inspect_seen_drop(seen);
}

/* --- in order --------------------------------------------------------------------- */

static void print_image(struct writer *w, size_t image)
{
	struct inspect_seen *seen = &w->look.seen[image];

	/* an image that could not be read has not been finished yet */
	if (!seen->text)
		finish_image(&w->look, image);
	printf("%s\n  %s", w->printed ? "," : "", seen->text);
	w->positions[image] = w->printed++;
	free(seen->text);
	seen->text = NULL;
}

static void print_rows(struct writer *w, size_t end)
{
	for (; w->row < end; w->row++)
		if (w->file->rows[w->row].kind == INSPECT_IMAGE)
			print_image(w, w->file->rows[w->row].image);
}

static void job_done(struct inspect_look *look, const struct inspect_job *job)
{
	print_rows(look->arg, job->end_row);
}

static void print_value(json_t *value)
{
	report_json_put(stdout, value, 0);
}

static void print_wrappers(struct writer *w)
{
	const struct inspect_file *f = w->file;

	fputs(" \"wrappers\": [", stdout);
	for (size_t i = 0; i < f->elf.n_wrappers; i++) {
		ptrdiff_t c = f->wrapper_number[i];

		fputs(i ? ", " : "", stdout);
		print_value(json_pack("{sI so}", "index", (json_int_t)i, "container",
				      c < 0 ? json_null() : json_integer(c)));
	}
	fputs("],\n", stdout);
}

/* --- the tree --------------------------------------------------------------------- */

static void print_containers(struct writer *w, size_t first);

static void print_node(struct writer *w, size_t image)
{
	const struct kp_image *img = &w->file->list.images[image];

	if (w->positions[image] != KP_NOWHERE) {
		printf("{\"image\": %zu}", w->positions[image]);
		return;
	}
	fputs("{\"name\": ", stdout);
	print_value(img->id ? report_json_text(img->id) : json_null());
	printf(", \"offset\": %" PRIu64 ", \"size\": %" PRIu64 ", \"pairs\": ",
	       img->offset, img->size);
	print_value(pairs_json(&img->pairs));
	fputs(", \"containers\": ", stdout);
	print_containers(w, img->inside);
	putchar('}');
}

static void print_compression(const struct kp_container *c,
			      const struct inspect_packed *packed)
{
	if (packed->version)
		printf(", \"version\": %u", packed->version);
	if (!packed->method)
		return;
	printf(", \"compression\": {\"method\": \"%s\", \"version\": %u, \"ratio\": %.4g",
	       packed->method, packed->version,
	       (double)c->payload_size / (double)c->size);
	if (packed->has_hash)
		printf(", \"hash\": \"%016" PRIx64 "\", \"hash_ok\": %s", packed->hash,
		       packed->hash_ok ? "true" : "false");
	putchar('}');
}

static void print_container(struct writer *w, size_t container)
{
	const struct kp_container *c = &w->file->list.items[container];
	size_t n = w->file->numbers[container];

	printf("{\"format\": \"%s\", \"container\": ", c->format->name);
	if (n == KP_NOWHERE)
		fputs("null", stdout);
	else
		printf("%zu", n);
	printf(", \"offset\": %" PRIu64 ", \"size\": %" PRIu64 ", \"decoded\": %" PRIu64,
	       c->offset, c->size, c->payload_size);
	print_compression(c, &w->look.packed[container]);
	fputs(", \"images\": [", stdout);
	for (size_t i = 0; i < c->n_images; i++) {
		fputs(i ? ", " : "", stdout);
		print_node(w, c->first_image + i);
	}
	fputs("]}", stdout);
}

static void print_containers(struct writer *w, size_t first)
{
	putchar('[');
	for (size_t c = first; c != KP_NOWHERE; c = w->file->list.items[c].next) {
		if (c != first)
			fputs(",\n  ", stdout);
		print_container(w, c);
	}
	putchar(']');
}

/* --- the whole file --------------------------------------------------------------- */

static kpack_error_t print_all(struct writer *w, struct kpackx_error *why)
{
	kpack_error_t err;

	fputs("{\n \"file\": ", stdout);
	print_value(report_json_text(w->file->path));
	printf(",\n \"format\": \"%s\",\n \"images\": [", w->file->format);
	err = inspect_look_run(&w->look, why);
	if (!err)
		print_rows(w, w->file->n_rows);
	fputs(w->printed ? "\n ],\n" : "],\n", stdout);
	if (err)
		return err;
	print_wrappers(w);
	printf(" \"converted\": %s,\n \"tree\": ", w->file->converted ? "true" : "false");
	print_containers(w, 0);
	fputs("\n}\n", stdout);
	return KPACK_SUCCESS;
}

kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why)
{
	struct writer w = {
		.file = file,
		.look = {.file = file,
			 .finish = finish_image,
			 .done = job_done,
			 .arg = &w},
	};
	kpack_error_t err;

	w.positions = xmalloc(file->list.n_images * sizeof(*w.positions));
	for (size_t i = 0; i < file->list.n_images; i++)
		w.positions[i] = KP_NOWHERE;
	err = print_all(&w, why);
	inspect_look_fini(&w.look);
	free(w.positions);
	return err;
}
