/* SPDX-License-Identifier: MIT */
#include "host_dynamic.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "host_hash.h"
#include "core/base/text.h"

/* Limit of relocation types that are distinguished: AArch64's end at 1040. */
#define TYPES 2048

void host_differs(struct host_verdict *out, const char *fmt, ...)
{
	va_list args;

	if (out->relation != HOST_SAME)
		return;
	out->relation = HOST_DIFFERS;
	va_start(args, fmt);
	vsnprintf(out->text, sizeof(out->text), fmt, args);
	va_end(args);
}

struct symbol {
	struct kp_span name;
	uint64_t size;
	uint16_t version;
	uint8_t info, other;
	bool defined;
};

struct dynamic {
	const struct host_sections *sections;
	uint8_t *bytes, *names, *versions,
		*table; /* .dynsym .dynstr .gnu.version .dynamic */
	size_t names_size, table_size;
	struct symbol *symbols;
	size_t count;
};

/* --- reading -------------------------------------------------------------------------------- */

static size_t section_size(const struct kp_section *s)
{
	return s && s->type != SHT_NOBITS ? (size_t)s->size : 0;
}

static kpack_error_t load_section(struct dynamic *d, const char *name, uint8_t **out,
				  size_t *size, struct kpackx_error *why)
{
	const struct kp_section *s = host_sections_find(d->sections, name);

	*size = section_size(s);
	return host_section_load(d->sections, s, out, why);
}

/* The text at offset AT of .dynstr, which has a NUL after its end. */
static struct kp_span text_at(const struct dynamic *d, uint64_t at)
{
	return at < d->names_size ? kp_span_str((const char *)d->names + at)
				  : (struct kp_span){d->names + d->names_size, 0};
}

static void read_symbol(const struct dynamic *d, size_t i, bool has_version,
			struct symbol *out)
{
	const uint8_t *p = d->bytes + i * sizeof(Elf64_Sym);
	uint16_t section = kp_le16(p + offsetof(Elf64_Sym, st_shndx));

	*out = (struct symbol){
		.name = text_at(d, kp_le32(p + offsetof(Elf64_Sym, st_name))),
		.info = p[offsetof(Elf64_Sym, st_info)],
		.other = p[offsetof(Elf64_Sym, st_other)],
		.defined = section != SHN_UNDEF,
		.version = has_version ? kp_le16(d->versions + 2 * i) : 0,
	};
	if (!d->sections->fatbin || section != d->sections->fatbin)
		out->size = kp_le64(p + offsetof(Elf64_Sym, st_size));
}

static kpack_error_t read_dynamic(const struct host_sections *s, struct dynamic *out,
				  struct kpackx_error *why)
{
	size_t symbols, versions;

	out->sections = s;
	KP_TRY(load_section(out, ".dynsym", &out->bytes, &symbols, why));
	KP_TRY(load_section(out, ".dynstr", &out->names, &out->names_size, why));
	KP_TRY(load_section(out, ".gnu.version", &out->versions, &versions, why));
	KP_TRY(load_section(out, ".dynamic", &out->table, &out->table_size, why));
	out->count = symbols / sizeof(Elf64_Sym);
	out->symbols = calloc(out->count + 1, sizeof(*out->symbols));
	if (!out->symbols)
		return kp_fail_memory(why, out->count * sizeof(*out->symbols), "symbols");
	for (size_t i = 0; i < out->count; i++)
		read_symbol(out, i, i < versions / 2, &out->symbols[i]);
	return KPACK_SUCCESS;
}

static void fini_dynamic(struct dynamic *d)
{
	free(d->bytes);
	free(d->names);
	free(d->versions);
	free(d->table);
	free(d->symbols);
}

/* --- symbols -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	int order = host_name_cmp(x->name, y->name);

	if (order)
		return order;
	if (x->version != y->version)
		return KP_ORDER(x->version, y->version);
	return KP_ORDER(x->size, y->size);
}

static bool same_order(const struct dynamic *a, const struct dynamic *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++)
		if (host_name_cmp(a->symbols[i].name, b->symbols[i].name) != 0)
			return false;
	return a->count == b->count;
}

static void add_difference(struct host_verdict *out, struct kp_span name,
			   const char *what)
{
	char shown[120];

	kp_text_escape(name, shown, sizeof(shown));
	host_differs(out, "dynamic symbol %s: %s", shown, what);
}

static void compare_symbol(const struct symbol *a, const struct symbol *b,
			   struct host_verdict *out)
{
	int order = host_name_cmp(a->name, b->name);

	if (order != 0)
		add_difference(out, order < 0 ? a->name : b->name, "only one has it");
	else if (a->info != b->info || a->other != b->other)
		add_difference(out, a->name, "its type, binding or visibility differs");
	else if (a->defined != b->defined)
		add_difference(out, a->name, "only one defines it");
	else if (a->size != b->size)
		add_difference(out, a->name, "its size differs");
	else if (a->version != b->version)
		add_difference(out, a->name, "its version differs");
}

static void compare_symbols(struct dynamic *a, struct dynamic *b,
			    struct host_verdict *out)
{
	qsort(a->symbols, a->count, sizeof(*a->symbols), by_name);
	qsort(b->symbols, b->count, sizeof(*b->symbols), by_name);
	for (size_t i = 0; i < a->count && i < b->count; i++)
		compare_symbol(&a->symbols[i], &b->symbols[i], out);
	if (a->count != b->count)
		host_differs(out, "%zu dynamic symbols, and %zu", a->count, b->count);
}

/* --- the dynamic section ------------------------------------------------------------------------ */

