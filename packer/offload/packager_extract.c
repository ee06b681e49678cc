/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../report.h"
#include "bundler_files.h"
#include "format/ar.h"
#include "format/nest.h"
#include "image_arguments.h"
#include "packager.h"
#include "text.h"

struct extraction {
	const struct packager *p;
	struct bundler_input in;
	struct kp_containers list;
	struct kp_payload loaded; /* of container LOADED_NUMBER */
	size_t loaded_number;     /* KP_NOWHERE: none */
	bool failed;
	struct kpackx_error why; /* the first fault that matters */
	/* Numbers of images that are asked for. */
	size_t *matches;
	size_t n_matches;
};

/* ---- what there is ---- */

/* Is IMAGE a section that linkers put offload binaries into, or the whole input? */
static bool is_ours(const struct kp_containers *list, size_t image)
{
	if (image == KP_NOWHERE)
		return true;
	return list->images[image].stream && !list->images[image].kind[0];
}

/* What is damaged elsewhere is nothing that anybody asks for here. */
static void fault(void *arg, const struct kp_containers *list, size_t image,
		  const struct kpackx_error *why)
{
	struct extraction *x = arg;

	if (!x->failed && is_ours(list, image)) {
		x->failed = true;
		x->why = *why;
	}
}

static const struct kp_container *around(const struct kp_containers *list,
					 const struct kp_container *c)
{
	return c->inside == KP_NOWHERE ? NULL
				       : &list->items[list->images[c->inside].container];
}

/* An offload binary that is no image of another one. */
static bool is_outermost(const struct kp_containers *list, const struct kp_container *c)
{
	const struct kp_container *outer = around(list, c);

	return c->format == &kp_format_offload_binary &&
	       !(outer && outer->format == &kp_format_offload_binary);
}

/* The member of an archive that the image comes from; else the input. */
static const char *origin(const struct extraction *x, const struct kp_image *image,
			  bool *member)
{
	const struct kp_container *c = &x->list.items[image->container], *outer;

	for (; (outer = around(&x->list, c)); c = outer) {
		*member = outer->format == &kp_format_archive;
		if (*member)
			return x->list.images[c->inside].id;
	}
	*member = false;
	return x->p->input;
}

/* ---- what is asked for ---- */

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

/* As in newer tools, "member" names that of the archive, where images have no such key. */
static bool is_from(const struct extraction *x, const struct kp_image *image,
		    const struct kp_pair *want)
{
	bool member;
	const char *name = origin(x, image, &member);

	return member && strcmp(name, want->value) == 0;
}

static bool matches(const struct extraction *x, const struct kp_image *image,
		    const struct kp_pairs *arguments)
{
	for (size_t i = 0; i < arguments->count; i++) {
		const struct kp_pair *a = &arguments->items[i];

		if (strcmp(a->name, "file") == 0)
			continue;
		if (strcmp(a->name, "kind") == 0) {
			if (!kind_is(image, a->value))
				return false;
		} else if (!string_is(image, a->name, a) &&
			   !(strcmp(a->name, "member") == 0 && is_from(x, image, a))) {
			return false;
		}
	}
	return true;
}

/* In the order of the input. */
static void match(struct extraction *x, const struct kp_pairs *arguments)
{
	x->n_matches = 0;
	for (size_t i = 0; i < x->list.count; i++) {
		const struct kp_container *c = &x->list.items[i];

		if (!is_outermost(&x->list, c))
			continue;
		for (size_t j = 0; j < c->n_images; j++)
			if (matches(x, &x->list.images[c->first_image + j], arguments))
				x->matches[x->n_matches++] = c->first_image + j;
	}
}

/* ---- writing ---- */

/* The bytes of an image; they stay until another container's are asked for. */
static kpack_error_t open_image(struct extraction *x, size_t number,
				struct kp_source *out, struct kpackx_error *why)
{
	const struct kp_image *image = &x->list.images[number];

	if (x->loaded_number != image->container) {
		kp_payload_fini(&x->loaded);
		x->loaded_number = KP_NOWHERE;
		KP_TRY(kp_containers_load(&x->in.src, &x->list, image->container,
					  &x->loaded, why));
		x->loaded_number = image->container;
	}
	if (!kp_source_sub(&x->loaded.source, image->offset, image->size, out))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	return KPACK_SUCCESS;
}

