/* SPDX-License-Identifier: MIT */
/* Offload binaries in LLVM bitcode: constants of a host module that is linked later. */
#ifndef KP_CORE_FORMAT_LLVM_BITCODE_EMBEDDED_H
#define KP_CORE_FORMAT_LLVM_BITCODE_EMBEDDED_H

#include "core/base/errors.h"
#include "core/base/span.h"

/*
 * Call FOUND, in order, for each byte array among the constants of the modules in CODE -
 * bitcode, in a wrapper or not - that begins like an offload binary.  The bytes stay
 * valid until FOUND returns.
 * INVALID_FORMAT: the bitcode is damaged.  Otherwise FOUND's error.
 */
kpack_error_t kp_bitcode_embedded(struct kp_span code,
				  kpack_error_t (*found)(void *arg, struct kp_span bytes,
							 struct kpackx_error *why),
				  void *arg, struct kpackx_error *why);

#endif
