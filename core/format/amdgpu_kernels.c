/* SPDX-License-Identifier: MIT */
#include "amdgpu_kernels.h"
#include <inttypes.h>
#include <stdlib.h>
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

/* A kernel of the metadata, whose name may come after its numbers. */
struct row {
	struct kp_kernel numbers;
	struct kp_span name, symbol;
};

static int64_t *number(struct kp_kernel *k, size_t offset)
{
	return (int64_t *)(void *)((char *)k + offset);
}

static bool read_number(struct kp_mp *c, int64_t *out)
{
	uint64_t n;

	if (!kp_mp_uint(c, &n))
		return false;
	if (n > INT64_MAX)
		return kp_mp_fault(c, "a number above 2^63");
	*out = (int64_t)n;
	return true;
}

static bool read_row_value(struct kp_mp *c, struct kp_span key, struct row *row)
{
	for (size_t i = 0; i < KP_COUNT(numbers); i++)
		if (kp_span_is(key, numbers[i].key))
			return read_number(c, number(&row->numbers, numbers[i].offset));
	if (kp_span_is(key, ".name"))
		return kp_mp_str(c, &row->name);
	if (kp_span_is(key, ".symbol"))
		return kp_mp_str(c, &row->symbol);
	return kp_mp_skip(c);
}

static bool read_row(struct kp_mp *c, struct row *row)
{
	struct kp_span key;
	uint32_t n;

	*row = (struct row){0};
	for (size_t i = 0; i < KP_COUNT(numbers); i++)
		*number(&row->numbers, numbers[i].offset) = KP_NOT_STATED;
	if (!kp_mp_map(c, &n))
		return false;
	while (n-- && kp_mp_str(c, &key) && read_row_value(c, key, row))
		;
	if (c->fault)
		return false;
	return row->name.size || kp_mp_fault(c, "a kernel without a name");
}

/* Set KERNEL's symbol to SYMBOL (data NULL: none). */
static kpack_error_t set_symbol(struct kp_kernel *kernel, struct kp_span symbol,
				struct kpackx_error *why)
{
	if (!symbol.data)
		return KPACK_SUCCESS;
	kernel->symbol = strndup((const char *)symbol.data, symbol.size);
	return kernel->symbol ? KPACK_SUCCESS
			      : kp_fail_memory(why, symbol.size, "a kernel's symbol");
}

static kpack_error_t add_row(const struct row *row, struct kp_object *out,
			     struct kpackx_error *why)
{
	struct kp_kernel *kernel;

	KP_TRY(kp_object_add_kernel(out, row->name, &kernel, why));
	for (size_t i = 0; i < KP_COUNT(numbers); i++)
		*number(kernel, numbers[i].offset) =
			*number((struct kp_kernel *)&row->numbers, numbers[i].offset);
	return set_symbol(kernel, row->symbol, why);
}

/* Read the array of kernels; the caller checks for faults of the cursor. */
static kpack_error_t read_rows(struct kp_mp *c, struct kp_object *out,
			       struct kpackx_error *why)
{
	struct row row;
	uint32_t n;

	if (!kp_mp_array(c, &n))
		return KPACK_SUCCESS;
	while (n-- && read_row(c, &row))
		KP_TRY(add_row(&row, out, why));
	return KPACK_SUCCESS;
}

static void read_version(struct kp_mp *c, uint64_t version[2])
{
	uint64_t n;
	uint32_t count;

	if (!kp_mp_array(c, &count))
		return;
	for (uint32_t i = 0; i < count && kp_mp_uint(c, &n); i++)
		if (i < 2)
			version[i] = n;
}

static kpack_error_t read_value(struct kp_mp *c, struct kp_span key,
				struct kp_amdgpu_metadata *facts, struct kp_object *out,
				struct kpackx_error *why)
{
	if (kp_span_is(key, "amdhsa.kernels"))
		return read_rows(c, out, why);
	if (kp_span_is(key, "amdhsa.target"))
		kp_mp_str(c, &facts->target);
	else if (kp_span_is(key, "amdhsa.version"))
		read_version(c, facts->version);
	else
		kp_mp_skip(c);
	return KPACK_SUCCESS;
}

kpack_error_t kp_amdgpu_metadata_read(struct kp_span metadata,
				      struct kp_amdgpu_metadata *facts,
				      struct kp_object *out, struct kpackx_error *why)
{
	struct kp_mp c = kp_mp_over(metadata);
	struct kp_span key;
	uint32_t n;

