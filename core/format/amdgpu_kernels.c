/* SPDX-License-Identifier: MIT */
/*
 * Kernels of AMDGPU code objects: from the metadata in the notes, or else from the symbols
 * and the descriptors that they name.
 * Source: LLVM's AMDGPU usage document (code object metadata, kernel descriptor).
 */
#include <inttypes.h>
#include "code_object.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"

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

kpack_error_t kp_amdgpu_metadata_read(struct kp_span metadata,
				      struct kp_amdgpu_metadata *facts,
				      struct kp_object *out, struct kpackx_error *why)
{
	struct kp_mp c = kp_mp_over(metadata);
	uint32_t pairs, count;
	struct kp_span key;
	uint64_t number;

	*facts = (struct kp_amdgpu_metadata){0};
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

/* Bytes of a descriptor, by whether it is that of v2. */
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

/* Read the numbers of kernel K from its descriptor: of v3 and later, or of V2. */
static void take_descriptor(const uint8_t *d, bool v2, struct kp_kernel *k)
{
	k->lds = kp_le32(d + (v2 ? 64 : 0));
	k->scratch = kp_le32(d + (v2 ? 60 : 4));
	k->kernarg = kp_le32(d + (v2 ? 72 : 8));
	if (v2) {
		k->sgprs = kp_le16(d + 84);
		k->vgprs = kp_le16(d + 86);
		/* the exponent of a power of two */
		k->wavefront = d[103] < 16 ? 1 << d[103] : KP_NOT_STATED;
	} else {
		/* ENABLE_WAVEFRONT_SIZE32, never set before gfx10 */
		k->wavefront = kp_le16(d + 56) & 1 << 10 ? 32 : 64;
	}
}

/*
 * Append the kernel of SYMBOL, if it is one: of type OBJECT, with the size of a
 * descriptor, and a name that ends in ".kd"; or of the type of v2.
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
	take_descriptor(descriptor, v2, kernel);
	return KPACK_SUCCESS;
}

kpack_error_t kp_amdgpu_symbols_read(const struct kp_source *src,
				     const struct kp_sections *sections,
				     struct kp_object *out, struct kpackx_error *why)
{
	struct symbols s = {.src = src,
			    .sections = sections,
			    .out = out,
			    .usual = {kp_sections_find(sections, ".rodata"),
				      kp_sections_find(sections, ".text")}};
	/* the symbol table that loaders use, or if there is none, that of linkers */
	const struct kp_section *table = kp_sections_first(sections, SHT_DYNSYM);

	if (!table)
		table = kp_sections_first(sections, SHT_SYMTAB);
	return table ? kp_symbols_each(src, sections, table, visit_symbol, &s, why)
		     : KPACK_SUCCESS;
}
