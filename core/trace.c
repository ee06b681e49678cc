/* SPDX-License-Identifier: MIT */
#include "trace.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "kpack: "

void kp_trace(bool on, const char *fmt, ...)
{
	char line[1024] = PREFIX;
	size_t used = strlen(PREFIX);
	va_list ap;

	if (!on)
		return;
	va_start(ap, fmt);
	vsnprintf(line + used, sizeof(line) - 1 - used, fmt, ap);
	va_end(ap);
	used = strlen(line);
	line[used] = '\n';
	/* a closed stderr is nobody's fault here */
	if (write(STDERR_FILENO, line, used + 1) < 0)
		return;
}
