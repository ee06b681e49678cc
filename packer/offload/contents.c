/* SPDX-License-Identifier: MIT */
#include "contents.h"
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "core/format/bundle.h"
#include "core/format/sections.h"
#include "core/format/text_bundle.h"
#include "core/base/bounds.h"

/* The section of an entry is named this, followed by the entry's ID. */
#define SECTION_PREFIX "__CLANG_OFFLOAD_BUNDLE__"

bool bundler_type_known(const char *type)
{
	static const char *const binary[] = {"bc", "gch", "ast", "o", "a"};

	for (size_t i = 0; i < KP_COUNT(binary); i++)
		if (strcmp(binary[i], type) == 0)
			return true;
	return kp_text_bundle_comment(type) != NULL;
}

static kpack_error_t read_head(const struct kp_source *src, uint64_t off, uint8_t *buf,
			       size_t room, struct kp_span *head,
			       struct kpackx_error *why)
{
	uint64_t left = src->size - off;

	*head = (struct kp_span){buf, left < room ? (size_t)left : room};
	return kp_source_read(src, off, buf, head->size, why);
}

bool bundler_is_object(const struct kp_source *src)
{
	uint8_t buf[sizeof(Elf64_Ehdr)];
	struct kp_span head;

	return !read_head(src, 0, buf, sizeof(buf), &head, NULL) &&
	       head.size >= sizeof(Elf32_Ehdr) && kp_span_starts(head, ELFMAG, SELFMAG);
}

/* ---- compressed bundles ---- */

static bool is_ccob(struct kp_span head)
{
	return kp_span_starts(head, "CCOB", 4);
}

/* Check the fields without which a CCOB cannot be decoded at all. */
static kpack_error_t check_ccob(struct kp_span head, struct kpackx_error *why)
{
	unsigned version = head.size < 8 ? 0 : kp_le16(head.data + 4);
	const char *fault = NULL;

	if (head.size < 8 || head.size < kp_ccob_header_size(version))
		fault = "Compressed bundle header size too small";
	else if (!kp_ccob_header_size(version))
		fault = "Unknown compressed bundle version";
	else if (kp_le16(head.data + 6) > KP_CCOB_ZSTD)
		fault = "Unknown compressing method";
	return fault ? kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s", fault)
		     : KPACK_SUCCESS;
}

static const char decode_fault[] = "Could not decompress embedded file contents";

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Decode C; with -verbose print its figures. */
static kpack_error_t load_ccob(const struct bundler *b, const struct kp_source *src,
			       const struct kp_container *c, struct kp_payload *out,
			       struct kpackx_error *why)
{
	struct kp_ccob_form form;
	double begin = seconds_now();
	kpack_error_t err = kp_container_load(src, c, out, why);

	if (err)
		return kp_fail_prefix(why, err, "%s", decode_fault);
	if (kp_ccob_form_read(src, c, &form, NULL) == KPACK_SUCCESS)
		bundler_print_decompressed(
			b, &form, c->size,
			(struct kp_span){out->source.mem, (size_t)out->source.size},
			seconds_now() - begin);
	return KPACK_SUCCESS;
}

/* ---- text ---- */

/* Append the decoded bytes of C to TEXT. */
static kpack_error_t append_text(const struct bundler *b, const struct kp_source *src,
				 const struct kp_container *c, struct kp_payload *text,
				 struct kpackx_error *why)
{
	uint64_t before = text->source.size, size = before + c->payload_size;
	struct kp_payload more;
	void *grown;

	if (size > KP_CCOB_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %" PRIu64 " bytes of text", KP_CCOB_MAX);
	KP_TRY(load_ccob(b, src, c, &more, why));
	grown = realloc(text->heap, (size_t)size);
	if (grown) {
		memcpy((uint8_t *)grown + before, more.heap, (size_t)c->payload_size);
		text->heap = grown;
		text->source = kp_source_memory(grown, (size_t)size);
	}
	kp_payload_fini(&more);
	return grown ? KPACK_SUCCESS : kp_fail_memory(why, size, "a text bundle");
}

/* Decode SRC: one or more CCOBs, with zeros between and after them. */
static kpack_error_t decode_text(const struct bundler *b, const struct kp_source *src,
				 struct kp_payload *text, struct kpackx_error *why)
{
	uint8_t buf[KP_CCOB_HEADER_MAX];
	struct kp_container c;
	struct kp_span head;
	uint64_t pos = 0;

