/* SPDX-License-Identifier: MIT */
/*
 * All formats.  librocm_kpack does without this file and most of the formats: it reads
 * only .hip_fatbin.
 */
#include "format.h"

/* Formats with a longer magic first; text formats last. */
static const struct kp_format *const formats[] = {
	&kp_format_bundle,      &kp_format_ccob,    &kp_format_offload_binary,
	&kp_format_code_object, &kp_format_cubin,   &kp_format_host_elf,
	&kp_format_pe,          &kp_format_archive, &kp_format_fatbin,
	&kp_format_tileir,      &kp_format_bitcode, &kp_format_spirv,
	&kp_format_text_bundle, &kp_format_ptx,
};

const struct kp_format *kp_format_probe(struct kp_span head)
{
	for (size_t i = 0; i < KP_COUNT(formats); i++) {
		if (formats[i]->probe(head))
			return formats[i];
	}
	return NULL;
}

const char *kp_object_type(struct kp_span head)
{
	const struct kp_format *format = kp_format_probe(head);

	return format && format->type ? format->type : "co";
}

const char *kp_image_type(const struct kp_image *image, struct kp_span head)
{
	const struct kp_format *format = kp_format_probe(head);
	const char *kind = kp_pairs_find(&image->pairs, KP_PAIR_IMAGE_KIND);

	/* NVIDIA scrambles LTO-IR, so that its bytes have no magic */
	if (!format && kind && strcmp(kind, KP_LTO_IR) == 0)
		return "ltoir";
	return kp_object_type(head);
}

kpack_error_t kp_object_describe(const struct kp_source *src, struct kp_object *out,
				 struct kpackx_error *why)
{
	uint8_t bytes[KP_HEAD_SIZE];
	const struct kp_format *format;
	struct kp_span head;
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct kp_object){.type = "co"};
	KP_TRY(kp_source_head(src, 0, bytes, sizeof(bytes), &head, why));
	format = kp_format_probe(head);
	if (!format || !format->type)
		return KPACK_SUCCESS;
	out->format = format;
	out->type = format->type;
	if (format->describe)
		err = format->describe(src, out, why);
	if (err)
		kp_object_fini(out);
	return err;
}
