/* SPDX-License-Identifier: MIT */
/*
 * Offload binaries: packing files into one, and taking images out.
 *
 * One binary in version 1 of the format has one image, so that a file of several images is a
 * sequence of binaries; later versions have all images in one.  An image has a kind of code, the
 * offload kind of who asks for it, and any strings, of which triple and arch are the common ones.
 *
 * --image=KEY=VALUE,... describes an image to pack, or selects images.  The input of an
 * extraction is an offload binary, several one after another, an ELF file with them in
 * sections of the offload type, bitcode with them as constants, or a static library of any of
 * these, thin or not.  Any other file has no images.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/format/ar_archive.h"
#include "core/format/bitcode.h"
#include "core/format/format.h"
#include "offload.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

/*
 * Parse TEXT.  OUT has every key once, in the order of TEXT, with its values joined by
 * commas; a part without '=' is a key without a value.
 */
static kpack_error_t read_arguments(const char *text, struct kp_pairs *out,
				    struct kpackx_error *why)
{
	for (;; text++) {
		size_t n = strcspn(text, ","), key = strcspn(text, "=,"), i = 0;
		struct kp_span name = {(const uint8_t *)text, key}, value;

		value = kp_span_tail((struct kp_span){name.data, n}, key + (key < n));
		while (i < out->count && !kp_span_is(name, out->items[i].name))
			i++;
		if (i == out->count) {
			KP_TRY(kp_pairs_add(out, name, value, why));
		} else {
			struct kp_pair *pair = &out->items[i];
			char *joined = xasprintf("%s,%.*s", pair->value, (int)value.size,
						 (const char *)value.data);

			free(pair->value);
			pair->value = joined;
			pair->size += 1 + value.size;
		}
		text += n;
		if (!*text)
			return KPACK_SUCCESS;
	}
}

/* The last component of PATH without its extension, and the extension, or "". */
static struct kp_span split_name(const char *path, const char **extension)
{
	const char *name = kp_path_name(path), *dot = strrchr(name, '.');

