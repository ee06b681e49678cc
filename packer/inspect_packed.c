/* SPDX-License-Identifier: MIT */
#include "inspect_packed.h"
#include <inttypes.h>
#include "format/ccob.h"

kpack_error_t inspect_packed_read(const struct kp_source *src,
				  const struct kp_container *c,
				  const struct kp_payload *payload,
				  struct inspect_packed *out, struct kpackx_error *why)
{
	/* decoded bytes are in memory */
	struct kp_span bytes = {payload->source.mem, (size_t)payload->source.size};
	struct kp_ccob_form form;

	if (c->format != &kp_format_ccob)
		return KPACK_SUCCESS;
	KP_TRY(kp_ccob_form_read(src, c, &form, why));
	*out = (struct inspect_packed){
		.known = true,
		.version = form.version,
		.method = form.method == KP_CCOB_ZSTD ? "zstd" : "zlib",
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
