/* SPDX-License-Identifier: MIT */
/*
 * Bare AMDGPU code object: an ELF64 whose machine is 224.  No field states its size, so
 * in a stream it ends where its headers end it.  Its target is in the header's flags, as
 * loaders read it; if their processor is unknown, in the notes.
 *
 * A note is u32 owner size, contents size, type; owner, contents, each padded to 4 bytes.
 * Kernels are in the metadata, which is MessagePack in a note, or else in the symbols and
 * the descriptors that they name.
 * Source: LLVM's AMDGPU usage document (header, note records, metadata, kernel descriptor).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "format.h"
#include "sections.h"
#include "strip.h"

/* EI_OSABI.  Only with HSA the ABI version is the code object version, 0 being v2. */
enum { OSABI_HSA = 64, OSABI_PAL = 65, OSABI_MESA = 66 };
enum { ABI_V2 = 0, ABI_V3 = 1, ABI_V6 = 4 };

/* The lowest EF_AMDGPU_MACH of a processor with code objects. */
#define MACH_MIN 0x20

#define NOTE_HEADER 12

/* Types of notes with the owner "AMD" (code object v2) or "AMDGPU". */
enum { ISA_VERSION = 3, ISA_NAME = 11, METADATA = 32 };

static bool probe_code_object(struct kp_span head)
{
	uint16_t machine;

	return kp_elf_probe(head, &machine) && machine == EM_AMDGPU;
}

struct notes {
	/* NT_AMDGPU_METADATA: MessagePack, owned; NULL: none */
	uint8_t *metadata;
	size_t metadata_size;

	uint8_t build_id[32]; /* NT_GNU_BUILD_ID */
	size_t build_id_size; /* 0: none, or longer */

	/* only in code object v2; "" and false for later versions */
	bool has_isa;
	uint32_t isa[3];     /* major, minor, stepping */
	char isa_vendor[16]; /* "AMD" */
	char isa_family[16]; /* "AMDGPU" */
	char isa_name[128];  /* "amdgcn-amd-amdhsa--gfx803" */
};

/* The metadata's contents besides the kernels; spans borrow from the metadata. */
struct metadata {
	struct kp_span target; /* "amdgcn-amd-amdhsa--gfx90a:xnack+"; empty: not stated */
	uint64_t version[2];   /* of the metadata, e.g. 1.2 */
};

/* ---- notes ---- */

/*
 * Read the notes in [OFF, OFF + LEN) of SRC, and keep what they say: of metadata and build IDs the
 * first.  Owners are "AMDGPU" since code object v3, "AMD" before, and "GNU" for the build ID.
 * *WALKED, the bytes of notes read so far, bounds the time: many headers may state the same bytes.
 */
static kpack_error_t walk_notes(const struct kp_source *src, uint64_t off, uint64_t len,
				uint64_t *walked, struct notes *out,
				struct kpackx_error *why)
{
	struct kp_source contents, notes;
	struct kp_window area;
	const uint8_t *p;

