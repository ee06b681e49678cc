/* SPDX-License-Identifier: MIT */
/*
 * Rewriting an object: find the section of device code; see by how much what follows it can move;
 * load the host's part, which is all but that section; then, in memory, let symbols and relocations
 * follow the containers that they lead to, and the headers follow the sections.
 *
 *	old   [ before | device code              | after ]
 *	new   [ before | less of it, then zeros | after ]
 *
 * What is behind moves by a multiple of all alignments there, so that every section keeps its own;
 * the rest of the difference stays as zeros.  Only a container's beginning has a new place: what leads
 * into the middle of one cannot be told where to lead, and the object is refused.
 *
 * Fields that are read or written here: of a symbol 4 info, 6 section, 8 value, 16 size; of a
 * relocation 8 type, 12 symbol, 16 addend (RELA).
 */
#include "convert.h"
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/format/sections.h"

#define HOST_MAX (UINT64_C(256) << 20)
#define ALIGN_MAX (UINT64_C(1) << 20)
#define SECTION_TYPE_CREL 0x40000014

struct object {
	const struct kp_source *src;
	const struct kp_relocatable_fill *fill;
	struct kp_relocatable *out;
	struct kp_sections in;
	size_t section; /* the number of the section */
	uint64_t end;   /* of the section in the object */
	uint64_t shift; /* what follows the section moves by so many bytes */
};

/* Where byte OFFSET of the object is in the changed bytes; NULL: in the section. */
static uint8_t *bytes_at(const struct object *o, uint64_t offset, uint64_t size)
{
	if (offset < o->fill->offset)
		return size <= o->fill->offset - offset ? o->out->bytes + offset : NULL;
	if (offset < o->end || !kp_range_ok(o->src->size, offset, size))
		return NULL;
	return o->out->bytes + o->out->before + (offset - o->end);
}

static kpack_error_t fail_unusual(struct kpackx_error *why, size_t section,
				  const char *what)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "section %zu %s", section, what);
}

/* Whether the range is before or after the section. */
static bool is_apart(const struct object *o, uint64_t offset, uint64_t size)
{
	return size == 0 || offset >= o->end ||
	       (offset < o->fill->offset && size <= o->fill->offset - offset);
}

/* ---- what leads to the section ---- */

/* Move OFFSET in the section with its container; false: no container begins there. */
static bool move_offset(const struct object *o, uint64_t *offset)
{
	const struct kp_relocatable_fill *f = o->fill;
	const uint64_t *from = kp_find(f->from, f->n, offset, KP_AS_NUMBER(uint64_t));

	if (from)
		*offset = f->to[from - f->from];
	return from || (*offset == 0 && f->n == 0);
}

static kpack_error_t check_table(const struct object *o, size_t i, size_t row,
				 struct kpackx_error *why)
{
	const struct kp_section *s = &o->in.items[i];

	if (s->entsize == row && s->size % row == 0 && bytes_at(o, s->offset, s->size))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "section %zu: a table of %" PRIu64 " bytes, %" PRIu64
		       " in each row",
		       i, s->size, s->entsize);
}

/* Move the symbols that are defined in the section. */
static kpack_error_t move_symbols(struct object *o, size_t table,
				  struct kpackx_error *why)
{
	const struct kp_section *s = &o->in.items[table];

	KP_TRY(check_table(o, table, sizeof(Elf64_Sym), why));
	for (uint64_t i = 0; i < s->size / sizeof(Elf64_Sym); i++) {
		uint8_t *p =
			bytes_at(o, s->offset + i * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
		uint64_t value = kp_le64(p + 8);

		if (kp_le16(p + 6) != o->section)
			continue;
		if (!move_offset(o, &value))
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "symbol %" PRIu64 " leads into the middle of the "
				       "device code",
				       i);
		kp_put_le64(p + 8, value);
		if (kp_le64(p + 16) == o->fill->size)
			kp_put_le64(p + 16, o->fill->rest);
	}
	return KPACK_SUCCESS;
}

