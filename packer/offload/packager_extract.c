/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "core/format/ar_archive.h"
#include "image_arguments.h"
#include "packager.h"
#include "packager_input.h"
#include "core/base/text.h"

struct extraction {
	const struct packager *p;
	struct packager_input in;
	/* The container that was loaded last. */
	struct kp_payload loaded;
	size_t loaded_unit, loaded_number; /* KP_NOWHERE: none */
	/* Images that one --image selects, in the order of the input. */
	struct packager_image *matches;
	size_t n_matches;
};

/* ---- selecting images ---- */

static bool string_is(const struct kp_image *image, const char *name,
		      const struct kp_pair *want)
{
	const struct kp_pair *have = kp_offload_string(image, name);

	if (!have)
		return want->size == 0;
	return have->size == want->size &&
	       memcmp(have->value, want->value, have->size) == 0;
}

static bool kind_is(const struct kp_image *image, const char *name)
{
	const char *wanted = kp_offload_kind_name(kp_offload_kind_number(name));

	return strcmp(image->kind, wanted) == 0;
}

/* As in newer tools, "member" also matches the archive's member that has the image. */
static bool is_from(const struct extraction *x, struct packager_image ref,
		    const struct kp_pair *want)
{
	const char *member = packager_image_member(&x->in, ref);

	return member && strcmp(member, want->value) == 0;
}

static bool image_matches(const struct extraction *x, struct packager_image ref,
			  const struct kp_pairs *arguments)
{
	const struct kp_image *image = packager_image(&x->in, ref);

	for (size_t i = 0; i < arguments->count; i++) {
		const struct kp_pair *a = &arguments->items[i];

		if (strcmp(a->name, "file") == 0)
			continue;
		if (strcmp(a->name, "kind") == 0) {
			if (!kind_is(image, a->value))
				return false;
		} else if (!string_is(image, a->name, a) &&
			   !(strcmp(a->name, "member") == 0 && is_from(x, ref, a))) {
			return false;
		}
	}
	return true;
}

static void match_images(struct extraction *x, const struct kp_pairs *arguments)
{
	x->n_matches = 0;
	for (size_t i = 0; i < x->in.n_images; i++)
		if (image_matches(x, x->in.images[i], arguments))
			x->matches[x->n_matches++] = x->in.images[i];
}

/* ---- writing ---- */

static kpack_error_t load_container(const struct extraction *x, struct packager_image ref,
				    struct kp_payload *out, struct kpackx_error *why)
{
	const struct packager_unit *unit = &x->in.units[ref.unit];

	return kp_containers_load(&unit->src, &unit->list,
				  packager_image(&x->in, ref)->container, out, why);
}

static kpack_error_t find_bytes(const struct extraction *x, struct packager_image ref,
				const struct kp_payload *payload, struct kp_source *out,
				struct kpackx_error *why)
{
	const struct kp_image *image = packager_image(&x->in, ref);

	if (!kp_source_sub(&payload->source, image->offset, image->size, out))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	return KPACK_SUCCESS;
}

/*
 * Set OUT to the bytes of an image, valid until an image of another container is opened.
 */
static kpack_error_t open_image(struct extraction *x, struct packager_image ref,
				struct kp_source *out, struct kpackx_error *why)
{
	size_t number = packager_image(&x->in, ref)->container;

	if (x->loaded_unit != ref.unit || x->loaded_number != number) {
		kp_payload_fini(&x->loaded);
		x->loaded_number = KP_NOWHERE;
		KP_TRY(load_container(x, ref, &x->loaded, why));
		x->loaded_unit = ref.unit;
		x->loaded_number = number;
	}
	return find_bytes(x, ref, &x->loaded, out, why);
}

/* Create the file PATH with the content that WRITE writes. */
static int write_file(struct extraction *x, const char *path,
		      kpack_error_t (*write)(struct extraction *x, void *arg,
					     struct kp_sink *sink,
					     struct kpackx_error *why),
		      void *arg)
{
	struct bundler_outputs outputs = bundler_outputs_new(1);
	struct bundler_output *out;
	struct kpackx_error why = {0};
	const char *failed;
	int status = 0;

	if (bundler_outputs_add(&outputs, path, &out, &why) ||
	    write(x, arg, &out->sink, &why) ||
	    bundler_outputs_publish(&outputs, &failed, &why))
		status = packager_fail(x->p, path, &why);
	bundler_outputs_close(&outputs);
	return status;
}

static kpack_error_t copy_image(struct extraction *x, void *arg, struct kp_sink *sink,
				struct kpackx_error *why)
{
	struct kp_source bytes;

	KP_TRY(open_image(x, *(const struct packager_image *)arg, &bytes, why));
	return kp_sink_copy(sink, &bytes, why);
}

/* ---- names ---- */

/* The last component of PATH without its extension, on the heap. */
static char *stem(const char *path)
{
	const char *dot;

	path = kp_path_name(path);
	dot = strrchr(path, '.');
	if (!dot || strcmp(path, ".") == 0 || strcmp(path, "..") == 0)
		return xstrdup(path);
	return xstrndup(path, (size_t)(dot - path));
}

static const char *text_of(const struct kp_image *image, const char *name)
{
	const struct kp_pair *pair = kp_offload_string(image, name);

	return pair ? pair->value : "";
}

static char *generated_name(const struct extraction *x, const struct kp_image *image,
			    size_t index)
{
	char *begin = stem(x->p->input);
	char *name = xasprintf("%s-%s-%s.%zu.%s", begin, text_of(image, "triple"),
			       text_of(image, "arch"), index,
			       kp_offload_image_kind_ext(kp_offload_image_kind(image)));

	free(begin);
	return name;
}

