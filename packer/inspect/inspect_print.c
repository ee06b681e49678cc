/* SPDX-License-Identifier: MIT */
/*
 * The two outputs of kpack inspect.  Threads hash and describe every image, and the rows that a job
 * completes are printed as soon as it is their turn.  For JSON the threads also turn images into
 * text, so that files with many kernels need little memory; the tree follows at the end and refers
 * to images by number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"
#include "inspect.h"
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

/* ---- looking at images ---- */

/*
 * Images up to this size are held in memory and read once; larger ones are partly reread.
 */
#define HOLD_MAX (64 << 20)
#define PIECE (1 << 20)

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

/* What is known of the images of FILE; the caller frees it by forget_images. */
static struct seen_image *new_images(const struct inspect_file *file)
{
	struct seen_image *seen = xcalloc(file->list.n_images, sizeof(*seen));

	/* the default until an image is read */
	for (size_t i = 0; i < file->list.n_images; i++)
		memcpy(seen[i].arch, file->list.images[i].arch, sizeof(seen[i].arch));
	return seen;
}

static void drop_object(struct seen_image *seen)
{
	if (seen->object)
		kp_object_fini(seen->object);
	free(seen->object);
	seen->object = NULL;
}

static void forget_images(const struct inspect_file *file, struct seen_image *seen)
{
	for (size_t i = 0; i < file->list.n_images; i++) {
		drop_object(&seen[i]);
		free(seen[i].json);
	}
	free(seen);
}

/* Hash and describe IMAGE of FILE, whose bytes are SRC. */
static kpack_error_t see_image(const struct inspect_file *file,
			       struct inspect_thread *thread, size_t image,
			       const struct kp_source *src, struct seen_image *seen,
			       struct kpackx_error *why)
{
	const struct kp_image *img = &file->list.images[image];
	bool hold = src->size <= HOLD_MAX || src->fd < 0;
	size_t room = src->fd < 0 ? 0 : hold ? (size_t)src->size + 1 : PIECE;
	struct kp_source own = *src;
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

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
	if (hold) {
		KP_TRY(digest_text((struct kp_span){own.mem, (size_t)own.size},
				   seen->sha256, why));
	} else {
		digest_begin(&thread->hash, DIGEST_SHA256);
		for (uint64_t at = 0, n; at < src->size; at += n) {
			n = src->size - at < PIECE ? src->size - at : PIECE;
			KP_TRY(kp_source_read(src, at, thread->buf, (size_t)n, why));
			digest_add(&thread->hash,
				   (struct kp_span){thread->buf, (size_t)n});
		}
		KP_TRY(digest_end_text(&thread->hash, seen->sha256, why));
	}
	/* the first bytes tell the type of objects that cannot be described, too */
	KP_TRY(kp_source_head(&own, 0, bytes, sizeof(bytes), &head, why));
	seen->type = kp_image_type(img, head);
	seen->object = xcalloc(1, sizeof(*seen->object));
	KP_TRY(kp_object_describe(&own, seen->object, why));
	seen->n_kernels = seen->object->n_kernels;
	snprintf(seen->arch, sizeof(seen->arch), "%s",
		 inspect_arch(&file->list, img, seen->object->arch));
	return KPACK_SUCCESS;
}

/* ---- text ---- */

/*
 * Beyond these limits kernels are counted and not listed: images of a file, kernels of an
 * object.
 */
#define IMAGES_MAX 16
#define KERNELS_MAX 100

struct text {
	struct inspect_file *file;
	struct seen_image *seen; /* per image */
	bool all;                /* list every kernel */
	bool details;  /* print facts about objects, and kernels if they are few */
	size_t row;    /* the next row to print */
	size_t hidden; /* kernels that were only counted */
	int width;     /* of the first column */
};

