/* SPDX-License-Identifier: MIT */
/* What is read from modules of LLVM's bitcode. */
#ifndef KP_CORE_FORMAT_BITCODE_H
#define KP_CORE_FORMAT_BITCODE_H

#include "core/base/errors.h"
#include "core/base/file.h"

/*
 * Call FOUND, in order, for each byte array among the constants of the modules in CODE -
 * bitcode, in a wrapper or not - that begins like an offload binary: linkers of host
 * modules read them.  The bytes stay valid until FOUND returns.
 * INVALID_FORMAT: the bitcode is damaged.  Otherwise FOUND's error.
 */
kpack_error_t kp_bitcode_embedded(struct kp_span code,
				  kpack_error_t (*found)(void *arg, struct kp_span bytes,
							 struct kpackx_error *why),
				  void *arg, struct kpackx_error *why);

/*
 * Call FOUND for the name of each global symbol that SRC defines, in the order of the
 * symbol table at its end.
 * INVALID_FORMAT: SRC cannot be read.  Otherwise FOUND's error.
 */
kpack_error_t kp_bitcode_symbols(const struct kp_source *src,
				 kpack_error_t (*found)(void *arg, struct kp_span name,
							struct kpackx_error *why),
				 void *arg, struct kpackx_error *why);

#endif
