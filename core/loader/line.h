/* SPDX-License-Identifier: MIT */
/* A line of text that is composed of parts; text that exceeds its room is cut off. */
#ifndef KP_CORE_LOADER_LINE_H
#define KP_CORE_LOADER_LINE_H

#include <stdarg.h>
#include <stddef.h>

/* With a prefix and a newline it fits into one atomic pipe write (PIPE_BUF, 4096). */
enum { KP_LINE_MAX = 4000 };

/* Initialised by {.used = 0}: the text is "". */
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

#endif