/* A file that WRITE fills. */
static int write_file(struct extraction *x, const char *path,
		      kpack_error_t (*write)(struct extraction *x, void *arg,
					     struct kp_sink *sink,
					     struct kpackx_error *why),
		      void *arg)
{
	struct bundler_outputs outputs;
	struct bundler_output *out;
	struct kpackx_error why = {0};
	const char *failed;
	int status = 0;

	if (bundler_outputs_new(&outputs, 1, &why) ||
	    bundler_outputs_add(&outputs, path, &out, &why) ||
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

	KP_TRY(open_image(x, *(const size_t *)arg, &bytes, why));
	return kp_sink_copy(sink, &bytes, why);
}

/* ---- names ---- */

/* The input's last component without its extension. */
static char *stem(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot;

	path = slash ? slash + 1 : path;
	dot = strrchr(path, '.');
	if (!dot || strcmp(path, ".") == 0 || strcmp(path, "..") == 0)
		return strdup(path);
	return strndup(path, (size_t)(dot - path));
}

static const char *text_of(const struct kp_image *image, const char *name)
{
	const struct kp_pair *pair = kp_offload_string(image, name);

	return pair ? pair->value : "";
}

static char *generated_name(const struct extraction *x, const struct kp_image *image,
			    size_t index)
{
	char *begin = stem(x->p->input), *name;

	if (!begin)
		return NULL;
	if (asprintf(&name, "%s-%s-%s.%zu.%s", begin, text_of(image, "triple"),
		     text_of(image, "arch"), index,
		     kp_offload_image_kind_ext(kp_offload_image_kind(image))) < 0)
		name = NULL;
	free(begin);
	return name;
}

static int extract_generated(struct extraction *x, size_t number, size_t index)
{
	char *name = generated_name(x, &x->list.images[number], index);
	int status;

	if (!name)
		return llvm_error(x->p->tool, "out of memory");
	/* what the input says must not lead anywhere else */
	if (kp_component_ok(kp_span_str(name)))
		status = write_file(x, name, copy_image, &number);
	else
		status = llvm_error(x->p->tool, "'%s' is no name for a file", name);
	if (!status && !x->p->n_images)
		printf("Extracted: %s\n", name);
	free(name);
	return status;
}

/* An image that holds offload binaries stands for their images. */
static int extract_all(struct extraction *x, size_t number, size_t *index)
{
	size_t inside = x->list.images[number].inside;
	int status = 0;

	if (inside == KP_NOWHERE ||
	    x->list.items[inside].format != &kp_format_offload_binary)
		return extract_generated(x, number, (*index)++);
	for (; inside != KP_NOWHERE && !status; inside = x->list.items[inside].next) {
		const struct kp_container *c = &x->list.items[inside];

		for (size_t i = 0; i < c->n_images && !status; i++)
			status = extract_all(x, c->first_image + i, index);
	}
	return status;
}

/* ---- archives ---- */

/* What the matches are in, each container once: they stand in its order. */
struct members {
	struct kp_ar_input *items;
	struct kp_payload *payloads;
	size_t n_payloads;
};

static kpack_error_t add_member(struct extraction *x, size_t i, struct members *m,
				struct kpackx_error *why)
{
	const struct kp_image *image = &x->list.images[x->matches[i]];
	bool is_member;

	if (i == 0 || x->list.images[x->matches[i - 1]].container != image->container) {
		KP_TRY(kp_containers_load(&x->in.src, &x->list, image->container,
					  &m->payloads[m->n_payloads], why));
		m->n_payloads++;
	}
	m->items[i].name = kp_span_str(origin(x, image, &is_member));
	if (!kp_source_sub(&m->payloads[m->n_payloads - 1].source, image->offset,
			   image->size, &m->items[i].bytes))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	return KPACK_SUCCESS;
}

static kpack_error_t fill_archive(struct extraction *x, void *arg, struct kp_sink *sink,
				  struct kpackx_error *why)
{
	struct members m = {.items = calloc(x->n_matches, sizeof(*m.items)),
			    .payloads = calloc(x->n_matches, sizeof(*m.payloads))};
	kpack_error_t err = KPACK_SUCCESS;

	(void)arg;
	if (!m.items || !m.payloads)
		err = kp_fail_memory(why, x->n_matches * sizeof(*m.items), "members");
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

/* ---- all of it ---- */

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

	match(x, arguments);
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

	x->matches = calloc(x->list.n_images + 1, sizeof(*x->matches));
	if (!x->matches)
		return llvm_error(x->p->tool, "out of memory");
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

static kpack_error_t scan(struct extraction *x, struct kpackx_error *why)
{
	KP_TRY(bundler_input_open(&x->in, x->p->input, why));
	KP_TRY(kp_nest_scan(&x->in.src, fault, x, &x->list, why));
	if (!x->failed)
		return KPACK_SUCCESS;
	*why = x->why;
	return x->why.code ? x->why.code : KPACK_ERROR_INVALID_FORMAT;
}

int packager_extract(const struct packager *p)
{
	struct extraction x = {.p = p,
			       .in = {.fd = -1},
			       .loaded = {.source = {.fd = -1}},
			       .loaded_number = KP_NOWHERE};
	struct kpackx_error why = {0};
	int status;

	status = scan(&x, &why) ? packager_fail(p, p->input, &why) : extract_images(&x);
	free(x.matches);
	kp_payload_fini(&x.loaded);
	kp_containers_fini(&x.list);
	bundler_input_close(&x.in);
	return status;
}