	if (!kp_source_sub(src, off, len, &notes) || len > src->size - *walked)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "notes of %" PRIu64 " bytes and more in a code object of "
			       "%" PRIu64,
			       *walked + len, src->size);
	*walked += len;
	kp_window_init(&area, &notes);
	for (uint64_t pos = 0; pos < len;) {
		uint64_t owner_size, size, at = pos + NOTE_HEADER;
		uint8_t bytes[128] = {0};
		int vendor, family;
		char owner[8] = "";
		uint32_t type;

		KP_TRY(kp_window_get(&area, pos, NOTE_HEADER, &p, why));
		owner_size = kp_le32(p);
		size = kp_le32(p + 4);
		type = kp_le32(p + 8);
		if (!kp_source_sub(&notes, at + ((owner_size + 3) & ~UINT64_C(3)), size,
				   &contents))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "note at offset %" PRIu64 ": %" PRIu64
				       " and %" PRIu64 " bytes pass the end at %" PRIu64,
				       pos, owner_size, size, len);
		if (owner_size && owner_size <= sizeof(owner)) {
			KP_TRY(kp_window_get(&area, at, (size_t)owner_size, &p, why));
			memcpy(owner, p, (size_t)owner_size - 1);
		}
		pos = at + ((owner_size + 3) & ~UINT64_C(3)) +
		      ((size + 3) & ~UINT64_C(3));
		if (strcmp(owner, "AMDGPU") == 0 && type == METADATA && !out->metadata) {
			out->metadata_size = (size_t)size;
			KP_TRY(kp_source_load(&contents, KP_METADATA_MAX, "metadata",
					      &out->metadata, why));
		} else if (strcmp(owner, "GNU") == 0 && type == NT_GNU_BUILD_ID &&
			   !out->build_id_size && size <= sizeof(out->build_id)) {
			out->build_id_size = (size_t)size;
			KP_TRY(kp_source_read(&contents, 0, out->build_id, (size_t)size,
					      why));
		}
		if (strcmp(owner, "AMD") != 0 ||
		    (type != ISA_VERSION && type != ISA_NAME))
			continue;
		KP_TRY(kp_source_read(&contents, 0, bytes,
				      size < sizeof(bytes) ? (size_t)size : sizeof(bytes),
				      why));
		if (type == ISA_NAME) {
			memcpy(out->isa_name, bytes, sizeof(out->isa_name) - 1);
			continue;
		}
		/* u16 vendor size, u16 family size, u32 major, minor, stepping, vendor,
		 * family */
		if (size < 16)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "ISA note of %" PRIu64 " bytes", size);
		out->has_isa = true;
		for (size_t i = 0; i < 3; i++)
			out->isa[i] = kp_le32(bytes + 4 + 4 * i);
		vendor = kp_le16(bytes) < 32 ? kp_le16(bytes) : 32;
		family = kp_le16(bytes + 2) < 32 ? kp_le16(bytes + 2) : 32;
		snprintf(out->isa_vendor, sizeof(out->isa_vendor), "%.*s",
			 vendor < 15 ? vendor : 15, (const char *)bytes + 16);
		snprintf(out->isa_family, sizeof(out->isa_family), "%.*s",
			 family < 15 ? family : 15, (const char *)bytes + 16 + vendor);
	}
	return KPACK_SUCCESS;
}

/*
 * Read the first note of each type in the code object SRC: from its sections or, if it
 * has no sections, from its segments.
 */
static kpack_error_t read_notes(const struct kp_source *src,
				const struct kp_sections *sections, struct notes *out,
				struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &sections->header;
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_window window;
	uint64_t walked = 0;
	const uint8_t *p;

	*out = (struct notes){0};
	for (size_t i = 0; i < sections->count && !err; i++)
		if (sections->items[i].type == SHT_NOTE)
			err = walk_notes(src, sections->items[i].offset,
					 sections->items[i].size, &walked, out, why);
	kp_window_init(&window, src);
	for (unsigned i = 0; !sections->count && i < h->e_phnum && !err; i++) {
		err = kp_window_get(&window, h->e_phoff + i * sizeof(Elf64_Phdr),
				    sizeof(Elf64_Phdr), &p, why);
		if (!err && kp_le32(p + offsetof(Elf64_Phdr, p_type)) == PT_NOTE)
			err = walk_notes(src, kp_le64(p + offsetof(Elf64_Phdr, p_offset)),
					 kp_le64(p + offsetof(Elf64_Phdr, p_filesz)),
					 &walked, out, why);
	}
	return err;
}

static void notes_fini(struct notes *notes)
{
	free(notes->metadata);
}

kpack_error_t kp_strip_build_id(const struct kp_source *src, char out[KP_BUILD_ID_TEXT],
				struct kpackx_error *why)
{
	KP_AUTO(kp_sections) sections = {.count = 0};
	KP_AUTO(notes) notes = {0};

	*out = '\0';
	KP_TRY(kp_sections_read(src, &sections, why));
	KP_TRY(read_notes(src, &sections, &notes, why));
	for (size_t i = 0; i < notes.build_id_size && notes.build_id_size > 1; i++)
		snprintf(out + 2 * i, 3, "%02x", notes.build_id[i]);
	return KPACK_SUCCESS;
}

/* ---- metadata ---- */

static const struct {
	const char *key;
	size_t offset;
} numbers[] = {
	{".vgpr_count", offsetof(struct kp_kernel, vgprs)},
	{".agpr_count", offsetof(struct kp_kernel, agprs)},
	{".sgpr_count", offsetof(struct kp_kernel, sgprs)},
	{".group_segment_fixed_size", offsetof(struct kp_kernel, lds)},
	{".private_segment_fixed_size", offsetof(struct kp_kernel, scratch)},
	{".kernarg_segment_size", offsetof(struct kp_kernel, kernarg)},
	{".wavefront_size", offsetof(struct kp_kernel, wavefront)},
	{".max_flat_workgroup_size", offsetof(struct kp_kernel, threads)},
};

