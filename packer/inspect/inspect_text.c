/* SPDX-License-Identifier: MIT */
#include "inspect_text.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "kernel.h"
#include "packer/cli/report.h"
#include "packer/library/cutile_signature.h"
#include "core/base/text.h"

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

static void finish_image(struct inspect_look *look, size_t image)
{
	const struct text *t = look->arg;

	if (!t->details)
		inspect_seen_drop(&look->seen[image]);
}

/* --- containers ------------------------------------------------------------------- */

static void print_packed(const struct kp_container *c,
			 const struct inspect_packed *packed)
{
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
	size_t number = t->file->numbers[row->container];

	printf("%*s", (int)(2 * row->depth), "");
	if (row->image != KP_NOWHERE) {
		print_name(&t->file->list.images[row->image]);
		fputs(": ", stdout);
	}
	if (number != KP_NOWHERE)
		printf("container %zu: ", number);
	fputs(c->format->name, stdout);
	print_packed(c, &t->look.packed[row->container]);
	putchar('\n');
}

static void print_place(const struct text *t, const struct inspect_row *row)
{
	const struct kp_image *image = &t->file->list.images[row->image];

	printf("%*s", (int)(2 * row->depth), "");
	print_name(image);
	printf(": %" PRIu64 " bytes at %" PRIu64 "\n", image->size, image->offset);
}

/* --- images ----------------------------------------------------------------------- */

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
	for (size_t i = 0; i < inspect_kernel_numbers; i++) {
		int64_t value = inspect_kernel_number(k, i);

		if (value == KP_NOT_STATED)
			continue;
		printf("%s%s %" PRId64, between, inspect_kernel_label(i), value);
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

/* Print TEXT escaped, and pad it to WIDTH. */
static void print_padded(const char *text, int width)
{
	char escaped[4 * KP_TARGET_TEXT_MAX];

	printf("%-*s", width,
	       kp_text_escape(kp_span_str(text), escaped, sizeof(escaped)));
}

static void print_columns(const struct inspect_seen *seen, const struct kp_image *image)
{
	fputs("  ", stdout);
	print_padded(seen->arch[0] ? seen->arch : "-", 24);
	printf("  %12" PRIu64 "  ", image->size);
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
}

static void print_image(struct text *t, const struct inspect_row *row)
{
	const struct kp_image *image = &t->file->list.images[row->image];
	struct inspect_seen *seen = &t->look.seen[row->image];
	int margin = (int)(2 * row->depth);

	printf("%*s%-*s", margin, "", t->width - margin, seen->type ? seen->type : "?");
	print_columns(seen, image);
	if (seen->object)
		print_object(t, image, seen->object, margin + 4);
	else if (t->details)
		print_pairs(&image->pairs, margin + 4, "=");
	if (!lists_kernels(t, seen->n_kernels))
		t->hidden += seen->n_kernels;
	inspect_seen_drop(seen);
}

/* --- the whole file --------------------------------------------------------------- */

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

static void job_done(struct inspect_look *look, const struct inspect_job *job)
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
			 .finish = finish_image,
			 .done = job_done,
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
