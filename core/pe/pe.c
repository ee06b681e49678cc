/* SPDX-License-Identifier: MIT */
/*
 * Reading PE files.
 *
 *   "MZ", at 60 u32 the offset of:  "PE\0\0", u16 machine, u16 sections, u32 time,
 *   u32 symbol table, u32 symbols, u16 bytes of the optional header, u16 flags;
 *   the optional header; and per section of 40 bytes:
 *   0 name, 8 bytes   8 u32 size in memory   12 u32 RVA   16 u32 bytes in the file
 *   20 u32 offset   32 u16 relocations   34 u16 lines   36 u32 flags
 *
 * A section's name is cut off, or "/N" stands for the text at N of the string table, which
 * follows the symbols, of 18 bytes each.  Of the optional header, PE32+ (u16 0x20b) has the
 * fields below; the data directories follow it, of u32 RVA, u32 size each.
 *
 * Base relocations are blocks: u32 RVA of a page, u32 bytes of the block, and for each word u16:
 * the type in the 4 upper bits, and where in the page.
 *
 * Source: Microsoft's PE format.
 */
#include "pe.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"

enum { HEADER = 24, SECTION = 40, SYMBOL = 18, OPTIONAL = 112, PE32_PLUS = 0x20b };
enum { FLAG_FIXED = 1, FLAG_LIBRARY = 0x2000 };
/* Types of base relocations. */
enum { RELOC_NONE = 0, RELOC_HIGHLOW = 3, RELOC_DIR64 = 10 };

bool kp_pe_probe(struct kp_span head)
{
	return kp_span_starts(head, "MZ", 2) && head.size >= 64 &&
	       kp_span_starts(kp_span_tail(head, kp_le32(head.data + 60) < head.size
							 ? kp_le32(head.data + 60)
							 : head.size),
			      "PE\0\0", 4);
}

bool kp_pe_host_probe(struct kp_span head)
{
	uint64_t at = kp_pe_probe(head) ? kp_le32(head.data + 60) : head.size;

	return kp_range_ok(head.size, at, HEADER + 2) &&
	       kp_le16(head.data + at + 20) >= OPTIONAL &&
	       kp_le16(head.data + at + HEADER) == PE32_PLUS;
}

kpack_error_t kp_pe_open(const struct kp_source *src, struct kp_pe *out,
			 struct kpackx_error *why)
{
	KP_AUTO(kp_pe) pe = {0};
	struct kp_window w;
	struct kp_span head;
	unsigned optional;
	const uint8_t *p;

	*out = pe;
	kp_window_init(&w, src);
	KP_TRY(kp_window_get(&w, 0, 64, &p, why));
	pe.at = kp_le32(p + 60);
	if (p[0] != 'M' || p[1] != 'Z' || !kp_range_ok(src->size, pe.at, HEADER))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "pe: not a PE file");
	KP_TRY(kp_window_get(&w, pe.at, HEADER, &p, why));
	if (memcmp(p, "PE\0\0", 4) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "pe: not a PE file");
	pe.machine = kp_le16(p + 4);
	pe.n = kp_le16(p + 6);
	pe.symbols = kp_le32(p + 12);
	pe.symbols_end = pe.symbols + (uint64_t)SYMBOL * kp_le32(p + 16);
	optional = kp_le16(p + 20);
	pe.fixed = kp_le16(p + 22) & FLAG_FIXED;
	pe.library = kp_le16(p + 22) & FLAG_LIBRARY;
	pe.table = pe.at + HEADER + optional;
	if (!kp_range_ok(src->size, pe.table, pe.n * SECTION))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "pe: the headers of %zu sections pass the end of the file",
			       pe.n);
	if (optional >= OPTIONAL) {
		if (optional > OPTIONAL + 8 * KP_PE_DIRECTORIES)
			optional = OPTIONAL + 8 * KP_PE_DIRECTORIES;
		KP_TRY(kp_window_get(&w, pe.at + HEADER, optional, &p, why));
		pe.wide = kp_le16(p) == PE32_PLUS;
	}
	if (pe.wide) {
		unsigned n = kp_le32(p + 108) < KP_PE_DIRECTORIES ? kp_le32(p + 108)
								  : KP_PE_DIRECTORIES;

		pe.base = kp_le64(p + 24);
		pe.section_align = kp_le32(p + 32);
		pe.file_align = kp_le32(p + 36);
		pe.image_size = kp_le32(p + 56);
		pe.headers_size = kp_le32(p + 60);
		pe.checksum = kp_le32(p + 64);
		for (unsigned i = 0; i < n && OPTIONAL + 8 * (i + 1) <= optional; i++) {
			pe.directories[i].rva = kp_le32(p + OPTIONAL + 8 * i);
			pe.directories[i].size = kp_le32(p + OPTIONAL + 8 * i + 4);
		}
	}
	KP_TRY(kp_new(&pe.sections, pe.n, "sections", why));
	for (size_t i = 0; i < pe.n; i++) {
		struct kp_pe_section *s = &pe.sections[i];
		uint64_t number = 0;

		KP_TRY(kp_window_get(&w, pe.table + SECTION * i, SECTION, &p, why));
		memcpy(s->name, p, 8);
		s->memory = kp_le32(p + 8);
		s->rva = kp_le32(p + 12);
		s->offset = kp_le32(p + 20);
		s->size = s->offset ? kp_le32(p + 16) : 0; /* zeros in memory */
		s->has_rows = kp_le16(p + 32) || kp_le16(p + 34);
		s->flags = kp_le32(p + 36);
		for (unsigned k = 1; *p == '/' && k < 8 && p[k] >= '0' && p[k] <= '9';
		     k++)
			number = 10 * number + (p[k] - '0');
		if (number && pe.symbols && pe.symbols_end + number < src->size &&
		    !kp_source_head(src, pe.symbols_end + number, (uint8_t *)s->name,
				    sizeof(s->name) - 1, &head, NULL))
			s->name[head.size] = '\0';
	}
	/* the string table begins with its size */
	if (pe.symbols && kp_range_ok(src->size, pe.symbols_end, 4)) {
		KP_TRY(kp_window_get(&w, pe.symbols_end, 4, &p, why));
		pe.symbols_end += kp_le32(p);
	}
	*out = pe;
	pe.sections = NULL;
	return KPACK_SUCCESS;
}

