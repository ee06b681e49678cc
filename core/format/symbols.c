/* SPDX-License-Identifier: MIT */
#include "symbols.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "sections.h"

kpack_error_t kp_symbols_put(struct kp_symbols *out, struct kp_span name,
			     struct kpackx_error *why)
{
	char *grown;

	if (name.size >= KP_INDEX_MAX - out->size)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "names of symbols of more than %d bytes", KP_INDEX_MAX);
	if (name.size + 1 > out->cap - out->size) {
		out->cap = 2 * (out->size + name.size + 1);
		grown = realloc(out->names, out->cap);
		if (!grown)
			return kp_fail_memory(why, out->cap, "names of symbols");
		out->names = grown;
	}
	if (name.size)
		memcpy(out->names + out->size, name.data, name.size);
	out->names[out->size + name.size] = '\0';
	out->size += name.size + 1;
	out->count++;
	return KPACK_SUCCESS;
}

void kp_symbols_fini(struct kp_symbols *symbols)
{
	free(symbols->names);
	*symbols = (struct kp_symbols){0};
}

/* ---- ELF ---- */

/* A symbol table and its names. */
struct table {
	struct kp_window rows;
	uint64_t offset, count;
	char *names;
	size_t names_size;
};

static const struct kp_section *first_of_type(const struct kp_sections *s, uint32_t type)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i].type == type)
			return &s->items[i];
	}
	return NULL;
}

/* True if row P of a symbol table is a symbol that other objects can use. */
static bool is_defined(const uint8_t *p)
{
	unsigned info = p[offsetof(Elf64_Sym, st_info)];
	unsigned type = ELF64_ST_TYPE(info);

	return ELF64_ST_BIND(info) != STB_LOCAL && type != STT_FILE &&
	       type != STT_SECTION &&
	       kp_le16(p + offsetof(Elf64_Sym, st_shndx)) != SHN_UNDEF;
}

static kpack_error_t put_row(const struct table *t, uint64_t i, const uint8_t *p,
			     struct kp_symbols *out, struct kpackx_error *why)
{
	uint32_t name = kp_le32(p + offsetof(Elf64_Sym, st_name));

	if (!is_defined(p))
		return KPACK_SUCCESS;
	if (name >= t->names_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "symbol %" PRIu64 ": its name at %" PRIu32
			       " passes the end of the names at %zu",
			       i, name, t->names_size);
	return kp_symbols_put(out, kp_span_str(t->names + name), why);
}

/* Append all rows except row 0, which is not a symbol. */
static kpack_error_t put_rows(struct table *t, struct kp_symbols *out,
			      struct kpackx_error *why)
{
	const uint8_t *p;

	for (uint64_t i = 1; i < t->count; i++) {
		KP_TRY(kp_window_get(&t->rows, t->offset + i * sizeof(Elf64_Sym),
				     sizeof(Elf64_Sym), &p, why));
		KP_TRY(put_row(t, i, p, out, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_table(const struct kp_source *src, const struct kp_sections *s,
				const struct kp_section *symtab, struct kp_symbols *out,
				struct kpackx_error *why)
{
	const struct kp_section *names;
	struct table t;
	kpack_error_t err;

	if (symtab->link >= s->count || symtab->entsize != sizeof(Elf64_Sym))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "symbols of %" PRIu64 " bytes, names in section %" PRIu32
			       " of %zu",
			       symtab->entsize, symtab->link, s->count);
	names = &s->items[symtab->link];
	if (names->type != SHT_STRTAB || names->size == 0 || names->size > KP_INDEX_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "names of symbols: section of type %" PRIu32
			       " with %" PRIu64 " bytes",
			       names->type, names->size);
	kp_window_init(&t.rows, src);
	t.offset = symtab->offset;
	t.count = symtab->size / sizeof(Elf64_Sym);
	t.names_size = (size_t)names->size;
	t.names = malloc(t.names_size + 1);
	if (!t.names)
		return kp_fail_memory(why, names->size, "names of symbols");
	t.names[t.names_size] = '\0';
	err = kp_source_read(src, names->offset, t.names, t.names_size, why);
	if (!err)
		err = put_rows(&t, out, why);
	free(t.names);
	return err;
}

static kpack_error_t elf_symbols(const struct kp_source *src, struct kp_symbols *out,
				 struct kpackx_error *why)
{
	const struct kp_section *symtab;
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_sections s;

	KP_TRY(kp_sections_read(src, &s, why));
	symtab = first_of_type(&s, SHT_SYMTAB);
	if (symtab)
		err = read_table(src, &s, symtab, out, why);
	kp_sections_fini(&s);
	return err;
}

/* ---- any object ---- */

/* True if HEAD is bitcode, plain or in a wrapper. */
static bool is_bitcode(struct kp_span head)
{
	return head.size >= 4 &&
	       (kp_le32(head.data) == 0xdec04342 || kp_le32(head.data) == 0x0b17c0de);
}

kpack_error_t kp_symbols_add(const struct kp_source *src, struct kp_symbols *out,
			     struct kpackx_error *why)
{
	size_t count = out->count, size = out->size;
	uint8_t bytes[EI_NIDENT + 4];
	struct kp_span head = {bytes, sizeof(bytes)};
	bool bitcode;
	kpack_error_t err;

	if (src->size < head.size)
		head.size = (size_t)src->size;
	KP_TRY(kp_source_read(src, 0, bytes, head.size, why));
	bitcode = is_bitcode(head);
	if (bitcode)
		err = kp_bitcode_symbols(src, out, why);
	else if (kp_elf_probe(head, NULL))
		err = elf_symbols(src, out, why);
	else
		return KPACK_SUCCESS;
	out->object |= bitcode || !err;
	if (err != KPACK_ERROR_INVALID_FORMAT)
		return err;
	out->count = count;
	out->size = size;
	return KPACK_SUCCESS;
}
