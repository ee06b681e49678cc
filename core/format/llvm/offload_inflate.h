/* SPDX-License-Identifier: MIT */
/* What follows the header of a compressed offload binary: zstd by its magic, else zlib. */
#ifndef KP_CORE_FORMAT_LLVM_OFFLOAD_INFLATE_H
#define KP_CORE_FORMAT_LLVM_OFFLOAD_INFLATE_H

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/sink.h"
#include "offload_binary.h"

/* Is BODY compressed with zstd? */
kpack_error_t kp_offload_is_zstd(const struct kp_source *body, bool *yes,
				 struct kpackx_error *why);

/*
 * Can BODY stand for what, with a header of HEADER bytes before it, has INFLATED ones?  Asked
 * before anything is allocated.
 */
kpack_error_t kp_offload_inflate_check(const struct kp_source *body, uint64_t header,
				       uint64_t inflated, struct kpackx_error *why);

/*
 * Decode BODY into exactly SIZE bytes.
 * DECOMPRESSION_FAILED: corrupt, or another size.  NOT_IMPLEMENTED: built without zlib.
 */
kpack_error_t kp_offload_inflate(const struct kp_source *body, uint8_t *out, size_t size,
				 struct kpackx_error *why);

/* The reverse, as LLVM calls the libraries.  The caller frees *OUT. */
kpack_error_t kp_offload_deflate(const struct kp_offload_form *form, struct kp_span body,
				 uint8_t **out, size_t *size, struct kpackx_error *why);

#endif
