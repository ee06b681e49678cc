/* SPDX-License-Identifier: MIT */
/*
 * Bare AMDGPU code object: an ELF64 whose machine is 224.  No field states its size, so
 * in a stream it ends where its headers end it.
 */
#include <inttypes.h>
#include <stdio.h>
#include "amdgpu_kernels.h"
#include "amdgpu_notes.h"

/* EI_OSABI.  Only with HSA the ABI version is the code object version, 0 being v2. */
enum { OSABI_HSA = 64, OSABI_PAL = 65, OSABI_MESA = 66 };
enum { ABI_V2 = 0, ABI_V3 = 1, ABI_V6 = 4 };

/* The lowest EF_AMDGPU_MACH of a processor with code objects. */
#define MACH_MIN 0x20

static bool probe_code_object(struct kp_span head)
{
	uint16_t machine;

	return kp_elf_probe(head, &machine) && machine == EM_AMDGPU;
}

/* ---- target ---- */

/*
 * Set OUT to the target in the header's flags.  The flags of v2, and of systems without
 * ABI versions, are those of v3, but older compilers of v2 put the processor only into
 * the notes.
 */
static bool target_of_flags(const uint8_t *ident, uint32_t flags, struct kp_target *out)
{
	uint8_t abi = ident[EI_ABIVERSION];

	if (ident[EI_OSABI] != OSABI_HSA || abi == ABI_V2) {
		if ((flags & 0xff) < MACH_MIN)
			return false;
		abi = ABI_V3;
	}
	if ((flags & 0xff) == 0) /* no processor */
		return false;
	return kp_target_from_elf_flags(abi, flags, out, NULL) == KPACK_SUCCESS;
}

/* Parse "amdgcn-amd-amdhsa--gfx90a:xnack+": an entry ID without the kind. */
static bool target_of_text(struct kp_span text, struct kp_target *out)
{
	struct kp_entry_id id;
	char buf[160];
	int n = snprintf(buf, sizeof(buf), "hip-%.*s",
			 text.size < 128 ? (int)text.size : 128, (const char *)text.data);

	return text.size &&
	       kp_entry_id_parse((struct kp_span){(uint8_t *)buf, (size_t)n}, &id) &&
	       kp_target_parse(id.target, out, NULL) == KPACK_SUCCESS;
}

/* In code object v2 some processors with xnack have a name of their own. */
static const struct {
	const char *name, *target;
} old_names[] = {
	{"gfx901", "gfx900:xnack+"},
	{"gfx903", "gfx902:xnack+"},
	{"gfx905", "gfx904:xnack+"},
	{"gfx907", "gfx906:xnack+"},
};

static bool target_of_isa(const uint32_t isa[3], struct kp_target *out)
{
	char name[40];
	const char *text = name;

	snprintf(name, sizeof(name), "gfx%" PRIu32 "%" PRIx32 "%" PRIx32, isa[0], isa[1],
		 isa[2]);
	for (size_t i = 0; i < KP_COUNT(old_names); i++)
		if (strcmp(old_names[i].name, name) == 0)
			text = old_names[i].target;
	return kp_target_parse(kp_span_str(text), out, NULL) == KPACK_SUCCESS;
}

/* Set OUT to the target in NOTES, whose metadata is METADATA. */
static bool target_of_notes(const struct kp_amdgpu_notes *notes,
			    const struct kp_amdgpu_metadata *metadata,
			    struct kp_target *out)
{
	return target_of_text(metadata->target, out) ||
	       (notes->has_isa && target_of_isa(notes->isa, out)) ||
	       target_of_text(kp_span_str(notes->isa_name), out);
}

/* ---- describing ---- */

/* A code object being described. */
struct subject {
	struct kp_sections sections;
	struct kp_amdgpu_notes notes;
	struct kp_amdgpu_metadata metadata;
};

/*
 * Open S and append the kernels in its notes to OUT; the caller closes S, on failure too.
 */
static kpack_error_t open_subject(const struct kp_source *src, struct subject *s,
				  struct kp_object *out, struct kpackx_error *why)
{
	*s = (struct subject){0};
	KP_TRY(kp_sections_read(src, &s->sections, why));
	KP_TRY(kp_amdgpu_notes_read(src, &s->sections, &s->notes, why));
	if (!s->notes.metadata)
		return KPACK_SUCCESS;
	return kp_amdgpu_metadata_read(
		(struct kp_span){s->notes.metadata, s->notes.metadata_size}, &s->metadata,
		out, why);
}

static void close_subject(struct subject *s)
{
	kp_amdgpu_notes_fini(&s->notes);
	kp_sections_fini(&s->sections);
}

static kpack_error_t add_disagreement(const struct kp_target *flags,
				      const struct kp_target *note, struct kp_object *out,
				      struct kpackx_error *why)
{
	char a[KP_TARGET_TEXT_MAX], b[KP_TARGET_TEXT_MAX];

	kp_target_format(flags, a);
	kp_target_format(note, b);
	return kp_pairs_print(&out->facts, why, "disagreement",
			      "the flags say %s, the note %s", a, b);
}

/*
 * Find the target: from the flags, as loaders do; if their processor is unknown, from the
 * notes.
 */
