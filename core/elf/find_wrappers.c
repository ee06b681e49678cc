/* SPDX-License-Identifier: MIT */
/*
 * Compilers put wrappers into .hipFatBinSegment, which may have nothing else.  A linker
 * script can merge that section into another one; then every aligned word of data may
 * begin a wrapper, and only its pointer decides.  The pointer is known after relocation,
 * so words that look like wrappers are kept until then: at most KP_WRAPPERS_MAX, found in
 * one pass over the file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "host_internal.h"
#include "core/base/bounds.h"
#include "core/base/alloc.h"

static kpack_error_t add_wrapper(struct kp_elf_reader *r, const GElf_Shdr *sh,
				 uint64_t off, struct kp_wrapper fields,
				 struct kpackx_error *why)
{
	struct kp_elf *out = r->out;

	if (out->n_wrappers == KP_WRAPPERS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more than %d wrappers, or words that look like ones",
			       KP_WRAPPERS_MAX);
	if (!kp_grow(&out->wrappers, out->n_wrappers, &r->wrappers_cap,
		     sizeof(*out->wrappers)))
		return kp_fail_memory(why, out->n_wrappers * sizeof(*out->wrappers),
				      "wrappers");
	out->wrappers[out->n_wrappers++] = (struct kp_elf_wrapper){
		.fields = fields,
		.vaddr = sh->sh_addr + off,
		.offset = sh->sh_offset + off,
		.source = KP_POINTER_IN_PLACE,
		.target = fields.pointer,
	};
	return KPACK_SUCCESS;
}

/* ---- .hipFatBinSegment ---- */

static kpack_error_t fail_word(uint64_t offset, const uint8_t *p, size_t n,
			       struct kpackx_error *why)
{
	char hex[3 * 8 + 1] = "";

	for (size_t i = 0; i < n; i++)
		snprintf(hex + 3 * i, 4, " %02x", p[i]);
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "elf: .hipFatBinSegment: no wrapper at file offset %" PRIu64 ":%s",
		       offset, hex);
}

/* Read the wrappers, and skip zero words that a sanitizer puts between them. */
static kpack_error_t read_segment(struct kp_elf_reader *r, struct kpackx_error *why)
{
	static const uint8_t zero[8];
	const GElf_Shdr *sh = &r->segment.header;
	struct kp_wrapper fields;
	struct kp_window window;
	uint64_t off = 0, left;
	const uint8_t *p;

	kp_window_init(&window, &r->src);
	while ((left = sh->sh_size - off)) {
		size_t n = left < KP_WRAPPER_SIZE ? (size_t)left : KP_WRAPPER_SIZE;
		size_t word = n < 8 ? n : 8;

		KP_TRY(kp_window_get(&window, sh->sh_offset + off, n, &p, why));
		if (memcmp(p, zero, word) == 0) {
			off += word;
			continue;
		}
		if (n < KP_WRAPPER_SIZE || !kp_wrapper_decode(p, &fields))
			return fail_word(sh->sh_offset + off, p, word, why);
		KP_TRY(add_wrapper(r, sh, off, fields, why));
		off += KP_WRAPPER_SIZE;
	}
	return KPACK_SUCCESS;
}

/* ---- other sections ---- */

/* Object files have no final addresses, and debug information files have no data. */
static bool must_scan(const struct kp_elf_reader *r)
{
	return !r->relocatable &&
	       (r->out->has_fatbin || (r->fatbin.index && r->marker.index));
}

static bool can_have_wrappers(const struct kp_elf_reader *r, size_t index,
			      const GElf_Shdr *sh)
{
	return index != r->fatbin.index && sh->sh_type == SHT_PROGBITS &&
	       (sh->sh_flags & SHF_ALLOC) && !(sh->sh_flags & SHF_EXECINSTR);
}

static kpack_error_t scan_section(struct kp_elf_reader *r, size_t index,
				  const GElf_Shdr *sh, struct kpackx_error *why)
{
	struct kp_wrapper fields;
	struct kp_window window;
	const uint8_t *p;

	if (!can_have_wrappers(r, index, sh))
		return KPACK_SUCCESS;
	KP_TRY(kp_elf_check_section(r, "data", sh, why));
	KP_TRY(kp_elf_account(r, "data", sh, &r->scanned_bytes, why));
	kp_window_init(&window, &r->src);
	for (uint64_t off = -sh->sh_addr & 7;
	     kp_range_ok(sh->sh_size, off, KP_WRAPPER_SIZE); off += 8) {
		KP_TRY(kp_window_get(&window, sh->sh_offset + off, KP_WRAPPER_SIZE, &p,
				     why));
		if (kp_wrapper_decode(p, &fields))
			KP_TRY(add_wrapper(r, sh, off, fields, why));
	}
	return KPACK_SUCCESS;
}

static int compare_vaddr(const void *a, const void *b)
{
	const struct kp_elf_wrapper *x = a, *y = b;

	return KP_ORDER(x->vaddr, y->vaddr);
}

kpack_error_t kp_elf_find_wrappers(struct kp_elf_reader *r, struct kpackx_error *why)
{
	struct kp_elf *out = r->out;

	if (r->segment.index)
		return read_segment(r, why);
	if (!must_scan(r))
		return KPACK_SUCCESS;
	out->wrappers_scanned = true;
	KP_TRY(kp_elf_each_section(r, scan_section, why));
	if (out->n_wrappers)
		qsort(out->wrappers, out->n_wrappers, sizeof(*out->wrappers),
		      compare_vaddr);
	return KPACK_SUCCESS;
}

/* ---- targets of the pointers ---- */

static bool is_inside(uint64_t target, uint64_t vaddr, uint64_t size)
{
	return target >= vaddr && target - vaddr < size;
}

static bool is_wrapper(const struct kp_elf_reader *r, const struct kp_elf_wrapper *w)
{
	const struct kp_elf *out = r->out;
	const GElf_Shdr *marker = &r->marker.header;

	if (w->source == KP_POINTER_UNRESOLVED)
		return false;
	if (w->fields.magic == KP_WRAPPER_HIPK)
		return r->marker.index &&
		       is_inside(w->target, marker->sh_addr, marker->sh_size);
	return out->has_fatbin &&
	       is_inside(w->target, out->fatbin_vaddr, out->fatbin_size);
}

void kp_elf_drop_strays(struct kp_elf_reader *r)
{
	struct kp_elf *out = r->out;
	uint64_t end = 0; /* of the last wrapper kept; wrappers share no bytes */
	size_t n = 0;

	for (size_t i = 0; i < out->n_wrappers; i++) {
		const struct kp_elf_wrapper w = out->wrappers[i];

		if (w.vaddr < end || !is_wrapper(r, &w))
			continue;
		end = w.vaddr + KP_WRAPPER_SIZE;
		out->wrappers[n++] = w;
	}
	out->n_wrappers = n;
	if (out->wrappers)
		out->wrappers = kp_large_trim(out->wrappers, n * sizeof(*out->wrappers));
}
