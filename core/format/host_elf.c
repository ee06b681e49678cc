/* SPDX-License-Identifier: MIT */
/*
 * Host ELF: objects, programs and shared libraries with device code in their sections.
 * Its images are sections: HIP's and CUDA's fat binaries, offload binaries (recognised by
 * the section's type, with any name), and the sections that clang-offload-bundler adds to
 * objects, one for each entry.  Of a linked file without such sections its segments are
 * searched.
 */
#include <inttypes.h>
#include "core/base/bounds.h"
#include "format.h"
#include "loose_code.h"
#include "sections.h"

/* SHT_LLVM_OFFLOADING */
#define TYPE_OFFLOADING 0x6fff4c0b

static const char entry_prefix[] = "__CLANG_OFFLOAD_BUNDLE__";

/* Sections that hold containers one after another. */
static const struct {
	const char *name, *kind;
} streams[] = {
	{".hip_fatbin", "hip"},
	{".nv_fatbin", "cuda"},
	{"__nv_relfatbin", "cuda"},
};

static bool probe_host_elf(struct kp_span head)
{
	uint16_t type, machine;

	return kp_elf_any_probe(head, &type, &machine) && machine != EM_AMDGPU &&
	       machine != EM_CUDA;
}

/*
 * Return the offload kind of a section's containers, "" for any kind; NULL: the section
 * is not a stream of containers.
 */
static const char *stream_kind(const struct kp_section *s)
{
	for (size_t i = 0; i < KP_COUNT(streams); i++) {
		if (strcmp(s->name, streams[i].name) == 0)
			return streams[i].kind;
	}
	return s->type == TYPE_OFFLOADING ? "" : NULL;
}

static kpack_error_t add_stream(const struct kp_section *s, const char *kind,
				struct kp_container *c, struct kp_containers *list,
				struct kpackx_error *why)
{
	struct kp_image *image;

	KP_TRY(kp_containers_add_image(list, c, kp_span_str(s->name), s->offset, s->size,
				       why));
	image = &list->images[list->n_images - 1];
	image->stream = true;
	/* a section's name is not an entry ID, even if it looks like one */
	image->host = false;
	image->arch[0] = '\0';
	memcpy(image->kind, kind, strlen(kind) + 1);
	return KPACK_SUCCESS;
}

/* Append section S as an image, if it holds device code or a bundle's host entry. */
static kpack_error_t add_section(const struct kp_section *s, struct kp_container *c,
				 struct kp_containers *list, struct kpackx_error *why)
{
	const char *kind = stream_kind(s);
	bool entry = strncmp(s->name, entry_prefix, strlen(entry_prefix)) == 0;

	if ((!kind && !entry) || s->type == SHT_NULL || s->type == SHT_NOBITS ||
	    s->size == 0)
		return KPACK_SUCCESS;
	if (strnlen(s->name, KP_ENTRY_ID_MAX + 1) > KP_ENTRY_ID_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a section of device code has a name of more than %d "
			       "bytes",
			       KP_ENTRY_ID_MAX);
	if (kind)
		return add_stream(s, kind, c, list, why);
	return kp_containers_add_image(list, c,
				       kp_span_str(s->name + strlen(entry_prefix)),
				       s->offset, s->size, why);
}

/* Where the images of a file go. */
struct taker {
	struct kp_container *c;
	struct kp_containers *list;
};

static kpack_error_t take_section(void *arg, const struct kp_section *s,
				  struct kpackx_error *why)
{
	struct taker *t = arg;

	return add_section(s, t->c, t->list, why);
}

/* Another class or byte order, or a damaged section table. */
static kpack_error_t salvage_host_elf(const struct kp_source *src, uint64_t off,
				      struct kp_container *c, struct kp_containers *list,
				      struct kpackx_error *why)
{
	struct taker t = {c, list};
	struct kp_source rest;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	c->size = c->payload_size = rest.size;
	KP_TRY(kp_loose_sections(&rest, take_section, &t, why));
	return c->n_images ? KPACK_SUCCESS
			   : kp_loose_code_find(&rest, KP_LOOSE_UNREAD, c, list, why);
}

static kpack_error_t parse_host_elf(const struct kp_source *src, uint64_t off,
				    struct kp_container *c, struct kp_containers *list,
				    struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_sections sections;
	struct kp_source rest;
	struct kp_span head;
	uint8_t bytes[20];
	enum kp_loose_rest known = KP_LOOSE_NOTHING;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_source_head(&rest, 0, bytes, sizeof(bytes), &head, why));
	if (!kp_elf_probe(head, NULL))
		return salvage_host_elf(src, off, c, list, why);
	KP_TRY(kp_sections_read(&rest, &sections, why));
	c->size = c->payload_size = sections.end;
	for (size_t i = 0; i < sections.count && !err; i++)
		err = add_section(&sections.items[i], c, list, why);
	if (kp_sections_find(&sections, ".hipFatBinSegment") ||
	    kp_sections_find(&sections, ".nvFatBinSegment"))
		known = KP_LOOSE_ELSEWHERE;
	kp_sections_fini(&sections);
	return err || c->n_images ? err : kp_loose_code_find(&rest, known, c, list, why);
}

const struct kp_format kp_format_host_elf = {
	.name = "elf",
	.probe = probe_host_elf,
	.parse = parse_host_elf,
	.salvage = salvage_host_elf,
};