static int extract_generated(struct extraction *x, struct packager_image ref,
			     size_t index)
{
	char *name = generated_name(x, packager_image(&x->in, ref), index);
	int status;

	/* the input's strings must not lead to another directory */
	if (kp_component_ok(kp_span_str(name)))
		status = write_file(x, name, copy_image, &ref);
	else
		status = llvm_error(x->p->tool, "'%s' is no name for a file", name);
	if (!status && !x->p->n_images) {
		fputs("Extracted: ", stdout);
		report_text(name);
		putchar('\n');
	}
	free(name);
	return status;
}

/*
 * Whether IMAGE consists of offload binaries, with or without alignment after the last.
 */
static bool is_binaries(const struct kp_containers *list, const struct kp_image *image)
{
	uint64_t end = 0;

	for (size_t i = image->inside; i != KP_NOWHERE; i = list->items[i].next) {
		if (list->items[i].format != &kp_format_offload_binary)
			return false;
		end = list->items[i].offset + list->items[i].size;
	}
	return end && (image->size == end || image->size == (end + 7) / 8 * 8);
}

/* Extract REF; if it consists of offload binaries, extract their images instead. */
static int extract_all(struct extraction *x, struct packager_image ref, size_t *index)
{
	const struct kp_containers *list = &x->in.units[ref.unit].list;
	size_t inside = list->images[ref.number].inside;
	int status = 0;

	if (!is_binaries(list, &list->images[ref.number]))
		return extract_generated(x, ref, (*index)++);
	for (; inside != KP_NOWHERE && !status; inside = list->items[inside].next) {
		const struct kp_container *c = &list->items[inside];
		struct packager_image inner = {ref.unit, c->first_image};

		for (; inner.number < c->first_image + c->n_images && !status;
		     inner.number++)
			status = extract_all(x, inner, index);
	}
	return status;
}

/* ---- archives ---- */

/*
 * Members of the archive to write, and each of their containers once, in the same order.
 */
struct members {
	struct kp_ar_input *items;
	struct kp_payload *payloads;
	size_t n_payloads;
};

static bool same_container(const struct extraction *x, struct packager_image a,
			   struct packager_image b)
{
	return a.unit == b.unit && packager_image(&x->in, a)->container ==
					   packager_image(&x->in, b)->container;
}

static kpack_error_t add_member(struct extraction *x, size_t i, struct members *m,
				struct kpackx_error *why)
{
	struct packager_image ref = x->matches[i];
	const char *name = packager_image_member(&x->in, ref);

	if (i == 0 || !same_container(x, x->matches[i - 1], ref)) {
		KP_TRY(load_container(x, ref, &m->payloads[m->n_payloads], why));
		m->n_payloads++;
	}
	m->items[i].name = kp_span_str(name ? name : x->p->input);
	return find_bytes(x, ref, &m->payloads[m->n_payloads - 1], &m->items[i].bytes,
			  why);
}

static kpack_error_t fill_archive(struct extraction *x, void *arg, struct kp_sink *sink,
				  struct kpackx_error *why)
{
	struct members m = {.items = xcalloc(x->n_matches, sizeof(*m.items)),
			    .payloads = xcalloc(x->n_matches, sizeof(*m.payloads))};
	kpack_error_t err = KPACK_SUCCESS;

	(void)arg;
	for (size_t i = 0; i < x->n_matches && !err; i++)
		err = add_member(x, i, &m, why);
	if (!err)
		err = kp_ar_write(m.items, x->n_matches, sink, why);
	for (size_t i = 0; i < m.n_payloads; i++)
		kp_payload_fini(&m.payloads[i]);
	free(m.items);
	free(m.payloads);
	return err;
}

/* ---- the whole job ---- */

static int extract_to(struct extraction *x, const char *path)
{
	if (x->n_matches > 1)
		llvm_warning(x->p->tool, "Multiple inputs match to a single file, '%s'",
			     path);
	return write_file(x, path, copy_image, &x->matches[x->n_matches - 1]);
}

static int extract_matches(struct extraction *x, const struct kp_pairs *arguments)
{
	const char *path = kp_pairs_find(arguments, "file");
	size_t index = 0;
	int status = 0;

	match_images(x, arguments);
	if (x->n_matches == 0)
		return 0;
	if (x->p->archive && x->p->n_images)
		return path ? write_file(x, path, fill_archive, NULL)
			    : llvm_error(x->p->tool,
					 "Image must have a 'file' argument.");
	if (path)
		return extract_to(x, path);
	for (size_t i = 0; i < x->n_matches && !status; i++)
		status = extract_all(x, x->matches[i], &index);
	return status;
}

static int extract_images(struct extraction *x)
{
	struct kp_pairs arguments = {0};
	struct kpackx_error why = {0};
	int status = 0;

	x->matches = xcalloc(x->in.n_images, sizeof(*x->matches));
	if (x->p->n_images == 0)
		return extract_matches(x, &arguments);
	for (size_t i = 0; i < x->p->n_images && !status; i++) {
		if (image_arguments_read(x->p->images[i], x->p->hash, &arguments, &why))
			return packager_fail(x->p, NULL, &why);
		status = extract_matches(x, &arguments);
		kp_pairs_fini(&arguments);
	}
	return status;
}

int packager_extract(const struct packager *p)
{
	struct extraction x = {
		.p = p, .loaded = {.source = {.fd = -1}}, .loaded_number = KP_NOWHERE};
	struct kpackx_error why = {0};
	int status;

	if (packager_input_open(&x.in, p->input, &why))
		return packager_fail(p, p->input, &why);
	status = extract_images(&x);
	free(x.matches);
	kp_payload_fini(&x.loaded);
	packager_input_close(&x.in);
	return status;
}
