/* SPDX-License-Identifier: MIT */
/*
 * Lines of ROCM_KPACK_DEBUG: "kpack: TEXT" on stderr, one write each.  AMD's users ask
 * for them by that variable; nothing else in core prints.
 */
#ifndef KP_TRACE_H
#define KP_TRACE_H

#include <stdbool.h>

/* Print when ON.  Names in the text must be escaped; a line is cut at 1 KiB. */
void kp_trace(bool on, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
