/* SPDX-License-Identifier: MIT */
/*
 * A line is composed in memory and written with one call, so that lines of several threads, and of
 * several processes with one stderr, do not mix.  Not with stdio: the program may have closed or
 * locked its streams, and a library should not flush them.
 */
#include "trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

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

void kp_line_print(const char *prefix, const struct kp_line *line)
{
	struct iovec parts[] = {
		{(void *)prefix, strlen(prefix)},
		{(void *)line->text, line->used},
		{"\n", 1},
	};

	/* a closed stderr is not an error */
	if (writev(STDERR_FILENO, parts, 3) < 0)
		return;
}

void kp_trace_line(const struct kp_line *line)
{
	kp_line_print("kpack: ", line);
}

void kp_trace(bool on, const char *fmt, ...)
{
	struct kp_line line;
	va_list ap;

	if (!on)
		return;
	line.used = 0;
	va_start(ap, fmt);
	kp_line_add_args(&line, fmt, ap);
	va_end(ap);
	kp_trace_line(&line);
}

void kp_trace_name(bool on, const char *what, const char *name, const char *text)
{
	struct kp_line line;

	if (!on)
		return;
	line.used = 0;
	kp_line_add(&line, "%s: ", what);
	kp_line_add_name(&line, name);
	if (text)
		kp_line_add(&line, ": %s", text);
	kp_trace_line(&line);
}
