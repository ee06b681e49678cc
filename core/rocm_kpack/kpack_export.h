/* SPDX-License-Identifier: MIT */
/* Symbol visibility of the public calls. */
#ifndef ROCM_KPACK_KPACK_EXPORT_H
#define ROCM_KPACK_KPACK_EXPORT_H

#if defined(ROCM_KPACK_STATIC)
#define KPACK_API
#else
#define KPACK_API __attribute__((visibility("default")))
#endif

#endif
