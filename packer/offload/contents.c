/* SPDX-License-Identifier: MIT */
/*
 * The entries of a bundled file.  Its type decides the form:
 *
 *	i ii cui hipi d ll s	a text bundle, plain or compressed
 *	o a, if it is an ELF	a section for each entry
 *	any other		binary bundles, plain and compressed, one after another
 *
 * LLVM's tool reads one bundle in a file.  Data that was cut out of a library have several,
 * with zeros, and sometimes bare code objects, between them: all of these are read.
 */
#include <elf.h>
#include <inttypes.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/format/sections.h"
#include "core/format/text_bundle.h"
#include "offload.h"
#include "packer/cli/report.h"

/* Bytes that tell which container begins. */
#define HEAD_SIZE 64

bool bundler_type_known(const char *type)
{
	static const char *const binary[] = {"bc", "gch", "ast", "o", "a"};

	for (size_t i = 0; i < KP_COUNT(binary); i++)
		if (strcmp(binary[i], type) == 0)
			return true;
	return kp_text_bundle_comment(type) != NULL;
}

/* Decode CONTAINER and keep it in C; with --verbose say how much that is. */
static kpack_error_t load_container(struct bundle_contents *c,
				    const struct kp_container *container,
				    struct kpackx_error *why)
{
	struct kp_ccob_form form;
	struct kp_span bytes;

	kp_payload_fini(&c->loaded);
	KP_TRY(kp_container_load(&c->src, container, &c->loaded, why));
	if (!c->verbose || container->format != &kp_format_ccob ||
	    kp_ccob_form_read(&c->src, container, &form, NULL) ||
	    kp_payload_map(&c->loaded, &bytes, NULL))
		return KPACK_SUCCESS;
	report_error(NULL, "decompressed %" PRIu64 " bytes to %zu: version %u, %s%s",
		     container->size, bytes.size, form.version,
		     form.method == KP_CCOB_ZLIB ? "zlib" : "zstd",
		     kp_ccob_hash(bytes) == form.hash ? "" : ", the stored hash differs");
	return KPACK_SUCCESS;
}

kpack_error_t bundle_contents_read(const struct bundler *b, const struct kp_source *src,
				   struct bundle_contents *c, struct kpackx_error *why)
{
	bool objects = strcmp(b->type, "o") == 0 || strcmp(b->type, "a") == 0;
	const char *comment = kp_text_bundle_comment(b->type);
	const struct kp_format *format;
	struct kp_container one = {0};
	KP_AUTO(kp_sections) sections = {0};
	size_t n = strlen(OFFLOAD_SECTION);
	uint8_t buf[HEAD_SIZE];
	struct kp_span head;
	uint64_t end, pos = 0;

	*c = (struct bundle_contents){.src = *src,
				      .loaded = {.source = kp_source_memory(NULL, 0)},
				      .loaded_number = KP_NOWHERE,
				      .verbose = b->verbose};
	KP_TRY(kp_source_head(src, 0, buf, sizeof(buf), &head, why));
	/* a text bundle; a compressed one is decoded as a whole, and its entries are in the text */
	if (comment && kp_format_ccob.probe(head)) {
		KP_TRY(kp_ccob_measure(src, 0, &one, why));
		KP_TRY(load_container(c, &one, why));
		end = one.size;
		KP_TRY(kp_skip_zeros(src, &end, why));
		c->ignored = src->size - end;
		c->src = c->loaded.source;
	}
	if (comment)
		return kp_text_bundle_read(&c->src, comment, &c->list, why);

	/* in an object an entry is a section whose name ends in its ID; no container is needed */
	if (objects && offload_is_object(src)) {
		c->object = true;
		if (!kp_elf_probe(head, NULL))
			return kp_fail(
				why, KPACK_ERROR_NOT_IMPLEMENTED,
				"entries can be read from little-endian ELF64 only");
		KP_TRY(kp_sections_read(src, &sections, why));
		for (size_t i = 0; i < sections.count; i++) {
			const struct kp_section *s = &sections.items[i];

			if (strncmp(s->name, OFFLOAD_SECTION, n) == 0 &&
			    s->type != SHT_NOBITS)
				KP_TRY(kp_containers_add_image(&c->list, &one,
							       kp_span_str(s->name + n),
							       s->offset, s->size, why));
		}
		return KPACK_SUCCESS;
	}

	/* bundles one after another, up to the first bytes that begin none */
	c->binary = true;
	while (pos < src->size) {
		KP_TRY(kp_source_head(src, pos, buf, sizeof(buf), &head, why));
		format = kp_format_probe_hip(head);
		/* a file that begins with code is a host's, without entries */
		if (!format || (pos == 0 && format->type)) {
			c->ignored = pos ? src->size - pos : 0;
			return KPACK_SUCCESS;
		}
		KP_TRY(kp_containers_add(src, pos, format, KP_NOWHERE, &c->list, why));
		pos += c->list.items[c->list.count - 1].size;
		KP_TRY(kp_skip_zeros(src, &pos, why));
	}
	return KPACK_SUCCESS;
}

void bundle_contents_fini(struct bundle_contents *c)
{
	kp_containers_fini(&c->list);
	kp_payload_fini(&c->loaded);
}

kpack_error_t bundle_contents_open(struct bundle_contents *c, size_t number,
				   struct kp_source *out, struct kpackx_error *why)
{
	const struct kp_image *image = &c->list.images[number];
	struct kp_source whole = c->src;

	/* the container that was decoded last is kept: its entries follow one another */
	if (c->binary) {
		if (c->loaded_number != image->container) {
			c->loaded_number = KP_NOWHERE;
			KP_TRY(load_container(c, &c->list.items[image->container], why));
			c->loaded_number = image->container;
		}
		whole = c->loaded.source;
	}
	/* an empty entry may state any offset */
	if (!kp_source_sub(&whole, image->size ? image->offset : 0, image->size, out))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entry %s: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end at %" PRIu64,
			       image->id, image->size, image->offset, whole.size);
	return KPACK_SUCCESS;
}

bool bundle_contents_is_mark(const struct bundle_contents *c, size_t number)
{
	const struct kp_image *image = &c->list.images[number];
	uint8_t byte;

	return c->object && image->size == 1 &&
	       !kp_source_read(&c->src, image->offset, &byte, 1, NULL) && byte == 0;
}
