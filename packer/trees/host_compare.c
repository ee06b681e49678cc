/* SPDX-License-Identifier: MIT */
#include "host_compare.h"
#include <inttypes.h>
#include <stdlib.h>
#include "host_dynamic.h"
#include "host_hash.h"
#include "host_moves.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

/* Bytes that are compared at once, and bytes of context around them. */
#define PIECE 65536
#define MARGIN (HOST_HASH_PREFIX_MAX + HOST_HASH_SIZE + 1)

/* One section, in both files. */
struct piece {
	uint8_t a[PIECE + 2 * MARGIN], b[PIECE + 2 * MARGIN];
};

struct hosts {
	struct host_sections a, b;
	struct host_moves moves;
	bool order; /* dynamic symbols have the same numbers */
	struct piece *piece;
	struct host_verdict *out;
};

/* --- one section ---------------------------------------------------------------------------- */

/* Find the first difference in SHOWN between FROM and END that host_moves_explain cannot
 * explain. */
static bool find_difference(const struct hosts *h, const struct host_bytes *shown,
			    size_t from, size_t end, size_t *at)
{
	for (size_t i = from; i < end;) {
		size_t behind;

		if (shown->a.data[i] == shown->b.data[i]) {
			i++;
			continue;
		}
		*at = i;
		if (!host_moves_explain(&h->moves, shown, i, &behind))
			return true;
		i = behind;
	}
	return false;
}

static kpack_error_t compare_piece(struct hosts *h, const struct kp_section *section,
				   const struct kp_source *a, const struct kp_source *b,
				   uint64_t offset, struct kpackx_error *why)
{
	struct piece *p = h->piece;
	uint64_t from = offset > MARGIN ? offset - MARGIN : 0;
	uint64_t left = a->size - from, most = offset - from + PIECE + MARGIN;
	size_t size = (size_t)(left < most ? left : most), at;
	size_t end = (size_t)(offset - from) + PIECE;
	struct host_bytes shown = {
		{p->a, size}, {p->b, size}, from, section->flags & SHF_EXECINSTR};

	KP_TRY(kp_source_read(a, from, p->a, size, why));
	KP_TRY(kp_source_read(b, from, p->b, size, why));
	if (memcmp(p->a, p->b, size) != 0 &&
	    find_difference(h, &shown, (size_t)(offset - from), end < size ? end : size,
			    &at))
		host_differs(h->out, "section %s: byte %" PRIu64 " differs",
			     section->name, from + at);
	return KPACK_SUCCESS;
}

static kpack_error_t compare_bytes(struct hosts *h, size_t i, struct kpackx_error *why)
{
	struct kp_source a = host_section_source(&h->a, &h->a.items[i]);
	struct kp_source b = host_section_source(&h->b, &h->b.items[i]);

	for (uint64_t at = 0; at < a.size && h->out->relation == HOST_SAME; at += PIECE)
		KP_TRY(compare_piece(h, &h->a.items[i], &a, &b, at, why));
	return KPACK_SUCCESS;
}

/*
 * Whether the bytes of section S are not compared here: host_dynamic_compare compared
 * them, or they depend on the order of symbols, or they are wrappers, which were counted.
 */
static bool is_compared_otherwise(const struct hosts *h, const struct kp_section *s)
{
	static const uint32_t always[] = {SHT_DYNSYM,   SHT_DYNAMIC,    SHT_HASH,
					  SHT_GNU_HASH, SHT_GNU_versym, SHT_RELR};
	static const uint32_t ordered[] = {SHT_RELA, SHT_REL, SHT_GNU_verneed,
					   SHT_GNU_verdef};

	for (size_t i = 0; i < KP_COUNT(always); i++)
		if (s->type == always[i])
			return true;
	for (size_t i = 0; i < KP_COUNT(ordered); i++)
		if (s->type == ordered[i])
			return !h->order;
	return strcmp(s->name, ".dynstr") == 0 ||
	       strcmp(s->name, ".hipFatBinSegment") == 0;
}

/* --- all sections --------------------------------------------------------------------------- */

static void compare_header(struct hosts *h, const struct kp_section *a,
			   const struct kp_section *b)
{
	char x[64], y[64];

	kp_text_escape(kp_span_str(a->name), x, sizeof(x));
	kp_text_escape(kp_span_str(b->name), y, sizeof(y));
	if (strcmp(a->name, b->name) != 0)
		host_differs(h->out, "section %s stands where the other has %s", x, y);
	else if (a->type != b->type || a->flags != b->flags)
		host_differs(h->out, "section %s: its type or flags differ", x);
	else if (a->size != b->size && a->type != SHT_RELR)
		host_differs(h->out, "section %s: %" PRIu64 " bytes, and %" PRIu64, x,
			     a->size, b->size);
}

static void compare_headers(struct hosts *h)
{
	if (h->a.stack_executable != h->b.stack_executable)
		host_differs(h->out, "only one needs an executable stack");
	for (size_t i = 0; i < h->a.count && i < h->b.count; i++)
		compare_header(h, &h->a.items[i], &h->b.items[i]);
	if (h->a.count != h->b.count)
		host_differs(h->out, "%zu sections, and %zu", h->a.count, h->b.count);
}

static kpack_error_t compare_contents(struct hosts *h, struct kpackx_error *why)
{
	KP_TRY(host_dynamic_compare(&h->a, &h->b, &h->order, h->out, why));
	for (size_t i = 0; i < h->a.count && h->out->relation == HOST_SAME; i++)
		if (!is_compared_otherwise(h, &h->a.items[i]))
			KP_TRY(compare_bytes(h, i, why));
	return KPACK_SUCCESS;
}

static kpack_error_t compare_sections(struct hosts *h, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	compare_headers(h);
	if (h->out->relation != HOST_SAME)
		return KPACK_SUCCESS;
	if (host_moves_make(&h->a, &h->b, &h->moves))
		err = compare_contents(h, why);
	else
		host_differs(h->out, "sections: more than %d distances between them",
			     HOST_MOVES_MAX);
	host_moves_fini(&h->moves);
	return err;
}

static bool compare_facts(const struct binary *a, const struct binary *b,
			  struct host_verdict *out)
{
	const struct kp_elf *x = &a->fat.elf, *y = &b->fat.elf;

	if (x->n_wrappers != y->n_wrappers) {
		host_differs(out, "%zu wrappers, and %zu", x->n_wrappers, y->n_wrappers);
		out->relation = HOST_WRAPPERS;
	}
	if (x->machine != y->machine || x->type != y->type)
		host_differs(out, "ELF: type %u for machine %u, and %u for %u", x->type,
			     x->machine, y->type, y->machine);
	return out->relation == HOST_SAME;
}

kpack_error_t host_compare(const struct binary *a, const struct binary *b,
			   struct host_verdict *out, struct kpackx_error *why)
{
	struct hosts h = {.out = out};
	kpack_error_t err;

	*out = (struct host_verdict){HOST_SAME, ""};
	if (a->fat.kind != b->fat.kind ||
	    (a->fat.kind != KP_FATBIN_CONVERTED && a->fat.kind != KP_FATBIN_ELF))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "one is %s, the other %s", binary_kind(a), binary_kind(b));
	if (!compare_facts(a, b, out))
		return KPACK_SUCCESS;
	h.piece = xmalloc(sizeof(*h.piece));
	err = host_sections_read(a, &h.a, why);
	if (!err)
		err = host_sections_read(b, &h.b, why);
	if (!err)
		err = compare_sections(&h, why);
	host_sections_fini(&h.a);
	host_sections_fini(&h.b);
	free(h.piece);
	return err;
}
