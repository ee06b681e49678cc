/* SPDX-License-Identifier: MIT */
/*
 * Lines of ROCM_KPACK_DEBUG: "kpack: TEXT" on stderr, one write per line.  AMD's users
 * enable them with that variable; nothing else in core prints.
 */
#ifndef KP_CORE_LOADER_TRACE_H
#define KP_CORE_LOADER_TRACE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* With a prefix and a newline a line fits into one atomic pipe write (PIPE_BUF, 4096). */
enum { KP_LINE_MAX = 4000 };

/*
 * A line that is composed of parts; text that exceeds its room is cut off.  Initialised by
 * {.used = 0}: the text is "".
 */
struct kp_line {
	size_t used;
	char text[KP_LINE_MAX + 1];
};

void kp_line_add(struct kp_line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void kp_line_add_args(struct kp_line *line, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Append a name, escaped for printing by kp_text_escape. */
void kp_line_add_name(struct kp_line *line, const char *name);

/* Print the line after PREFIX, in one write. */
void kp_line_print(const char *prefix, const struct kp_line *line);
void kp_trace_line(const struct kp_line *line);
/* Print a line if ON.  Names in the text must be escaped. */
void kp_trace(bool on, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print "WHAT: NAME: TEXT" if ON; NAME is escaped here, TEXT may be NULL. */
void kp_trace_name(bool on, const char *what, const char *name, const char *text);

#endif