	*text = (struct kp_payload){.source = kp_source_memory(NULL, 0)};
	while (pos < src->size) {
		KP_TRY(read_head(src, pos, buf, sizeof(buf), &head, why));
		if (!is_ccob(head))
			break;
		KP_TRY(check_ccob(head, why));
		if (kp_ccob_measure(src, pos, &c, why))
			return kp_fail_prefix(why, KPACK_ERROR_INVALID_FORMAT, "%s",
					      decode_fault);
		KP_TRY(append_text(b, src, &c, text, why));
		pos += c.size;
		KP_TRY(kp_skip_zeros(src, &pos, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_text(const struct bundler *b, bool compressed,
			       struct bundler_contents *p, struct kpackx_error *why)
{
	if (compressed) {
		KP_TRY(decode_text(b, &p->src, &p->loaded, why));
		p->src = p->loaded.source;
	}
	return kp_text_bundle_read(&p->src, kp_text_bundle_comment(b->type), &p->list,
				   why);
}

/* ---- objects ---- */

static kpack_error_t read_object(struct bundler_contents *p, struct kpackx_error *why)
{
	size_t n = strlen(SECTION_PREFIX);
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_container c = {0};
	uint8_t buf[sizeof(Elf64_Ehdr)];
	struct kp_sections sections;
	struct kp_span head;

	p->object = true;
	KP_TRY(read_head(&p->src, 0, buf, sizeof(buf), &head, why));
	if (!kp_elf_probe(head, NULL))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "entries can be read from little-endian ELF64 only");
	KP_TRY(kp_sections_read(&p->src, &sections, why));
	for (size_t i = 0; i < sections.count && !err; i++) {
		const struct kp_section *s = &sections.items[i];

		if (strncmp(s->name, SECTION_PREFIX, n) == 0 && s->type != SHT_NOBITS)
			err = kp_containers_add_image(&p->list, &c,
						      kp_span_str(s->name + n), s->offset,
						      s->size, why);
	}
	kp_sections_fini(&sections);
	return err;
}

bool bundler_contents_is_mark(struct bundler_contents *p, size_t number)
{
	const struct kp_image *image = &p->list.images[number];
	uint8_t byte;

	return p->object && image->size == 1 &&
	       !kp_source_read(&p->src, image->offset, &byte, 1, NULL) && byte == 0;
}

/* ---- bundles ---- */

/*
 * The format at HEAD; NULL: nothing that belongs there.  Code objects may stand between
 * bundles in data that was cut out of a library, but not FIRST.
 */
static const struct kp_format *format_of(struct kp_span head, bool first)
{
	if (kp_bundle_probe(head))
		return &kp_format_bundle;
	if (is_ccob(head))
		return &kp_format_ccob;
	return first ? NULL : kp_format_probe_hip(head);
}

static kpack_error_t print_ccob(const struct bundler *b, struct bundler_contents *p,
				const struct kp_container *c, struct kpackx_error *why)
{
	struct kp_payload payload;

	if (!b->verbose || c->format != &kp_format_ccob)
		return KPACK_SUCCESS;
	KP_TRY(load_ccob(b, &p->src, c, &payload, why));
	kp_payload_fini(&payload);
	return KPACK_SUCCESS;
}

static kpack_error_t add_bundle(const struct bundler *b, struct bundler_contents *p,
				uint64_t pos, struct kp_span head,
				const struct kp_format *format, struct kpackx_error *why)
{
	kpack_error_t err;

	if (format == &kp_format_ccob)
		KP_TRY(check_ccob(head, why));
	err = kp_containers_add(&p->src, pos, format, KP_NOWHERE, &p->list, why);
	if (err)
		return format == &kp_format_ccob
			       ? kp_fail_prefix(why, err, "%s", decode_fault)
			       : err;
	return print_ccob(b, p, &p->list.items[p->list.count - 1], why);
}

static kpack_error_t read_binary(const struct bundler *b, struct bundler_contents *p,
				 struct kpackx_error *why)
{
	const struct kp_format *format;
	uint8_t buf[64];
	struct kp_span head;
	uint64_t pos = 0;

	p->binary = true;
	while (pos < p->src.size) {
		KP_TRY(read_head(&p->src, pos, buf, sizeof(buf), &head, why));
		format = format_of(head, pos == 0);
		if (!format) {
			p->ignored = pos ? p->src.size - pos : 0;
			return KPACK_SUCCESS;
		}
		KP_TRY(add_bundle(b, p, pos, head, format, why));
		pos += p->list.items[p->list.count - 1].size;
		KP_TRY(kp_skip_zeros(&p->src, &pos, why));
	}
	return KPACK_SUCCESS;
}

/* ---- all forms ---- */

static kpack_error_t read_parts(const struct bundler *b, struct bundler_contents *p,
				struct kpackx_error *why)
{
	bool objects = strcmp(b->type, "o") == 0 || strcmp(b->type, "a") == 0;
	uint8_t buf[8];
	struct kp_span head;

	KP_TRY(read_head(&p->src, 0, buf, sizeof(buf), &head, why));
	if (b->verbose && !is_ccob(head))
		fputs("Uncompressed bundle.\n", stderr);
	if (kp_text_bundle_comment(b->type))
		return read_text(b, is_ccob(head), p, why);
	return objects && bundler_is_object(&p->src) ? read_object(p, why)
						     : read_binary(b, p, why);
}

kpack_error_t bundler_contents_read(const struct bundler *b, const struct kp_source *src,
				    struct bundler_contents *out,
				    struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct bundler_contents){.src = *src, .loaded_number = KP_NOWHERE};
	out->loaded.source = kp_source_memory(NULL, 0);
	err = read_parts(b, out, why);
	if (err)
		bundler_contents_free(out);
	return err;
}

void bundler_contents_free(struct bundler_contents *p)
{
	kp_containers_fini(&p->list);
	kp_payload_fini(&p->loaded);
}

/*
 * Set OUT to the payload of container NUMBER; P keeps the payload that was decoded last.
 */
static kpack_error_t open_container(struct bundler_contents *p, size_t number,
				    struct kp_source *out, struct kpackx_error *why)
{
	const struct kp_container *c = &p->list.items[number];
	struct kp_payload payload;
	kpack_error_t err;

	if (p->loaded_number != number) {
		err = kp_container_load(&p->src, c, &payload, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", decode_fault);
		kp_payload_fini(&p->loaded);
		p->loaded = payload;
		p->loaded_number = number;
	}
	*out = p->loaded.source;
	return KPACK_SUCCESS;
}

kpack_error_t bundler_contents_open(struct bundler_contents *p, size_t number,
				    struct kp_source *out, struct kpackx_error *why)
{
	const struct kp_image *image = &p->list.images[number];
	struct kp_source whole = p->src;

	if (p->binary)
		KP_TRY(open_container(p, image->container, &whole, why));
	/* an empty entry may state any offset */
	if (!kp_source_sub(&whole, image->size ? image->offset : 0, image->size, out))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entry %s: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end at %" PRIu64,
			       image->id, image->size, image->offset, whole.size);
	return KPACK_SUCCESS;
}