	if (!dot || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		dot = name + strlen(name);
	*extension = dot + (*dot != '\0');
	return (struct kp_span){(const uint8_t *)name, (size_t)(dot - name)};
}

/* ---- packing ---- */

struct packing {
	const struct packager *p;
	struct kp_pairs *strings; /* of each --image */
	struct kp_offload_image *images;
	size_t count, cap;
};

/* Remove the pair NAME from PAIRS and return its value, on the heap; NULL: there is none. */
static char *take_value(struct kp_pairs *pairs, const char *name)
{
	char *value;
	size_t i = 0;

	while (i < pairs->count && strcmp(pairs->items[i].name, name) != 0)
		i++;
	if (i == pairs->count)
		return NULL;
	value = pairs->items[i].value;
	free(pairs->items[i].name);
	pairs->count--;
	memmove(pairs->items + i, pairs->items + i + 1,
		(pairs->count - i) * sizeof(*pairs->items));
	return value;
}

/* Make an image of each file of --image NUMBER. */
static int add_images(struct packing *q, size_t number)
{
	struct kp_pairs *strings = &q->strings[number];
	KP_AUTO_FREE char *files = NULL, *kind = NULL;
	struct kpackx_error why = {0};
	char *next, *path;

	if (read_arguments(q->p->images.items[number], strings, &why))
		return report_why(NULL, &why);
	files = next = take_value(strings, "file");
	kind = take_value(strings, "kind");
	if (!files)
		return report_error(NULL, "--image=%s: the key \"file\" is missing",
				    q->p->images.items[number]);
	while ((path = strsep(&next, ","))) {
		struct offload_input in;
		struct kp_offload_image *image;
		const char *extension;
		struct kp_span head;
		uint8_t buf[4];
		unsigned type;

		if (offload_input_open(&in, path, &why))
			return report_why(path, &why);
		xgrow(&q->images, q->count, &q->cap, sizeof(*q->images));
		image = &q->images[q->count++];
		*image = (struct kp_offload_image){.strings = strings, .bytes = in.src};
		if (kp_source_head(&in.src, 0, buf, sizeof(buf), &head, &why))
			return report_why(path, &why);
		split_name(path, &extension);
		type = kp_format_bitcode.probe(head)
			       ? KP_OFFLOAD_BITCODE
			       : kp_offload_image_kind_by_ext(extension);
		/* tools that know version 1 only do not know SPIR-V */
		if (type == KP_OFFLOAD_SPIRV && q->p->form.version == 1)
			type = KP_OFFLOAD_NONE;
		image->image_kind = (uint16_t)type;
		image->offload_kind = (uint16_t)(kind ? kp_offload_kind_number(kind) : 0);
	}
	return 0;
}

static int write_packed(void *arg, size_t number, struct kp_sink *sink)
{
	const struct packing *q = arg;
	struct kpackx_error why = {0};

	(void)number;
	/* without images the file is empty, whatever the version */
	return q->count && kp_offload_write(q->images, q->count, &q->p->form, sink, &why)
		       ? report_why(q->p->output, &why)
		       : 0;
}

int packager_pack(const struct packager *p)
{
	struct packing q = {.p = p,
			    .strings = xcalloc(p->images.count, sizeof(*q.strings))};
	int status = 0;

	for (size_t i = 0; i < p->images.count && !status; i++)
		status = add_images(&q, i);
	if (!status)
		status = offload_outputs_write(&p->output, 1, write_packed, &q);
	for (size_t i = 0; i < q.count; i++)
		close(q.images[i].bytes.fd);
	for (size_t i = 0; i < p->images.count; i++)
		kp_pairs_fini(&q.strings[i]);
	free(q.images);
	free(q.strings);
	return status;
}

/* ---- finding images ---- */

/* Bytes with containers in them: the input, or what is embedded in bitcode of it. */
struct unit {
	struct kp_source src;
	uint8_t *heap; /* owned; NULL: the unit is the input */
	size_t size;   /* of HEAP */
	struct kp_containers list;
	size_t host; /* the image of unit 0 that is the bitcode */
};

struct image_ref {
	size_t unit, number;
};

struct extraction {
	const struct packager *p;
	struct offload_input in;
	struct unit *units;
	size_t n_units;
	/* Images of the outermost binaries, in the order of the input. */
	struct image_ref *images;
	size_t n_images;
	/* Those that one --image selects. */
	struct image_ref *matches;
	size_t n_matches;
	struct image_ref current; /* the one that is written */
	/* The container that was decoded last. */
	struct kp_payload loaded;
	size_t loaded_unit, loaded_number; /* KP_NOWHERE: none */
};

static const struct kp_image *image_at(const struct extraction *x, struct image_ref ref)
{
	return &x->units[ref.unit].list.images[ref.number];
}

/* The format that begins at OFFSET; NULL: none, or it cannot be read. */
static const struct kp_format *format_at(const struct kp_source *src, uint64_t offset)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	if (kp_source_head(src, offset, bytes, sizeof(bytes), &head, NULL))
		return NULL;
	return kp_format_probe(head);
}

/*
 * kp_nest_scan finds containers everywhere, and so damage everywhere.  Damage that LLVM's tool
 * would not see is none of ours: a foreign format in a section, or in a member of a library.
 * Of the other faults of a scan the first is kept.
 */
struct faults {
	const struct kp_source *src;
	bool any;
	struct kpackx_error why;
};

static void note_fault(void *arg, const struct kp_containers *list, size_t image,
		       const struct kpackx_error *why)
{
	struct faults *f = arg;
	bool matters;

	if (image == KP_NOWHERE) {
		const struct kp_format *format = format_at(f->src, 0);

		matters = format == &kp_format_offload_binary ||
			  format == &kp_format_archive || format == &kp_format_bitcode ||
			  (format && kp_format_is_host(format));
	} else if (list->images[image].stream) {
		/* a section of offload binaries has no kind, one of HIP's or CUDA's has */
		matters = !list->images[image].kind[0];
	} else {
		/* a member that begins as an offload binary */
		const struct kp_image *img = &list->images[image];
		const struct kp_container *c = &list->items[img->container];

		matters = c->format == &kp_format_archive && c->inside == KP_NOWHERE &&
			  kp_range_ok(f->src->size, c->offset, img->offset) &&
			  format_at(f->src, c->offset + img->offset) ==
				  &kp_format_offload_binary;
	}
	if (matters && !f->any) {
		f->any = true;
		f->why = *why;
	}
}

