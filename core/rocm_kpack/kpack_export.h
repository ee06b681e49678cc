/* SPDX-License-Identifier: MIT */
/*
 * Symbol visibility of the public calls, kpack_* and kpackx_*.  ROCM_KPACK_STATIC is for
 * programs that contain the static library and shall not export it.  ROCM_KPACK_EXPORTS,
 * which builds of AMD's library define, makes no difference outside Windows.
 */
#ifndef ROCM_KPACK_KPACK_EXPORT_H
#define ROCM_KPACK_KPACK_EXPORT_H

#if defined(ROCM_KPACK_STATIC)
#define KPACK_API
#else
#define KPACK_API __attribute__((visibility("default")))
#endif

#endif