/*
 * Read a kernel's map, and append the kernel.  Its name may come after its numbers.
 * A fault of the cursor is the caller's to report.
 */
static kpack_error_t read_kernel(struct kp_mp *c, struct kp_object *out,
				 struct kpackx_error *why)
{
	struct kp_span key, name = {0}, symbol = {0};
	int64_t values[KP_COUNT(numbers)];
	struct kp_kernel *kernel;
	uint32_t n;

	for (size_t i = 0; i < KP_COUNT(numbers); i++)
		values[i] = KP_NOT_STATED;
	if (!kp_mp_map(c, &n))
		return KPACK_SUCCESS;
	while (n-- && kp_mp_str(c, &key)) {
		size_t i = 0;
		uint64_t value;

		while (i < KP_COUNT(numbers) && !kp_span_is(key, numbers[i].key))
			i++;
		if (i < KP_COUNT(numbers)) {
			if (kp_mp_uint(c, &value) && value > INT64_MAX)
				kp_mp_fault(c, "a number above 2^63");
			values[i] = c->fault ? KP_NOT_STATED : (int64_t)value;
		} else if (kp_span_is(key, ".name")) {
			kp_mp_str(c, &name);
		} else if (kp_span_is(key, ".symbol")) {
			kp_mp_str(c, &symbol);
		} else {
			kp_mp_skip(c);
		}
		if (c->fault)
			return KPACK_SUCCESS;
	}
	if (!c->fault && !name.size)
		kp_mp_fault(c, "a kernel without a name");
	if (c->fault)
		return KPACK_SUCCESS;
	KP_TRY(kp_object_add_kernel(out, name, &kernel, why));
	for (size_t i = 0; i < KP_COUNT(numbers); i++)
		memcpy((char *)kernel + numbers[i].offset, &values[i], sizeof(values[i]));
	if (symbol.data) {
		kernel->symbol = strndup((const char *)symbol.data, symbol.size);
		if (!kernel->symbol)
			return kp_fail_memory(why, symbol.size, "a kernel's symbol");
	}
	return KPACK_SUCCESS;
}

/* Read METADATA, and append its kernels to OUT. */
static kpack_error_t read_metadata(struct kp_span metadata, struct metadata *facts,
				   struct kp_object *out, struct kpackx_error *why)
{
	struct kp_mp c = kp_mp_over(metadata);
	uint32_t pairs, count;
	struct kp_span key;
	uint64_t number;

	if (!kp_mp_map(&c, &pairs))
		pairs = 0;
	while (pairs-- && kp_mp_str(&c, &key)) {
		if (kp_span_is(key, "amdhsa.kernels")) {
			if (!kp_mp_array(&c, &count))
				break;
			while (count-- && !c.fault)
				KP_TRY(read_kernel(&c, out, why));
		} else if (kp_span_is(key, "amdhsa.version")) {
			if (!kp_mp_array(&c, &count))
				break;
			for (uint32_t i = 0; i < count && kp_mp_uint(&c, &number); i++)
				if (i < KP_COUNT(facts->version))
					facts->version[i] = number;
		} else if (kp_span_is(key, "amdhsa.target")) {
			kp_mp_str(&c, &facts->target);
		} else {
			kp_mp_skip(&c);
		}
	}
	if (c.fault)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "metadata of kernels: offset %zu: %s", kp_mp_offset(&c),
			       c.fault);
	return KPACK_SUCCESS;
}

/* ---- symbols ---- */

/* Type of a kernel's symbol in code object v2; its value is the descriptor's address. */
#define STT_AMDGPU_HSA_KERNEL 10

/*
 * Bytes of a descriptor, by whether it is that of v2.  Of its fields are read:
 *
 *	v3   0 u32 local memory    4 u32 private memory    8 u32 arguments
 *	    56 u16 properties, of which bit 10 says that a wavefront has 32 threads
 *	v2  60 u32 private memory  64 u32 local memory    72 u64 arguments
 *	    84 u16 scalar, 86 u16 vector registers       103 u8 wavefront, as an exponent
 */
static const size_t descriptor_size[] = {64, 104};

struct symbols {
	const struct kp_source *src;
	const struct kp_sections *sections;
	struct kp_object *out;
	uint64_t copied; /* bytes of names, so far */
	/* Sections that usually hold the descriptors of v3 and of v2; NULL: none. */
	const struct kp_section *usual[2];
};

/*
 * Find the offset in SRC of LEN bytes at address VALUE in section IN; false: not there.
 */