void kp_pe_fini(struct kp_pe *pe)
{
	free(pe->sections);
	*pe = (struct kp_pe){0};
}

uint32_t kp_pe_bytes(const struct kp_pe_section *s)
{
	/* old linkers leave the size in memory 0 */
	return s->memory && s->memory < s->size ? s->memory : s->size;
}

bool kp_pe_find(const struct kp_pe *pe, uint32_t rva, uint64_t size, uint64_t *offset)
{
	for (size_t i = 0; i < pe->n; i++) {
		const struct kp_pe_section *s = &pe->sections[i];

		if (rva < s->rva || !kp_range_ok(kp_pe_bytes(s), rva - s->rva, size))
			continue;
		*offset = (uint64_t)s->offset + (rva - s->rva);
		return true;
	}
	return false;
}

kpack_error_t kp_pe_each_reloc(const struct kp_source *src, const struct kp_pe *pe,
			       kp_pe_reloc_fn *fn, void *arg, struct kpackx_error *why)
{
	uint32_t left = pe->directories[KP_PE_RELOCS].size, block, page;
	struct kp_window w;
	const uint8_t *p;
	uint64_t at;

	if (!left)
		return KPACK_SUCCESS;
	if (!kp_pe_find(pe, pe->directories[KP_PE_RELOCS].rva, left, &at) ||
	    !kp_range_ok(src->size, at, left))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "pe: %" PRIu32 " bytes of base relocations at 0x%" PRIx32
			       " are not in a section and in the file",
			       left, pe->directories[KP_PE_RELOCS].rva);
	kp_window_init(&w, src);
	for (; left >= 8; at += block, left -= block) {
		KP_TRY(kp_window_get(&w, at, 8, &p, why));
		page = kp_le32(p);
		block = kp_le32(p + 4);
		/* zeros that align the end */
		if (!page && !block)
			break;
		if (block < 8 || block > left)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "pe: a block of %" PRIu32
				       " bytes of base relocations, of %" PRIu32,
				       block, left);
		for (uint32_t i = 8; i + 2 <= block; i += 2) {
			unsigned type, size;

			KP_TRY(kp_window_get(&w, at + i, 2, &p, why));
			type = kp_le16(p) >> 12;
			size = type == RELOC_DIR64 ? 8 : type == RELOC_HIGHLOW ? 4 : 0;
			if (type != RELOC_NONE)
				KP_TRY(fn(arg, page + (kp_le16(p) & 0xfff), size, why));
		}
	}
	return KPACK_SUCCESS;
}
