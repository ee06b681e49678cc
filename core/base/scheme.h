/* SPDX-License-Identifier: MIT */
/* The compression schemes of archives, and their names in tables of contents. */
#ifndef KP_CORE_BASE_SCHEME_H
#define KP_CORE_BASE_SCHEME_H

#include "core/rocm_kpack/kpack_types.h"
#include "span.h"

/* Archives of version 2: AMD's enumeration ends before it, and stays as AMD has it. */
#define KP_COMPRESSION_ZSTD_SHARED ((kpack_compression_t)2)

/* The highest level of zstd. */
enum { KP_LEVEL_MAX = 22 };

/*
 * The level of the scheme zstd-shared, if none is given.  Below it archives of rocBLAS's code
 * are 5 % larger; 9 takes half as much time again, and saves less than 1 %.
 */
enum { KP_SHARED_LEVEL = 7 };

/* The name of SCHEME, one of the three. */
static inline const char *kp_scheme_name(kpack_compression_t scheme)
{
	return scheme == KPACK_COMPRESSION_NOOP       ? "none"
	       : scheme == KP_COMPRESSION_ZSTD_SHARED ? "zstd-shared"
						      : "zstd-per-kernel";
}

/* false: NAME is the name of none. */
static inline bool kp_scheme_find(struct kp_span name, kpack_compression_t *scheme)
{
	for (int i = KPACK_COMPRESSION_NOOP; i <= (int)KP_COMPRESSION_ZSTD_SHARED; i++) {
		*scheme = (kpack_compression_t)i;
		if (kp_span_is(name, kp_scheme_name(*scheme)))
			return true;
	}
	return false;
}

#endif
