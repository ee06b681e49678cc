/* SPDX-License-Identifier: MIT */
/*
 * Symbol visibility of the public calls, kpack_* and kpackx_*.  Define ROCM_KPACK_STATIC
 * in programs that link the static library and must not export its symbols.
 * ROCM_KPACK_EXPORTS, which builds of AMD's library define, has no effect outside
 * Windows.
 */
#ifndef ROCM_KPACK_KPACK_EXPORT_H
#define ROCM_KPACK_KPACK_EXPORT_H

#if defined(ROCM_KPACK_STATIC)
#define KPACK_API
#else
#define KPACK_API __attribute__((visibility("default")))
#endif

#endif