enum value { NUMBER, ADDRESS, TEXT };

static enum value kind_of(uint64_t tag)
{
	static const struct {
		uint32_t tag;
		enum value kind;
	} table[] = {
		{DT_NEEDED, TEXT},
		{DT_SONAME, TEXT},
		{DT_RPATH, TEXT},
		{DT_RUNPATH, TEXT},
		{DT_AUXILIARY, TEXT},
		{DT_FILTER, TEXT},
		{DT_PLTGOT, ADDRESS},
		{DT_HASH, ADDRESS},
		{DT_STRTAB, ADDRESS},
		{DT_SYMTAB, ADDRESS},
		{DT_RELA, ADDRESS},
		{DT_REL, ADDRESS},
		{DT_RELR, ADDRESS},
		{DT_RELRSZ, ADDRESS},
		{DT_INIT, ADDRESS},
		{DT_FINI, ADDRESS},
		{DT_JMPREL, ADDRESS},
		{DT_INIT_ARRAY, ADDRESS},
		{DT_VERSYM, ADDRESS},
		{DT_FINI_ARRAY, ADDRESS},
		{DT_GNU_HASH, ADDRESS},
		{DT_VERDEF, ADDRESS},
		{DT_PREINIT_ARRAY, ADDRESS},
		{DT_VERNEED, ADDRESS},
		{DT_TLSDESC_PLT, ADDRESS},
		{DT_TLSDESC_GOT, ADDRESS},
		{DT_DEBUG, ADDRESS},
	};

	for (size_t i = 0; i < KP_COUNT(table); i++)
		if (table[i].tag == tag)
			return table[i].kind;
	return NUMBER;
}

static bool same_value(const struct dynamic *a, uint64_t x, const struct dynamic *b,
		       uint64_t y, uint64_t tag)
{
	switch (kind_of(tag)) {
	case TEXT:
		return kp_span_eq(text_at(a, x), text_at(b, y));
	case ADDRESS:
		return true;
	default:
		return x == y;
	}
}

static void compare_tables(const struct dynamic *a, const struct dynamic *b,
			   struct host_verdict *out)
{
	for (size_t at = 0; at + 16 <= a->table_size && at + 16 <= b->table_size;
	     at += 16) {
		uint64_t tag = kp_le64(a->table + at);

		if (tag != kp_le64(b->table + at))
			host_differs(out,
				     "section .dynamic: entry %zu has tag 0x%" PRIx64
				     ", and 0x%" PRIx64,
				     at / 16, tag, kp_le64(b->table + at));
		else if (!same_value(a, kp_le64(a->table + at + 8), b,
				     kp_le64(b->table + at + 8), tag))
			host_differs(out,
				     "section .dynamic: entry %zu, tag 0x%" PRIx64
				     ", differs",
				     at / 16, tag);
	}
}

/* --- relocations -------------------------------------------------------------------------------- */

/* Count the relocations in RELR's bitmaps. */
static uint64_t count_relr(const uint8_t *bytes, size_t size)
{
	uint64_t n = 0;

	for (size_t at = 0; at + 8 <= size; at += 8) {
		uint64_t word = kp_le64(bytes + at);

		n += word & 1 ? (uint64_t)__builtin_popcountll(word) - 1 : 1;
	}
	return n;
}

static void count_types(const uint8_t *bytes, size_t size, size_t row, uint64_t *count)
{
	for (size_t at = 0; at + row <= size; at += row)
		count[ELF64_R_TYPE(kp_le64(bytes + at + 8)) % TYPES]++;
}

static kpack_error_t count_relocs(const struct host_sections *s, uint64_t *count,
				  struct kpackx_error *why)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct kp_section *section = &s->items[i];
		uint32_t type = section->type;
		size_t size = section_size(section);
		uint8_t *bytes;

		if (type != SHT_RELA && type != SHT_REL && type != SHT_RELR)
			continue;
		KP_TRY(host_section_load(s, section, &bytes, why));
		if (type == SHT_RELR)
			count[TYPES] += count_relr(bytes, size);
		else
			count_types(bytes, size,
				    type == SHT_RELA ? sizeof(Elf64_Rela)
						     : sizeof(Elf64_Rel),
				    count);
		free(bytes);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t compare_relocs(const struct host_sections *a,
				    const struct host_sections *b,
				    struct host_verdict *out, struct kpackx_error *why)
{
	uint64_t x[TYPES + 1] = {0}, y[TYPES + 1] = {0};

	KP_TRY(count_relocs(a, x, why));
	KP_TRY(count_relocs(b, y, why));
	for (size_t i = 0; i <= TYPES; i++)
		if (x[i] != y[i])
			host_differs(out,
				     "relocations: %" PRIu64 " of type %zu, and %" PRIu64,
				     x[i], i, y[i]);
	return KPACK_SUCCESS;
}

kpack_error_t host_dynamic_compare(const struct host_sections *a,
				   const struct host_sections *b, bool *order,
				   struct host_verdict *out, struct kpackx_error *why)
{
	struct dynamic x = {0}, y = {0};
	kpack_error_t err = read_dynamic(a, &x, why);

	if (!err)
		err = read_dynamic(b, &y, why);
	if (!err) {
		*order = same_order(&x, &y);
		compare_tables(&x, &y, out);
		compare_symbols(&x, &y, out);
		err = compare_relocs(a, b, out, why);
	}
	fini_dynamic(&x);
	fini_dynamic(&y);
	return err;
}