static kpack_error_t find_target(const struct subject *s, struct kp_object *out,
				 struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &s->sections.header;
	struct kp_target flags, note;
	bool by_flags = target_of_flags(h->e_ident, h->e_flags, &flags);
	bool by_note = target_of_notes(&s->notes, &s->metadata, &note);

	if (by_flags && (flags.known || !by_note))
		kp_target_format(&flags, out->arch);
	else if (by_note)
		kp_target_format(&note, out->arch);
	if (!by_flags || !by_note || !flags.known)
		return KPACK_SUCCESS;
	/* notes of v2 do not state sramecc */
	if (s->metadata.target.size ? kp_target_eq(&flags, &note)
				    : strcmp(flags.processor, note.processor) == 0)
		return KPACK_SUCCESS;
	return add_disagreement(&flags, &note, out, why);
}

static kpack_error_t add_header_facts(const Elf64_Ehdr *h, struct kp_pairs *facts,
				      struct kpackx_error *why)
{
	unsigned abi = h->e_ident[EI_ABIVERSION], os = h->e_ident[EI_OSABI];

	if (os == OSABI_HSA)
		KP_TRY(kp_pairs_print(facts, why, "code object", "%u", abi + 2));
	else if (os == OSABI_PAL || os == OSABI_MESA)
		KP_TRY(kp_pairs_print(facts, why, "system", "%s",
				      os == OSABI_PAL ? "PAL" : "Mesa 3D"));
	if (h->e_type == ET_REL)
		KP_TRY(kp_pairs_print(facts, why, "form", "relocatable"));
	if (os == OSABI_HSA && abi >= ABI_V6 && h->e_flags >> 24)
		KP_TRY(kp_pairs_print(facts, why, "generic version", "%u",
				      h->e_flags >> 24));
	return KPACK_SUCCESS;
}

static kpack_error_t add_note_facts(const struct subject *s, struct kp_pairs *facts,
				    struct kpackx_error *why)
{
	const struct kp_amdgpu_notes *n = &s->notes;

	if (s->metadata.target.size)
		KP_TRY(kp_pairs_add(facts, kp_span_str("target"), s->metadata.target,
				    why));
	else if (n->isa_name[0])
		KP_TRY(kp_pairs_print(facts, why, "target", "%s", n->isa_name));
	if (n->has_isa)
		KP_TRY(kp_pairs_print(
			facts, why, "ISA", "%s:%s:%" PRIu32 ":%" PRIu32 ":%" PRIu32,
			n->isa_vendor, n->isa_family, n->isa[0], n->isa[1], n->isa[2]));
	if (n->metadata)
		KP_TRY(kp_pairs_print(facts, why, "metadata", "%" PRIu64 ".%" PRIu64,
				      s->metadata.version[0], s->metadata.version[1]));
	return KPACK_SUCCESS;
}

static kpack_error_t describe_subject(const struct kp_source *src,
				      const struct subject *s, struct kp_object *out,
				      struct kpackx_error *why)
{
	KP_TRY(add_header_facts(&s->sections.header, &out->facts, why));
	KP_TRY(add_note_facts(s, &out->facts, why));
	KP_TRY(find_target(s, out, why));
	if (s->notes.metadata)
		return KPACK_SUCCESS;
	return kp_amdgpu_symbols_read(src, &s->sections, out, why);
}

static kpack_error_t describe_code_object(const struct kp_source *src,
					  struct kp_object *out, struct kpackx_error *why)
{
	struct subject s;
	kpack_error_t err = open_subject(src, &s, out, why);

	if (!err)
		err = describe_subject(src, &s, out, why);
	close_subject(&s);
	return err;
}

/* ---- parsing ---- */

/* Set ARCH from the header; if that names no known processor, from the notes. */
static kpack_error_t set_arch(const struct kp_source *src, char *arch,
			      struct kpackx_error *why)
{
	uint8_t header[sizeof(Elf64_Ehdr)];
	struct kp_object object = {0};
	struct kp_target target;

	KP_TRY(kp_source_read(src, 0, header, sizeof(header), why));
	if (target_of_flags(header, kp_le32(header + offsetof(Elf64_Ehdr, e_flags)),
			    &target)) {
		kp_target_format(&target, arch);
		if (target.known)
			return KPACK_SUCCESS;
	}
	if (describe_code_object(src, &object, NULL) == KPACK_SUCCESS)
		memcpy(arch, object.arch, KP_TARGET_TEXT_MAX);
	kp_object_fini(&object);
	return KPACK_SUCCESS;
}

static kpack_error_t parse_code_object(const struct kp_source *src, uint64_t off,
				       struct kp_container *c, struct kp_containers *list,
				       struct kpackx_error *why)
{
	struct kp_span none = {NULL, 0};
	struct kp_source rest, own;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_elf_extent(&rest, &c->size, why));
	c->payload_size = c->size;
	kp_source_sub(&rest, 0, c->size, &own);
	KP_TRY(kp_containers_add_image(list, c, none, 0, c->size, why));
	return set_arch(&own, list->images[list->n_images - 1].arch, why);
}

const struct kp_format kp_format_code_object = {
	.name = "code-object",
	.type = "hsaco",
	.probe = probe_code_object,
	.parse = parse_code_object,
	.describe = describe_code_object,
};
