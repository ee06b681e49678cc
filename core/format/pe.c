/* SPDX-License-Identifier: MIT */
/*
 * Windows programs and libraries (PE), as containers of the sections with device code.
 *
 *   "MZ", at 60 u32 the offset of:  "PE\0\0", u16 machine, u16 sections,
 *   u32 time, u32 symbol table, u32 symbols, u16 bytes of the optional header, u16 flags,
 *   the optional header, and per section of 40 bytes:
 *   0 name, 8 bytes   8 u32 size in memory   16 u32 bytes in the file   20 u32 offset
 *
 * A longer name is cut off (".hip_fat", ".nv_fatb"), or "/N" stands for the text at N of
 * the string table, which follows the symbols, of 18 bytes each.
 *
 * Source: Microsoft's PE format; clang names the sections.
 */
#include <stdlib.h>
#include "format.h"

enum { HEADER = 24, SECTION = 40, SYMBOL = 18 };

static bool probe_pe(struct kp_span head)
{
	return kp_span_starts(head, "MZ", 2) && head.size >= 64 &&
	       kp_span_starts(kp_span_tail(head, kp_le32(head.data + 60) < head.size
							 ? kp_le32(head.data + 60)
							 : head.size),
			      "PE\0\0", 4);
}

static kpack_error_t parse_pe(const struct kp_source *src, struct kp_container *c,
			      struct kp_containers *list, struct kpackx_error *why)
{
	uint64_t at, strings, symbols;
	struct kp_window w;
	const uint8_t *p;
	unsigned n;

	kp_window_init(&w, src);
	KP_TRY(kp_window_get(&w, 0, 64, &p, why));
	at = kp_le32(p + 60);
	KP_TRY(kp_window_get(&w, at, HEADER, &p, why));
	n = kp_le16(p + 6);
	symbols = kp_le32(p + 12);
	strings = symbols ? symbols + (uint64_t)SYMBOL * kp_le32(p + 16) : 0;
	at += HEADER + kp_le16(p + 20);
	c->size = c->payload_size = src->size; /* installers append bytes */
	for (unsigned i = 0; i < n; i++) {
		struct kp_image *image;
		struct kp_span head;
		char name[17] = "";
		uint64_t number = 0;
		bool hip;

		KP_TRY(kp_window_get(&w, at + (uint64_t)SECTION * i, SECTION, &p, why));
		for (unsigned k = 1; *p == '/' && k < 8 && p[k] >= '0' && p[k] <= '9';
		     k++)
			number = 10 * number + (p[k] - '0');
		if (!number || !strings || strings + number >= src->size ||
		    kp_source_head(src, strings + number, (uint8_t *)name, 16, &head,
				   NULL))
			memcpy(name, p, 8);
		hip = strncmp(name, ".hip_fat", 8) == 0;
		if ((!hip && strncmp(name, ".nv_fatb", 8) != 0) || !kp_le32(p + 16))
			continue;
		KP_TRY(kp_containers_add_named(list, c, kp_span_str(name),
					       kp_le32(p + 20), kp_le32(p + 16), &image,
					       why));
		image->stream = true;
		strcpy(image->kind, hip ? "hip" : "cuda");
	}
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_pe = {
	.name = "pe",
	.probe = probe_pe,
	.parse = parse_pe,
};