static bool place_in(const struct symbols *s, const struct kp_section *in, uint64_t value,
		     size_t len, uint64_t *offset)
{
	uint64_t base;

	if (!in || in->type == SHT_NOBITS || in->type == SHT_NULL)
		return false;
	base = s->sections->header.e_type == ET_REL ? 0 : in->addr;
	if (value < base || !kp_range_ok(in->size, value - base, len))
		return false;
	*offset = in->offset + (value - base);
	return true;
}

/*
 * Append the kernel of SYMBOL, if it is one: of type OBJECT, with the size of a
 * descriptor, and a name that ends in ".kd"; or of the type of v2.  A kernel whose descriptor is
 * not in the code object gets its name only.
 */
static kpack_error_t visit_symbol(void *arg, const uint8_t *symbol, const char *text,
				  uint64_t names_size, struct kpackx_error *why)
{
	struct symbols *s = arg;
	unsigned type = ELF64_ST_TYPE(symbol[offsetof(Elf64_Sym, st_info)]);
	uint16_t index = kp_le16(symbol + offsetof(Elf64_Sym, st_shndx));
	uint64_t value = kp_le64(symbol + offsetof(Elf64_Sym, st_value)), offset;
	bool v2 = type == STT_AMDGPU_HSA_KERNEL;
	size_t size = descriptor_size[v2];
	const struct kp_section *in;
	struct kp_kernel *kernel;
	uint8_t descriptor[104];
	struct kp_span name;

	if (index == SHN_UNDEF || !text)
		return KPACK_SUCCESS;
	if (!v2 && (type != STT_OBJECT ||
		    kp_le64(symbol + offsetof(Elf64_Sym, st_size)) != size))
		return KPACK_SUCCESS;
	name = kp_span_str(text);
	if (!v2 && (name.size <= 3 || !kp_span_ends(name, ".kd")))
		return KPACK_SUCCESS;
	s->copied += name.size;
	if (s->copied > 4 * names_size)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"names of kernels have more bytes than all names, %" PRIu64,
			names_size);
	KP_TRY(kp_object_add_kernel(s->out, kp_span_head(name, name.size - (v2 ? 0 : 3)),
				    &kernel, why));
	if (!v2) {
		kernel->symbol = strdup(text);
		if (!kernel->symbol)
			return kp_fail_memory(why, name.size, "a kernel's symbol");
	}
	/*
	 * The descriptor is in the symbol's section, or in the usual one: tools that remove
	 * sections do not renumber the sections of dynamic symbols.
	 */
	in = index < s->sections->count ? &s->sections->items[index] : NULL;
	if (!place_in(s, in, value, size, &offset) &&
	    (s->sections->header.e_type == ET_REL ||
	     !place_in(s, s->usual[v2], value, size, &offset)))
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(s->src, offset, descriptor, size, why));
	kernel->lds = kp_le32(descriptor + (v2 ? 64 : 0));
	kernel->scratch = kp_le32(descriptor + (v2 ? 60 : 4));
	kernel->kernarg = kp_le32(descriptor + (v2 ? 72 : 8));
	if (v2) {
		kernel->sgprs = kp_le16(descriptor + 84);
		kernel->vgprs = kp_le16(descriptor + 86);
		/* the exponent of a power of two */
		kernel->wavefront =
			descriptor[103] < 16 ? 1 << descriptor[103] : KP_NOT_STATED;
	} else {
		/* ENABLE_WAVEFRONT_SIZE32, never set before gfx10 */
		kernel->wavefront = kp_le16(descriptor + 56) & 1 << 10 ? 32 : 64;
	}
	return KPACK_SUCCESS;
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

/* ---- the format ---- */

/*
 * Metadata has all about kernels; only objects without it, of other compilers or stripped
 * ones, are described by their symbols.
 */
static kpack_error_t describe_code_object(const struct kp_source *src,
					  struct kp_object *out, struct kpackx_error *why)
{
	struct kp_pairs *facts = &out->facts;
	struct metadata metadata = {0};
	KP_AUTO(kp_sections) sections = {.count = 0};
	KP_AUTO(notes) notes = {0};
	const Elf64_Ehdr *h = &sections.header;
	char isa[48] = "", a[KP_TARGET_TEXT_MAX], b[KP_TARGET_TEXT_MAX];
	struct kp_target flags, note;
	bool by_flags, by_note;
	const struct kp_section *table;
	unsigned abi, os;