/* Relocations to the section's own symbol have the offset in the addend. */
static kpack_error_t move_relocations(struct object *o, size_t number,
				      struct kpackx_error *why)
{
	const struct kp_section *s = &o->in.items[number], *symbols;
	bool addends = s->type == SHT_RELA;
	size_t row = addends ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);

	if (s->info == o->section && s->size)
		return fail_unusual(why, number, "relocates the device code");
	if (s->link >= o->in.count || o->in.items[s->link].type != SHT_SYMTAB)
		return fail_unusual(why, number, "has relocations without symbols");
	symbols = &o->in.items[s->link];
	KP_TRY(check_table(o, number, row, why));
	KP_TRY(check_table(o, s->link, sizeof(Elf64_Sym), why));
	for (uint64_t i = 0; i < s->size / row; i++) {
		uint8_t *p = bytes_at(o, s->offset + i * row, row);
		uint32_t index = kp_le32(p + 12);
		const uint8_t *symbol;
		uint64_t offset;

		if (index >= symbols->size / sizeof(Elf64_Sym))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "a relocation with symbol %" PRIu32 " of %" PRIu64,
				       index, symbols->size / sizeof(Elf64_Sym));
		symbol = bytes_at(o, symbols->offset + index * sizeof(Elf64_Sym),
				  sizeof(Elf64_Sym));
		if (!symbol || kp_le16(symbol + 6) != o->section)
			continue;
		offset = addends ? kp_le64(p + 16) : 1;
		if (ELF64_ST_TYPE(symbol[4]) == STT_SECTION && addends
			    ? !move_offset(o, &offset)
			    : offset != 0)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "relocation %" PRIu64 " of section %zu leads into "
				       "the middle of the device code",
				       i, number);
		kp_put_le64(p + 16, offset);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t move_code(struct object *o, struct kpackx_error *why)
{
	const struct kp_relocatable_fill *f = o->fill;
	const Elf64_Ehdr *h = &o->in.header;
	struct kp_relocatable *out = o->out;
	uint64_t align = 8, size;

	/* find the section */
	if (h->e_type != ET_REL || h->e_phnum)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "not an object to link");
	for (size_t i = 1; i < o->in.count; i++)
		if (o->in.items[i].offset == f->offset &&
		    o->in.items[i].size == f->size && o->in.items[i].type == SHT_PROGBITS)
			o->section = i;
	if (!o->section || f->offset < sizeof(Elf64_Ehdr) ||
	    !kp_range_ok(o->src->size, f->offset, f->size) ||
	    !is_apart(o, h->e_shoff, o->in.count * sizeof(Elf64_Shdr)) ||
	    f->rest > f->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "no section of device code at offset %" PRIu64, f->offset);
	/* such numbers are not in the symbols, but in a table of their own */
	if (o->section >= SHN_LORESERVE)
		return fail_unusual(why, o->section,
				    "has the device code; objects of so many sections "
				    "are not rewritten");
	if (o->in.items[o->section].flags & SHF_COMPRESSED)
		return fail_unusual(why, o->section, "is compressed");
	/* the bytes behind it move by a multiple of all alignments */
	for (size_t i = 1; i < o->in.count; i++) {
		const struct kp_section *s = &o->in.items[i];
		bool bytes = s->type != SHT_NOBITS && s->type != SHT_NULL;

		if (i == o->section)
			continue;
		if (bytes && !is_apart(o, s->offset, s->size))
			return fail_unusual(why, i, "shares bytes with the device code");
		if (s->align > ALIGN_MAX || (s->align & (s->align - 1)))
			return fail_unusual(why, i, "has an impossible alignment");
		if (bytes && s->offset >= f->offset && s->align > align)
			align = s->align;
	}
	o->shift = (f->size - f->rest) & -align;
	if (!o->shift)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "the object would not become smaller");
	/* load the host's part, and change it */
	out->before = f->offset;
	out->after = o->src->size - o->end;
	out->size = o->src->size - o->shift;
	size = out->before + out->after;
	if (out->before > HOST_MAX || out->after > HOST_MAX - out->before)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "an object with %" PRIu64 " bytes beside its device code",
			       size);
	KP_TRY(kp_new(&out->bytes, (size_t)size, "an object", why));
	KP_TRY(kp_source_read(o->src, 0, out->bytes, (size_t)out->before, why));
	KP_TRY(kp_source_read(o->src, o->end, out->bytes + out->before,
			      (size_t)out->after, why));
	for (size_t i = 1; i < o->in.count; i++) {
		uint32_t type = o->in.items[i].type;

		if (type == SHT_SYMTAB)
			KP_TRY(move_symbols(o, i, why));
		else if (type == SHT_RELA || type == SHT_REL)
			KP_TRY(move_relocations(o, i, why));
		else if (type == SECTION_TYPE_CREL)
			return fail_unusual(why, i, "has compact relocations");
	}
	for (size_t i = 1; i < o->in.count; i++) {
		uint8_t *p = bytes_at(o, h->e_shoff + i * sizeof(Elf64_Shdr),
				      sizeof(Elf64_Shdr));

		if (i == o->section)
			kp_put_le64(p + offsetof(Elf64_Shdr, sh_size), f->rest);
		else if (o->in.items[i].offset >= o->end)
			kp_put_le64(p + offsetof(Elf64_Shdr, sh_offset),
				    o->in.items[i].offset - o->shift);
	}
	if (h->e_shoff >= o->end)
		kp_put_le64(out->bytes + offsetof(Elf64_Ehdr, e_shoff),
			    h->e_shoff - o->shift);
	return KPACK_SUCCESS;
}

kpack_error_t kp_relocatable_refill(const struct kp_source *src,
				    const struct kp_relocatable_fill *fill,
				    struct kp_relocatable *out, struct kpackx_error *why)
{
	struct object o = {
		.src = src, .fill = fill, .out = out, .end = fill->offset + fill->size};
	struct kp_span head;
	uint8_t bytes[20];
	kpack_error_t err;

	*out = (struct kp_relocatable){0};
	KP_TRY(kp_source_head(src, 0, bytes, sizeof(bytes), &head, why));
	if (!kp_elf_probe(head, NULL))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "a 32-bit or big-endian object");
	KP_TRY(kp_sections_read(src, &o.in, why));
	err = move_code(&o, why);
	kp_sections_fini(&o.in);
	if (err)
		kp_relocatable_fini(out);
	return err;
}

void kp_relocatable_fini(struct kp_relocatable *r)
{
	free(r->bytes);
	*r = (struct kp_relocatable){0};
}