	*facts = (struct kp_amdgpu_metadata){0};
	if (kp_mp_map(&c, &n))
		while (n-- && kp_mp_str(&c, &key))
			KP_TRY(read_value(&c, key, facts, out, why));
	if (c.fault) {
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "metadata of kernels: offset %zu: %s", kp_mp_offset(&c),
			       c.fault);
	}
	return KPACK_SUCCESS;
}

/* ---- symbols ---- */

/* Type of a kernel's symbol in code object v2; its value is the descriptor's address. */
#define STT_AMDGPU_HSA_KERNEL 10

/* A field of a descriptor: offset and size in bytes; size 0: the field does not exist. */
struct place {
	uint8_t offset, bytes;
};

struct layout {
	size_t size;
	struct place lds, scratch, kernarg, sgprs, vgprs;
	int64_t (*wavefront)(const uint8_t *descriptor);
};

/* From ENABLE_WAVEFRONT_SIZE32 of kernel_code_properties, never set before gfx10. */
static int64_t wavefront_v3(const uint8_t *descriptor)
{
	return kp_le16(descriptor + 56) & 1 << 10 ? 32 : 64;
}

/* The descriptor has the exponent of a power of two. */
static int64_t wavefront_v2(const uint8_t *descriptor)
{
	return descriptor[103] < 16 ? 1 << descriptor[103] : KP_NOT_STATED;
}

static const struct layout kernel_descriptor = {
	.size = 64,
	.lds = {0, 4},
	.scratch = {4, 4},
	.kernarg = {8, 4},
	.wavefront = wavefront_v3,
};

static const struct layout kernel_code = {
	.size = 104,
	.lds = {64, 4},
	.scratch = {60, 4},
	.kernarg = {72, 4},
	.sgprs = {84, 2},
	.vgprs = {86, 2},
	.wavefront = wavefront_v2,
};

struct symbols {
	struct kp_source src;
	const struct kp_sections *sections;
	struct kp_object *out;
	char *names; /* owned; a NUL follows its last byte */
	uint64_t names_size;
	uint64_t copied; /* bytes of names, so far */
	/* Sections that usually hold the descriptors of v3 and of v2; NULL: none. */
	const struct kp_section *usual[2];
};

static int64_t field(const uint8_t *descriptor, struct place p)
{
	if (p.bytes == 0)
		return KP_NOT_STATED;
	return p.bytes == 2 ? kp_le16(descriptor + p.offset)
			    : kp_le32(descriptor + p.offset);
}

static void describe_kernel(const struct layout *layout, const uint8_t *descriptor,
			    struct kp_kernel *k)
{
	k->lds = field(descriptor, layout->lds);
	k->scratch = field(descriptor, layout->scratch);
	k->kernarg = field(descriptor, layout->kernarg);
	k->sgprs = field(descriptor, layout->sgprs);
	k->vgprs = field(descriptor, layout->vgprs);
	k->wavefront = layout->wavefront(descriptor);
}

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
 * Find the descriptor of SYMBOL: in SYMBOL's section, or in the usual section, because
 * tools that remove sections do not renumber the sections of dynamic symbols.  false: in
 * neither.
 */
static bool find_descriptor(const struct symbols *s, const struct layout *layout,
			    const uint8_t *symbol, uint64_t *offset)
{
	uint16_t index = kp_le16(symbol + offsetof(Elf64_Sym, st_shndx));
	uint64_t value = kp_le64(symbol + offsetof(Elf64_Sym, st_value));
	const struct kp_section *in =
		index < s->sections->count ? &s->sections->items[index] : NULL;

	return place_in(s, in, value, layout->size, offset) ||
	       (s->sections->header.e_type != ET_REL &&
		place_in(s, s->usual[layout == &kernel_code], value, layout->size,
			 offset));
}

/* True if NAME is a v3 kernel's symbol. */
static bool is_descriptor(struct kp_span name)
{
	return name.size > 3 && kp_span_ends(name, ".kd");
}

/*
 * Limit the bytes of names: they may overlap, so a small file could request all memory.
 */
static bool account_name(struct symbols *s, size_t size)
{
	s->copied += size;
	return s->copied <= 4 * s->names_size;
}