/* Take over UNIT, and find its containers.  The scan keeps no pointer to the unit, which moves. */
static kpack_error_t add_unit(struct extraction *x, struct unit unit,
			      struct kpackx_error *why)
{
	struct faults faults = {.src = &unit.src};
	struct unit *u;

	x->units = xrealloc(x->units, (x->n_units + 1) * sizeof(*x->units));
	u = &x->units[x->n_units++];
	*u = unit;
	KP_TRY(kp_nest_scan(&u->src, note_fault, &faults, &u->list, why));
	if (!faults.any)
		return KPACK_SUCCESS;
	*why = faults.why;
	return why->code ? why->code : KPACK_ERROR_INVALID_FORMAT;
}

/* Append BYTES at the next multiple of 8, as linkers do. */
static kpack_error_t append_embedded(void *arg, struct kp_span bytes,
				     struct kpackx_error *why)
{
	struct unit *u = arg;
	size_t size = (u->size + bytes.size + 7) / 8 * 8;
	uint8_t *grown = realloc(u->heap, size);

	if (!grown)
		return kp_fail_memory(why, size, "what is embedded in bitcode");
	memset(grown + u->size, 0, size - u->size);
	memcpy(grown + u->size, bytes.data, bytes.size);
	u->heap = grown;
	u->size = size;
	return KPACK_SUCCESS;
}

/*
 * List the images of container NUMBER of UNIT, and of those behind it in the same bytes.  Images of
 * a binary inside a binary are not listed: the outer image is what LLVM's tool selects.
 */
static void list_images(struct extraction *x, size_t unit, size_t number)
{
	const struct kp_containers *list = &x->units[unit].list;

	for (; number != KP_NOWHERE; number = list->items[number].next) {
		const struct kp_container *c = &list->items[number];

		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
			if (c->format == &kp_format_offload_binary) {
				x->images[x->n_images++] = (struct image_ref){unit, i};
				continue;
			}
			list_images(x, unit, list->images[i].inside);
			for (size_t u = 1; u < x->n_units && unit == 0; u++)
				if (x->units[u].host == i && x->units[u].list.count)
					list_images(x, u, 0);
		}
	}
}

/*
 * List the images of the input.  Units are complete before images are listed, because bitcode in
 * the middle of a library has its images in the place of that member.
 */
static kpack_error_t find_images(struct extraction *x, struct kpackx_error *why)
{
	size_t most = 0, n;

	KP_TRY(offload_input_open(&x->in, x->p->input, why));
	KP_TRY(offload_input_gather(&x->in, x->p->input, why));
	KP_TRY(add_unit(x, (struct unit){.src = x->in.src}, why));
	/* bitcode, the whole input or members of a static library: add what each embeds */
	n = x->units[0].list.n_images;
	for (size_t i = 0; i < n; i++) {
		/* not kept, because the list of units moves */
		const struct kp_image *image = &x->units[0].list.images[i];
		const struct kp_container *c = &x->units[0].list.items[image->container];
		KP_AUTO_FREE uint8_t *code = NULL;
		struct unit unit = {.host = i};
		struct kp_source src;
		struct kp_span head;
		uint8_t buf[4];
		kpack_error_t err;

		/* the payload of these are the bytes themselves */
		if (image->inside != KP_NOWHERE || c->inside != KP_NOWHERE ||
		    (c->format != &kp_format_archive &&
		     c->format != &kp_format_bitcode) ||
		    !kp_range_ok(x->in.src.size, c->offset, image->offset) ||
		    !kp_source_sub(&x->in.src, c->offset + image->offset, image->size,
				   &src))
			continue;
		KP_TRY(kp_source_head(&src, 0, buf, sizeof(buf), &head, why));
		if (!kp_format_bitcode.probe(head))
			continue;
		KP_TRY(kp_source_load(&src, UINT64_MAX, "bitcode", &code, why));
		err = kp_bitcode_embedded((struct kp_span){code, (size_t)src.size},
					  append_embedded, &unit, why);
		if (err || !unit.size) {
			free(unit.heap);
			KP_TRY(err);
			continue;
		}
		unit.src = kp_source_memory(unit.heap, unit.size);
		KP_TRY(add_unit(x, unit, why));
	}
	for (size_t i = 0; i < x->n_units; i++)
		most += x->units[i].list.n_images;
	x->images = xcalloc(most, sizeof(*x->images));
	x->matches = xcalloc(most, sizeof(*x->matches));
	if (x->units[0].list.count)
		list_images(x, 0, 0);
	return KPACK_SUCCESS;
}

