/* SPDX-License-Identifier: MIT */
#include "packed.h"
#include <inttypes.h>
#include "core/format/ccob.h"
#include "core/format/offload_binary.h"

static kpack_error_t read_ccob(const struct kp_source *src, const struct kp_container *c,
			       const struct kp_payload *payload,
			       struct inspect_packed *out, struct kpackx_error *why)
{
	/* decoded bytes are in memory */
	struct kp_span bytes = {payload->source.mem, (size_t)payload->source.size};
	struct kp_ccob_form form;

	KP_TRY(kp_ccob_form_read(src, c, &form, why));
	*out = (struct inspect_packed){
		.version = form.version,
		.method = form.method == KP_CCOB_ZSTD ? "zstd" : "zlib",
		.has_hash = true,
		.hash = form.hash,
		.hash_ok = form.hash == kp_ccob_hash(bytes),
	};
	if (out->hash_ok)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "ccob at offset %" PRIu64
		       ": the content does not match the hash %016" PRIx64,
		       c->offset, form.hash);
}

static kpack_error_t read_offload_binary(const struct kp_source *src,
					 const struct kp_container *c,
					 struct inspect_packed *out,
					 struct kpackx_error *why)
{
	static const char *const methods[] = {
		[KP_OFFLOAD_ZSTD] = "zstd", [KP_OFFLOAD_ZLIB] = "zlib"};
	struct kp_offload_form form;

	KP_TRY(kp_offload_form_read(src, c, &form, why));
	*out = (struct inspect_packed){
		.version = form.version,
		.method = methods[form.method],
	};
	return KPACK_SUCCESS;
}

kpack_error_t inspect_packed_read(const struct kp_source *src,
				  const struct kp_container *c,
				  const struct kp_payload *payload,
				  struct inspect_packed *out, struct kpackx_error *why)
{
	if (c->format == &kp_format_ccob)
		return read_ccob(src, c, payload, out, why);
	if (c->format == &kp_format_offload_binary)
		return read_offload_binary(src, c, out, why);
	return KPACK_SUCCESS;
}