static kpack_error_t see_for_text(void *arg, struct inspect_thread *thread, size_t image,
				  const struct kp_source *src, struct kpackx_error *why)
{
	struct text *t = arg;
	kpack_error_t err = see_image(t->file, thread, image, src, &t->seen[image], why);

	if (!t->details)
		drop_object(&t->seen[image]);
	return err;
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
	const struct inspect_packed *packed = &t->file->packed[row->container];
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

static void print_image(struct text *t, const struct inspect_row *row)
{
	const struct kp_image *image = &t->file->list.images[row->image];
	struct seen_image *seen = &t->seen[row->image];
	const struct kp_object *object = seen->object;
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
	margin += 4;
	if (object || t->details)
		print_pairs(&image->pairs, margin, "=");
	if (object && object->arch[0] && image->arch[0] &&
	    !same_arch(object->arch, image->arch)) {
		printf("%*sthe object says ", margin, "");
		report_text(object->arch);
		putchar('\n');
	}
	if (object)
		print_pairs(&object->facts, margin, " ");
	if (!t->all && !(t->details && seen->n_kernels <= KERNELS_MAX))
		t->hidden += seen->n_kernels;
	else
		for (size_t i = 0; object && i < object->n_kernels; i++)
			print_kernel(&object->kernels[i], margin);
	drop_object(seen);
}

static void print_rows(struct text *t, size_t end)
{
	for (; t->row < end; t->row++) {
		const struct inspect_row *row = &t->file->rows[t->row];
		const struct kp_image *image;

		if (row->kind == INSPECT_CONTAINER) {
			print_container(t, row);
		} else if (row->kind == INSPECT_IMAGE) {
			print_image(t, row);
		} else {
			image = &t->file->list.images[row->image];
			printf("%*s", (int)(2 * row->depth), "");
			print_name(image);
			printf(": %" PRIu64 " bytes at %" PRIu64 "\n", image->size,
			       image->offset);
		}
	}
}

static void text_job_done(void *arg, const struct inspect_job *job)
{
	print_rows(arg, job->end_row);
}

static void print_count(size_t n, const char *what)
{
	printf(", %zu %s%s", n, what, n == 1 ? "" : "s");
}

kpack_error_t inspect_text_print(struct inspect_file *file, bool all,
				 struct kpackx_error *why)
{
	struct text t = {
		.file = file,
		.seen = new_images(file),
		.all = all,
		.details = all || file->n_leaves <= IMAGES_MAX,
		.width = (int)(2 * file->depth) + 8,
	};
	const struct inspect_walk walk = {
		.file = file, .arg = &t, .leaf = see_for_text, .done = text_job_done};
	kpack_error_t err;

	report_text(file->path);
	printf(": %s", file->format);
	print_count(file->n_numbered, "container");
	print_count(file->n_leaves, "image");
	if (file->elf.type)
		print_count(file->elf.n_wrappers, "wrapper");
	puts(file->converted ? ", converted" : "");
	if (file->n_leaves)
		printf("%-*s  %-24s  %12s  %12s  %7s  %-64s  %s\n", t.width, "FORMAT",
		       "ARCH", "SIZE", "OFFSET", "KERNELS", "SHA256", "TARGET");
	err = inspect_walk_run(&walk, why);
	if (!err)
		print_rows(&t, file->n_rows);
	forget_images(file, t.seen);
	if (t.hidden)
		printf("%zu kernels; --kernels lists them\n", t.hidden);
	if (file->elf.n_wrappers)
		printf("%9s  %s\n", "WRAPPER", "CONTAINER");
	for (size_t i = 0; i < file->elf.n_wrappers; i++) {
		if (file->wrapper_number[i] < 0)
			printf("%9zu  -\n", i);
		else
			printf("%9zu  %td\n", i, file->wrapper_number[i]);
	}
	return err;
}

/* ---- JSON ---- */

struct writer {
	struct inspect_file *file;
	struct seen_image *seen; /* per image */
	size_t row;              /* the next row to print */
	size_t printed;          /* images printed so far */
	size_t *positions;       /* per image: its number in "images", or KP_NOWHERE */
};

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

static json_t *image_json(const struct inspect_file *file, const struct kp_image *image,
			  const struct seen_image *seen)
{
	size_t left = SIGNATURE_JSON_MAX, container = file->numbers[image->container];
	const struct kp_object *object = seen->object;
	json_t *json = json_pack(
		"{sI so so so so sI so so so}", "container", (json_int_t)container,
		"format", text_or_null(seen->type), "target",
		image->id ? report_json_text(image->id) : json_null(), "kind",
		text_or_null(image->kind), "arch", text_or_null(seen->arch), "size",
		(json_int_t)image->size, "offset",
		seen->in_file ? json_integer((json_int_t)seen->offset) : json_null(),
		"sha256", text_or_null(seen->sha256), "pairs", pairs_json(&image->pairs));
	json_t *kernels;

	if (!object)
		return json;
	kernels = json_array();
	for (size_t i = 0; i < object->n_kernels; i++)
		json_array_append_new(kernels, kernel_json(&object->kernels[i], &left));
	json_object_set_new(json, "object_arch", text_or_null(object->arch));
	json_object_set_new(json, "facts", pairs_json(&object->facts));
	json_object_set_new(json, "kernels", kernels);
	return json;
}

static void make_json(const struct writer *w, size_t image)
{
	struct seen_image *seen = &w->seen[image];

	seen->json = report_json_new(
		image_json(w->file, &w->file->list.images[image], seen), 0);
	drop_object(seen);
}

static kpack_error_t see_for_json(void *arg, struct inspect_thread *thread, size_t image,
				  const struct kp_source *src, struct kpackx_error *why)
{
	const struct writer *w = arg;
	kpack_error_t err = see_image(w->file, thread, image, src, &w->seen[image], why);

	make_json(w, image);
	return err;
}

/* Write the images of the rows before END. */
static void write_images(struct writer *w, size_t end)
{
	for (; w->row < end; w->row++) {
		size_t image = w->file->rows[w->row].image;

		if (w->file->rows[w->row].kind != INSPECT_IMAGE)
			continue;
		/* an image that could not be read has none yet */
		if (!w->seen[image].json)
			make_json(w, image);
		printf("%s\n  %s", w->printed ? "," : "", w->seen[image].json);
		w->positions[image] = w->printed++;
		free(w->seen[image].json);
		w->seen[image].json = NULL;
	}
}

static void json_job_done(void *arg, const struct inspect_job *job)
{
	write_images(arg, job->end_row);
}

static void write_value(json_t *value)
{
	report_json_put(stdout, value, 0);
}

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
	const struct inspect_packed *packed = &w->file->packed[container];
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

kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why)
{
	struct writer w = {
		.file = file,
		.seen = new_images(file),
		.positions = xmalloc(file->list.n_images * sizeof(*w.positions)),
	};
	const struct inspect_walk walk = {
		.file = file, .arg = &w, .leaf = see_for_json, .done = json_job_done};
	kpack_error_t err;

	for (size_t i = 0; i < file->list.n_images; i++)
		w.positions[i] = KP_NOWHERE;
	fputs("{\n \"file\": ", stdout);
	write_value(report_json_text(file->path));
	printf(",\n \"format\": \"%s\",\n \"images\": [", file->format);
	err = inspect_walk_run(&walk, why);
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
	forget_images(file, w.seen);
	free(w.positions);
	return err;
}