	KP_TRY(kp_sections_read(src, &sections, why));
	KP_TRY(read_notes(src, &sections, &notes, why));
	if (notes.metadata)
		KP_TRY(read_metadata(
			(struct kp_span){notes.metadata, notes.metadata_size}, &metadata,
			out, why));

	abi = h->e_ident[EI_ABIVERSION];
	os = h->e_ident[EI_OSABI];
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
	if (metadata.target.size)
		KP_TRY(kp_pairs_add(facts, kp_span_str("target"), metadata.target, why));
	else if (notes.isa_name[0])
		KP_TRY(kp_pairs_print(facts, why, "target", "%s", notes.isa_name));
	if (notes.has_isa)
		KP_TRY(kp_pairs_print(facts, why, "ISA",
				      "%s:%s:%" PRIu32 ":%" PRIu32 ":%" PRIu32,
				      notes.isa_vendor, notes.isa_family, notes.isa[0],
				      notes.isa[1], notes.isa[2]));
	if (notes.metadata)
		KP_TRY(kp_pairs_print(facts, why, "metadata", "%" PRIu64 ".%" PRIu64,
				      metadata.version[0], metadata.version[1]));

	/* the target, and whether flags and notes disagree about it */
	if (notes.has_isa)
		snprintf(isa, sizeof(isa), "gfx%" PRIu32 "%" PRIx32 "%" PRIx32,
			 notes.isa[0], notes.isa[1], notes.isa[2]);
	/* in code object v2 these processors, with xnack, have a name of their own */
	if (kp_span_is_one_of(kp_span_str(isa), "gfx901 gfx903 gfx905 gfx907")) {
		isa[5]--;
		strcat(isa, ":xnack+");
	}
	by_flags = target_of_flags(h->e_ident, h->e_flags, &flags);
	by_note = target_of_text(metadata.target, &note) ||
		  (*isa && !kp_target_parse(kp_span_str(isa), &note, NULL)) ||
		  target_of_text(kp_span_str(notes.isa_name), &note);
	if (by_flags && (flags.known || !by_note))
		kp_target_format(&flags, out->arch);
	else if (by_note)
		kp_target_format(&note, out->arch);
	/* notes of v2 do not state sramecc */
	if (by_flags && by_note && flags.known &&
	    (metadata.target.size ? !kp_target_eq(&flags, &note)
				  : strcmp(flags.processor, note.processor) != 0)) {
		kp_target_format(&flags, a);
		kp_target_format(&note, b);
		KP_TRY(kp_pairs_print(facts, why, "disagreement",
				      "the flags say %s, the note %s", a, b));
	}

	/* the symbol table that loaders use, or if there is none, that of linkers */
	table = kp_sections_first(&sections, SHT_DYNSYM);
	if (!table)
		table = kp_sections_first(&sections, SHT_SYMTAB);
	if (!notes.metadata && table) {
		struct symbols s = {.src = src,
				    .sections = &sections,
				    .out = out,
				    .usual = {kp_sections_find(&sections, ".rodata"),
					      kp_sections_find(&sections, ".text")}};

		KP_TRY(kp_symbols_each(src, &sections, table, visit_symbol, &s, why));
	}
	return KPACK_SUCCESS;
}

/* The arch is that of the header; if that names no known processor, that of the notes. */
static kpack_error_t parse_code_object(const struct kp_source *src,
				       struct kp_container *c, struct kp_containers *list,
				       struct kpackx_error *why)
{
	uint8_t header[sizeof(Elf64_Ehdr)];
	struct kp_object object = {0};
	struct kp_target target;
	struct kp_image *image;
	struct kp_source own;
	uint64_t size;

	KP_TRY(kp_elf_extent(src, &size, why));
	KP_TRY(kp_containers_add_object(list, c, size, &image, why));
	KP_TRY(kp_source_read(src, 0, header, sizeof(header), why));
	if (target_of_flags(header, kp_le32(header + offsetof(Elf64_Ehdr, e_flags)),
			    &target)) {
		kp_target_format(&target, image->arch);
		if (target.known)
			return KPACK_SUCCESS;
	}
	kp_source_sub(src, 0, size, &own);
	if (describe_code_object(&own, &object, NULL) == KPACK_SUCCESS)
		memcpy(image->arch, object.arch, KP_TARGET_TEXT_MAX);
	kp_object_fini(&object);
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_code_object = {
	.name = "code-object",
	.type = "hsaco",
	.probe = probe_code_object,
	.parse = parse_code_object,
	.describe = describe_code_object,
};
