/* SPDX-License-Identifier: MIT */
/*
 * Lines of ROCM_KPACK_DEBUG: "kpack: TEXT" on stderr, one write per line.  AMD's users
 * enable them with that variable; nothing else in core prints.
 */
#ifndef KP_CORE_LOADER_TRACE_H
#define KP_CORE_LOADER_TRACE_H

#include <stdbool.h>
#include "line.h"

/* Print a line if ON.  Names in the text must be escaped. */
void kp_trace(bool on, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print "WHAT: NAME: TEXT" if ON; NAME is escaped here, TEXT may be NULL. */
void kp_trace_name(bool on, const char *what, const char *name, const char *text);

/* Print LINE. */
void kp_trace_line(const struct kp_line *line);

#endif
