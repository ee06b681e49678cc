/* SPDX-License-Identifier: MIT */
#include "line.h"
#include <stdio.h>
#include <string.h>
#include "core/base/text.h"

void kp_line_add_args(struct kp_line *line, const char *fmt, va_list ap)
{
	size_t room = sizeof(line->text) - line->used;
	int n = vsnprintf(line->text + line->used, room, fmt, ap);

	if (n > 0)
		line->used += (size_t)n < room ? (size_t)n : room - 1;
}

void kp_line_add(struct kp_line *line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	kp_line_add_args(line, fmt, ap);
	va_end(ap);
}

void kp_line_add_name(struct kp_line *line, const char *name)
{
	char *at = line->text + line->used;

	kp_text_escape(kp_span_str(name), at, sizeof(line->text) - line->used);
	line->used += strlen(at);
}
