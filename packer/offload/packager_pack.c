/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "files.h"
#include "image_arguments.h"
#include "packager.h"

/* Images that are not written yet. */
struct pending {
	struct kp_offload_image *images;
	struct kp_pairs *strings; /* of each image */
	struct bundler_input *inputs;
	size_t count;
};

/* Whether SRC is bitcode, plain or in a wrapper. */
static bool is_bitcode(const struct kp_source *src)
{
	uint8_t b[4];

	return src->size >= 4 && kp_source_read(src, 0, b, 4, NULL) == KPACK_SUCCESS &&
	       (kp_le32(b) == 0xdec04342 || kp_le32(b) == 0x0b17c0de);
}

/* The extension of PATH, or ""; "." and ".." have none. */
static const char *extension(const char *path)
{
	const char *dot;

	path = kp_path_name(path);
	dot = strrchr(path, '.');
	return dot && strcmp(path, ".") != 0 && strcmp(path, "..") != 0 ? dot + 1 : "";
}

/*
 * The kind of an image.  Version 1 has no kind for SPIR-V: its tools do not know SPIR-V.
 */
static uint16_t image_kind(const struct packager *p, const char *path,
			   const struct kp_source *src)
{
	enum kp_offload_image_kind kind;

	if (is_bitcode(src))
		return KP_OFFLOAD_BITCODE;
	kind = kp_offload_image_kind_by_ext(extension(path));
	if (kind == KP_OFFLOAD_SPIRV && p->form.version == 1)
		return KP_OFFLOAD_NONE;
	return (uint16_t)kind;
}

/* Copy all arguments but "file" and "kind". */
static kpack_error_t copy_strings(const struct kp_pairs *arguments, struct kp_pairs *out,
				  struct kpackx_error *why)
{
	for (size_t i = 0; i < arguments->count; i++) {
		const struct kp_pair *pair = &arguments->items[i];
		struct kp_span value = {(const uint8_t *)pair->value, pair->size};

		if (strcmp(pair->name, "file") == 0 || strcmp(pair->name, "kind") == 0)
			continue;
		KP_TRY(kp_pairs_add(out, kp_span_str(pair->name), value, why));
	}
	return KPACK_SUCCESS;
}

static void grow_pending(struct pending *q)
{
	size_t n = q->count + 1;

	q->images = xrealloc(q->images, n * sizeof(*q->images));
	q->strings = xrealloc(q->strings, n * sizeof(*q->strings));
	q->inputs = xrealloc(q->inputs, n * sizeof(*q->inputs));
}

static kpack_error_t add_file(const struct packager *p, const char *path,
			      const struct kp_pairs *arguments, struct pending *q,
			      struct kpackx_error *why)
{
	const char *kind = kp_pairs_find(arguments, "kind");
	struct kp_offload_image *image;
	struct bundler_input *in;

	grow_pending(q);
	image = &q->images[q->count];
	in = &q->inputs[q->count];
	KP_TRY(bundler_input_open(in, path, why));
	q->strings[q->count++] = (struct kp_pairs){0};
	*image = (struct kp_offload_image){
		.image_kind = image_kind(p, path, &in->src),
		.offload_kind = (uint16_t)(kind ? kp_offload_kind_number(kind) : 0),
		.bytes = in->src,
	};
	return copy_strings(arguments, &q->strings[q->count - 1], why);
}

static kpack_error_t write_pending(const struct packager *p, struct pending *q,
				   struct kp_sink *sink, struct kpackx_error *why)
{
	/* the list of strings moved while it grew */
	for (size_t i = 0; i < q->count; i++)
		q->images[i].strings = &q->strings[i];
	return kp_offload_write(q->images, q->count, &p->form, sink, why);
}

static void drop_pending(struct pending *q)
{
	for (size_t i = 0; i < q->count; i++) {
		bundler_input_close(&q->inputs[i]);
		kp_pairs_fini(&q->strings[i]);
	}
	q->count = 0;
}

/*
 * Add a file of --image.  In version 1 it is written and closed at once, as its own
 * binary.
 */
static int pack_file(const struct packager *p, const char *path,
		     const struct kp_pairs *arguments, struct pending *q,
		     struct kp_sink *sink)
{
	struct kpackx_error why = {0};

	if (add_file(p, path, arguments, q, &why))
		return packager_fail(p, path, &why);
	if (p->form.version > 1)
		return 0;
	if (write_pending(p, q, sink, &why))
		return packager_fail(p, path, &why);
	drop_pending(q);
	return 0;
}

static int pack_files(const struct packager *p, const struct kp_pairs *arguments,
		      struct pending *q, struct kp_sink *sink)
{
	const char *files = kp_pairs_find(arguments, "file");
	char *list, *path, *next;
	int status = 0;

	if (!files)
		return llvm_error(p->tool, "'file' is a required image arguments");
	list = next = xstrdup(files);
	while (!status && (path = strsep(&next, ",")))
		status = pack_file(p, path, arguments, q, sink);
	free(list);
	return status;
}

static int pack_images(const struct packager *p, struct pending *q, struct kp_sink *sink)
{
	struct kpackx_error why = {0};
	struct kp_pairs arguments;
	int status = 0;

	for (size_t i = 0; i < p->n_images && !status; i++) {
		if (image_arguments_read(p->images[i], p->hash, &arguments, &why))
			return packager_fail(p, NULL, &why);
		status = pack_files(p, &arguments, q, sink);
		kp_pairs_fini(&arguments);
	}
	/* without images the file is empty, whatever the version */
	if (!status && q->count && write_pending(p, q, sink, &why))
		status = packager_fail(p, p->output, &why);
	return status;
}

int packager_pack(const struct packager *p)
{
	struct bundler_outputs outputs = bundler_outputs_new(1);
	struct pending q = {0};
	struct bundler_output *out;
	struct kpackx_error why = {0};
	const char *failed;
	int status;

	if (bundler_outputs_add(&outputs, p->output, &out, &why))
		status = packager_fail(p, p->output, &why);
	else
		status = pack_images(p, &q, &out->sink);
	if (!status && bundler_outputs_publish(&outputs, &failed, &why))
		status = packager_fail(p, p->output, &why);
	bundler_outputs_close(&outputs);
	drop_pending(&q);
	free(q.images);
	free(q.strings);
	free(q.inputs);
	return status;
}