static kpack_error_t add_kernel(struct symbols *s, const struct layout *layout,
				const char *name, size_t size, const uint8_t *symbol,
				struct kpackx_error *why)
{
	struct kp_span span = {(const uint8_t *)name, size};
	struct kp_kernel *kernel;
	uint8_t descriptor[104];
	uint64_t offset;

	if (!account_name(s, strlen(name)))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"names of kernels have more bytes than all names, %" PRIu64,
			s->names_size);
	KP_TRY(kp_object_add_kernel(s->out, span, &kernel, why));
	if (find_descriptor(s, layout, symbol, &offset)) {
		KP_TRY(kp_source_read(&s->src, offset, descriptor, layout->size, why));
		describe_kernel(layout, descriptor, kernel);
	}
	return layout == &kernel_code ? KPACK_SUCCESS
				      : set_symbol(kernel, kp_span_str(name), why);
}

static kpack_error_t visit_symbol(struct symbols *s, const uint8_t *symbol,
				  struct kpackx_error *why)
{
	uint32_t at = kp_le32(symbol + offsetof(Elf64_Sym, st_name));
	unsigned type = ELF64_ST_TYPE(symbol[offsetof(Elf64_Sym, st_info)]);
	uint64_t size = kp_le64(symbol + offsetof(Elf64_Sym, st_size));
	struct kp_span name;

	if (kp_le16(symbol + offsetof(Elf64_Sym, st_shndx)) == SHN_UNDEF ||
	    at >= s->names_size)
		return KPACK_SUCCESS;
	if (type == STT_AMDGPU_HSA_KERNEL)
		return add_kernel(s, &kernel_code, s->names + at, strlen(s->names + at),
				  symbol, why);
	if (type != STT_OBJECT || size != kernel_descriptor.size)
		return KPACK_SUCCESS;
	name = kp_span_str(s->names + at);
	return is_descriptor(name) ? add_kernel(s, &kernel_descriptor, s->names + at,
						name.size - 3, symbol, why)
				   : KPACK_SUCCESS;
}

static kpack_error_t read_names(struct symbols *s, const struct kp_section *table,
				struct kpackx_error *why)
{
	const struct kp_section *names;

	if (table->link >= s->sections->count)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "symbols: names in section %" PRIu32 " of %zu",
			       table->link, s->sections->count);
	names = &s->sections->items[table->link];
	if (names->type != SHT_STRTAB || names->size > KP_SYMBOL_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "symbols: section %" PRIu32 " of type %" PRIu32
			       " and %" PRIu64 " bytes holds no names",
			       table->link, names->type, names->size);
	s->names_size = names->size;
	s->names = malloc((size_t)names->size + 1);
	if (!s->names)
		return kp_fail_memory(why, names->size, "names of symbols");
	s->names[names->size] = '\0';
	return kp_source_read(&s->src, names->offset, s->names, (size_t)names->size, why);
}

static kpack_error_t walk_symbols(struct symbols *s, const struct kp_section *table,
				  struct kpackx_error *why)
{
	struct kp_window window;
	const uint8_t *p;

	KP_TRY(read_names(s, table, why));
	kp_window_init(&window, &s->src);
	for (uint64_t i = 0; i < table->size / sizeof(Elf64_Sym); i++) {
		KP_TRY(kp_window_get(&window, table->offset + i * sizeof(Elf64_Sym),
				     sizeof(Elf64_Sym), &p, why));
		KP_TRY(visit_symbol(s, p, why));
	}
	return KPACK_SUCCESS;
}

/* The symbol table that loaders use, or if there is none, that of linkers. */
static const struct kp_section *find_table(const struct kp_sections *sections)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};

	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < sections->count; i++)
			if (sections->items[i].type == types[t])
				return &sections->items[i];
	return NULL;
}

kpack_error_t kp_amdgpu_symbols_read(const struct kp_source *src,
				     const struct kp_sections *sections,
				     struct kp_object *out, struct kpackx_error *why)
{
	struct symbols s = {
		.src = *src,
		.sections = sections,
		.out = out,
		.usual = {kp_sections_find(sections, ".rodata"),
			  kp_sections_find(sections, ".text")},
	};
	const struct kp_section *table = find_table(sections);
	kpack_error_t err;

	if (!table)
		return KPACK_SUCCESS;
	err = walk_symbols(&s, table, why);
	free(s.names);
	return err;
}