/* ---- selecting images ---- */

/* The member of the static library that has image REF; NULL: REF is in no library. */
static const char *member_of(const struct extraction *x, struct image_ref ref)
{
	const struct kp_containers *list = &x->units[0].list;
	size_t number = ref.unit ? x->units[ref.unit].host : ref.number;

	while (number != KP_NOWHERE) {
		const struct kp_container *c =
			&list->items[list->images[number].container];

		if (c->format == &kp_format_archive)
			return list->images[number].id;
		number = c->inside;
	}
	return NULL;
}

/* ---- writing images ---- */

/* Set OUT to the bytes of image REF, valid until an image of another container is opened. */
static kpack_error_t open_image(struct extraction *x, struct image_ref ref,
				struct kp_source *out, struct kpackx_error *why)
{
	const struct unit *unit = &x->units[ref.unit];
	const struct kp_image *image = image_at(x, ref);

	if (x->loaded_unit != ref.unit || x->loaded_number != image->container) {
		kp_payload_fini(&x->loaded);
		x->loaded_number = KP_NOWHERE;
		KP_TRY(kp_containers_load(&unit->src, &unit->list, image->container,
					  &x->loaded, why));
		x->loaded_unit = ref.unit;
		x->loaded_number = image->container;
	}
	if (!kp_source_sub(&x->loaded.source, image->offset, image->size, out))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	return KPACK_SUCCESS;
}

static int write_image(void *arg, size_t number, struct kp_sink *sink)
{
	struct extraction *x = arg;
	struct kpackx_error why = {0};
	struct kp_source bytes;

	(void)number;
	return open_image(x, x->current, &bytes, &why) || kp_sink_copy(sink, &bytes, &why)
		       ? report_why(x->p->input, &why)
		       : 0;
}

static int write_image_to(struct extraction *x, struct image_ref ref, const char *path)
{
	x->current = ref;
	return offload_outputs_write(&path, 1, write_image, x);
}

/*
 * Write all matches as members of a static library, named as the members that they come from, or
 * as the input.
 */
static int write_library(void *arg, size_t number, struct kp_sink *sink)
{
	struct extraction *x = arg;
	KP_AUTO_FREE struct kp_ar_input *members =
		xcalloc(x->n_matches, sizeof(*members));
	KP_AUTO(offload_spool) spool = {.file = {.fd = -1, .dir_fd = -1}};
	struct kpackx_error why = {0};
	struct kp_source bytes;

	(void)number;
	if (offload_spool_open(&spool, &why))
		return report_why(NULL, &why);
	for (size_t i = 0; i < x->n_matches; i++) {
		const char *member = member_of(x, x->matches[i]);
		uint64_t before = spool.sink.size;

		if (open_image(x, x->matches[i], &bytes, &why) ||
		    kp_sink_copy(&spool.sink, &bytes, &why))
			return report_why(x->p->input, &why);
		members[i].name = kp_span_str(member ? member : x->p->input);
		members[i].bytes = offload_spooled(&spool, before);
	}
	return kp_ar_write(members, x->n_matches, sink, &why)
		       ? report_why(x->p->input, &why)
		       : 0;
}

/* Write image REF to "STEM-TRIPLE-ARCH.INDEX.EXTENSION" in the current directory. */
static int write_named(struct extraction *x, struct image_ref ref, size_t index)
{
	const struct kp_image *image = image_at(x, ref);
	const struct kp_pair *triple = kp_offload_string(image, "triple");
	const struct kp_pair *arch = kp_offload_string(image, "arch");
	const char *none;
	struct kp_span stem = split_name(x->p->input, &none);
	KP_AUTO_FREE char *name =
		xasprintf("%.*s-%s-%s.%zu.%s", (int)stem.size, (const char *)stem.data,
			  triple ? triple->value : "", arch ? arch->value : "", index,
			  kp_offload_image_kind_ext(kp_offload_image_kind(image)));
	int status;

	/* the input's strings must not lead to another directory */
	if (!kp_component_ok(kp_span_str(name)))
		return report_error(x->p->input,
				    "its strings make no name for a file: %s", name);
	status = write_image_to(x, ref, name);
	if (!status && !x->p->images.count) {
		fputs("Extracted: ", stdout);
		report_text(name);
		putchar('\n');
	}
	return status;
}

