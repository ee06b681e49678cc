/* SPDX-License-Identifier: MIT */
/*
 * Windows programs and libraries (PE), as containers of the sections with device code, which
 * clang and nvcc name ".hip_fatbin" and ".nv_fatbin"; the names may be cut off.
 *
 * AMD's converter cuts the device code to less than a page, but leaves that: the end of the code,
 * where its beginning was.
 */
#include "core/base/alloc.h"
#include "core/pe/pe.h"
#include "format.h"

static kpack_error_t parse_pe(const struct kp_source *src, struct kp_container *c,
			      struct kp_containers *list, struct kpackx_error *why)
{
	KP_AUTO(kp_pe) pe = {0};

	KP_TRY(kp_pe_open(src, &pe, why));
	c->size = c->payload_size = src->size; /* installers append bytes */
	for (size_t i = 0; i < pe.n; i++) {
		const struct kp_pe_section *s = &pe.sections[i];
		bool hip = strncmp(s->name, KP_PE_FATBIN, 8) == 0;
		uint8_t bytes[32];
		struct kp_image *image;
		struct kp_span head;

		if ((!hip && strncmp(s->name, ".nv_fatb", 8) != 0) || !s->size)
			continue;
		if (hip && s->size < s->memory && s->offset < src->size &&
		    !kp_source_head(src, s->offset, bytes, sizeof(bytes), &head, NULL) &&
		    !kp_format_probe_hip(head))
			continue;
		KP_TRY(kp_containers_add_named(list, c, kp_span_str(s->name), s->offset,
					       s->size, &image, why));
		image->stream = true;
		strcpy(image->kind, hip ? "hip" : "cuda");
	}
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_pe = {
	.name = "pe",
	.probe = kp_pe_probe,
	.parse = parse_pe,
};
