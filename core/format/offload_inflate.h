/* SPDX-License-Identifier: MIT */
/*
 * The compressed part of an offload binary, after its header: zstd by its magic, else
 * zlib.
 */
#ifndef KP_CORE_FORMAT_LLVM_OFFLOAD_INFLATE_H
#define KP_CORE_FORMAT_LLVM_OFFLOAD_INFLATE_H

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/sink.h"
#include "offload_binary.h"

/* *YES becomes true if BODY is compressed with zstd. */
kpack_error_t kp_offload_is_zstd(const struct kp_source *body, bool *yes,
				 struct kpackx_error *why);

/*
 * Succeed if BODY can decode to INFLATED bytes less the HEADER bytes before it.  Called
 * before anything is allocated.  INVALID_FORMAT: impossible.
 */
kpack_error_t kp_offload_inflate_check(const struct kp_source *body, uint64_t header,
				       uint64_t inflated, struct kpackx_error *why);

/*
 * Decode BODY into exactly SIZE bytes.
 * DECOMPRESSION_FAILED: BODY is damaged, or decodes to another size.
 * NOT_IMPLEMENTED: zlib, in a build without it.
 */
kpack_error_t kp_offload_inflate(const struct kp_source *body, uint8_t *out, size_t size,
				 struct kpackx_error *why);

/* Compress BODY, calling the libraries as LLVM does.  The caller frees *OUT. */
kpack_error_t kp_offload_deflate(const struct kp_offload_form *form, struct kp_span body,
				 uint8_t **out, size_t *size, struct kpackx_error *why);

#endif
