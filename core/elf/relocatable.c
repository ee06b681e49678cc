/* SPDX-License-Identifier: MIT */
#include "relocatable.h"
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/format/sections.h"

#define HOST_MAX (UINT64_C(256) << 20)
#define ALIGN_MAX (UINT64_C(1) << 20)

struct object {
	const struct kp_source *src;
	const struct kp_relocatable_fill *fill;
	struct kp_relocatable *out;
	struct kp_sections in;
	size_t section; /* the number of the section */
	uint64_t shift; /* what follows the section moves by so many bytes */
};

/* Where byte OFFSET of the object is in the changed bytes; NULL: in the section. */
static uint8_t *bytes_at(const struct object *o, uint64_t offset, uint64_t size)
{
	uint64_t end = o->fill->offset + o->fill->size;

	if (offset < o->fill->offset)
		return size <= o->fill->offset - offset ? o->out->bytes + offset : NULL;
	if (offset < end || !kp_range_ok(o->src->size, offset, size))
		return NULL;
	return o->out->bytes + o->out->before + (offset - end);
}

static kpack_error_t fail_unusual(struct kpackx_error *why, size_t section,
				  const char *what)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "section %zu %s", section, what);
}

/* --- where things are ------------------------------------------------------------------ */

/* Whether the range is before or after the section. */
static bool is_apart(const struct object *o, uint64_t offset, uint64_t size)
{
	return size == 0 || offset >= o->fill->offset + o->fill->size ||
	       (offset < o->fill->offset && size <= o->fill->offset - offset);
}

/* The bytes after the section keep their alignment: they move by a multiple of all. */
static kpack_error_t measure_shift(struct object *o, struct kpackx_error *why)
{
	uint64_t align = 8;

	for (size_t i = 1; i < o->in.count; i++) {
		const struct kp_section *s = &o->in.items[i];
		bool bytes = s->type != SHT_NOBITS && s->type != SHT_NULL;

		if (i == o->section)
			continue;
		if (bytes && !is_apart(o, s->offset, s->size))
			return fail_unusual(why, i, "shares bytes with the device code");
		if (s->align > ALIGN_MAX || (s->align & (s->align - 1)))
			return fail_unusual(why, i, "has an impossible alignment");
		if (bytes && s->offset >= o->fill->offset && s->align > align)
			align = s->align;
	}
	o->shift = (o->fill->size - o->fill->rest) & -align;
	if (!o->shift)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "the object would not become smaller");
	return KPACK_SUCCESS;
}

static kpack_error_t find_section(struct object *o, struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &o->in.header;
	uint64_t end = o->in.count * sizeof(Elf64_Shdr);

	if (h->e_type != ET_REL || h->e_phnum)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "not an object to link");
	for (size_t i = 1; i < o->in.count; i++) {
		const struct kp_section *s = &o->in.items[i];

		if (s->offset == o->fill->offset && s->size == o->fill->size &&
		    s->type == SHT_PROGBITS)
			o->section = i;
	}
	if (!o->section || o->fill->offset < sizeof(Elf64_Ehdr) ||
	    !kp_range_ok(o->src->size, o->fill->offset, o->fill->size) ||
	    !is_apart(o, h->e_shoff, end) || o->fill->rest > o->fill->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "no section of device code at offset %" PRIu64,
			       o->fill->offset);
	/* such numbers are not in the symbols, but in a table of their own */
	if (o->section >= SHN_LORESERVE)
		return fail_unusual(why, o->section,
				    "has the device code; objects of so many sections "
				    "are not rewritten");
	if (o->in.items[o->section].flags & SHF_COMPRESSED)
		return fail_unusual(why, o->section, "is compressed");
	return measure_shift(o, why);
}

