/* SPDX-License-Identifier: MIT */
#include "trace.h"
#include <sys/uio.h>
#include <unistd.h>

#define PREFIX "kpack: "

void kp_trace_line(const struct kp_line *line)
{
	struct iovec parts[] = {
		{PREFIX, sizeof(PREFIX) - 1},
		{(void *)line->text, line->used},
		{"\n", 1},
	};

	/* a closed stderr is not an error */
	if (writev(STDERR_FILENO, parts, 3) < 0)
		return;
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