/* Write REF, or if it consists of offload binaries, with or without padding, their images. */
static int write_inner(struct extraction *x, struct image_ref ref, size_t *index)
{
	const struct kp_containers *list = &x->units[ref.unit].list;
	const struct kp_image *image = image_at(x, ref);
	uint64_t end = 0;
	int status = 0;

	for (size_t i = image->inside; i != KP_NOWHERE; i = list->items[i].next) {
		if (list->items[i].format != &kp_format_offload_binary)
			return write_named(x, ref, (*index)++);
		end = list->items[i].offset + list->items[i].size;
	}
	if (end == 0 || (image->size != end && image->size != (end + 7) / 8 * 8))
		return write_named(x, ref, (*index)++);
	for (size_t i = image->inside; i != KP_NOWHERE; i = list->items[i].next)
		for (size_t n = 0; n < list->items[i].n_images && !status; n++)
			status = write_inner(
				x,
				(struct image_ref){ref.unit,
						   list->items[i].first_image + n},
				index);
	return status;
}

/* Write the images that ARGUMENTS, those of an --image, select. */
static int extract_matches(struct extraction *x, const struct kp_pairs *arguments)
{
	const char *path = kp_pairs_find(arguments, "file");
	size_t index = 0;
	int status = 0;

	x->n_matches = 0;
	for (size_t i = 0; i < x->n_images; i++) {
		size_t n = 0;

		/* each key with its value; a missing key has an empty one */
		for (; n < arguments->count; n++) {
			const struct kp_pair *want = &arguments->items[n];
			const struct kp_image *image = image_at(x, x->images[i]);
			const struct kp_pair *have = kp_offload_string(image, want->name);
			const char *is = NULL;

			if (strcmp(want->name, "file") == 0)
				continue;
			if (have ? have->size == want->size &&
					    !memcmp(have->value, want->value, have->size)
				 : want->size == 0)
				is = want->value;
			else if (strcmp(want->name, "member") == 0)
				is = member_of(x, x->images[i]);
			if (strcmp(want->name, "kind") == 0) {
				unsigned kind = kp_offload_kind_number(want->value);

				if (strcmp(image->kind, kp_offload_kind_name(kind)) != 0)
					break;
			} else if (!is || strcmp(is, want->value) != 0) {
				break;
			}
		}
		if (n == arguments->count)
			x->matches[x->n_matches++] = x->images[i];
	}
	if (x->n_matches == 0)
		return 0;
	if (x->p->archive && x->p->images.count)
		return path ? offload_outputs_write(&path, 1, write_library, x)
			    : report_error(NULL, "with --archive an --image needs the "
						 "key \"file\"");
	if (path) {
		if (x->n_matches > 1)
			report_error(path, "warning: the last of %zu images is taken",
				     x->n_matches);
		return write_image_to(x, x->matches[x->n_matches - 1], path);
	}
	for (size_t i = 0; i < x->n_matches && !status; i++)
		status = write_inner(x, x->matches[i], &index);
	return status;
}

int packager_extract(const struct packager *p)
{
	struct extraction x = {.p = p,
			       .in = {.fd = -1},
			       .loaded = {.source = {.fd = -1}},
			       .loaded_number = KP_NOWHERE};
	struct kp_pairs arguments = {0};
	struct kpackx_error why = {0};
	int status = 0;

	if (find_images(&x, &why))
		status = report_why(p->input, &why);
	else if (p->images.count == 0)
		status = extract_matches(&x, &arguments);
	for (size_t i = 0; i < p->images.count && !status; i++) {
		status = read_arguments(p->images.items[i], &arguments, &why)
				 ? report_why(NULL, &why)
				 : extract_matches(&x, &arguments);
		kp_pairs_fini(&arguments);
	}
	for (size_t i = 0; i < x.n_units; i++) {
		kp_containers_fini(&x.units[i].list);
		free(x.units[i].heap);
	}
	free(x.units);
	free(x.images);
	free(x.matches);
	kp_payload_fini(&x.loaded);
	offload_input_fini(&x.in);
	return status;
}