static kpack_error_t read_host(struct object *o, struct kpackx_error *why)
{
	uint64_t end = o->fill->offset + o->fill->size;

	o->out->before = o->fill->offset;
	o->out->after = o->src->size - end;
	if (o->out->before > HOST_MAX || o->out->after > HOST_MAX - o->out->before)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "an object with %" PRIu64 " bytes beside its device code",
			       o->out->before + o->out->after);
	o->out->size = o->src->size - o->shift;
	o->out->bytes = malloc((size_t)(o->out->before + o->out->after + 1));
	if (!o->out->bytes)
		return kp_fail_memory(why, o->out->before + o->out->after, "an object");
	KP_TRY(kp_source_read(o->src, 0, o->out->bytes, (size_t)o->out->before, why));
	return kp_source_read(o->src, end, o->out->bytes + o->out->before,
			      (size_t)o->out->after, why);
}

/* --- what leads to the section --------------------------------------------------------- */

/* Move OFFSET in the section with its container. */
static bool move_offset(const struct object *o, uint64_t *offset)
{
	const struct kp_relocatable_fill *f = o->fill;
	size_t low = 0, high = f->n;

	if (*offset == 0 && (f->n == 0 || f->from[0] == 0))
		return true;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->from[mid] < *offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == f->n || f->from[low] != *offset)
		return false;
	*offset = f->to[low];
	return true;
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

/*
 * The offset of the row of symbol NUMBER, before it was moved; NULL: it is not in the
 * section.
 */
static kpack_error_t find_symbol(const struct object *o, const struct kp_section *table,
				 uint32_t number, const uint8_t **row,
				 struct kpackx_error *why)
{
	const uint8_t *p;

	*row = NULL;
	if (number >= table->size / sizeof(Elf64_Sym))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a relocation with symbol %" PRIu32 " of %" PRIu64, number,
			       table->size / sizeof(Elf64_Sym));
	p = bytes_at(o, table->offset + number * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
	if (p && kp_le16(p + 6) == o->section)
		*row = p;
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
		const uint8_t *symbol;
		uint64_t offset;

		KP_TRY(find_symbol(o, symbols, kp_le32(p + 12), &symbol, why));
		if (!symbol)
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

static kpack_error_t move_references(struct object *o, struct kpackx_error *why)
{
	for (size_t i = 1; i < o->in.count; i++) {
		switch (o->in.items[i].type) {
		case SHT_SYMTAB:
			KP_TRY(move_symbols(o, i, why));
			break;
		case SHT_RELA:
		case SHT_REL:
			KP_TRY(move_relocations(o, i, why));
			break;
		case 0x40000014: /* SHT_CREL */
			return fail_unusual(why, i, "has compact relocations");
		}
	}
	return KPACK_SUCCESS;
}

/* --- headers --------------------------------------------------------------------------- */

static void move_headers(struct object *o)
{
	uint64_t end = o->fill->offset + o->fill->size;

	for (size_t i = 0; i < o->in.count; i++) {
		uint8_t *p = bytes_at(o, o->in.header.e_shoff + i * sizeof(Elf64_Shdr),
				      sizeof(Elf64_Shdr));

		if (i == o->section)
			kp_put_le64(p + offsetof(Elf64_Shdr, sh_size), o->fill->rest);
		else if (i && o->in.items[i].offset >= end)
			kp_put_le64(p + offsetof(Elf64_Shdr, sh_offset),
				    o->in.items[i].offset - o->shift);
	}
	if (o->in.header.e_shoff >= end)
		kp_put_le64(o->out->bytes + offsetof(Elf64_Ehdr, e_shoff),
			    o->in.header.e_shoff - o->shift);
}

static kpack_error_t move_code(struct object *o, struct kpackx_error *why)
{
	KP_TRY(find_section(o, why));
	KP_TRY(read_host(o, why));
	KP_TRY(move_references(o, why));
	move_headers(o);
	return KPACK_SUCCESS;
}

kpack_error_t kp_relocatable_refill(const struct kp_source *src,
				    const struct kp_relocatable_fill *fill,
				    struct kp_relocatable *out, struct kpackx_error *why)
{
	struct object o = {.src = src, .fill = fill, .out = out};
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
