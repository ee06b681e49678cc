/* SPDX-License-Identifier: MIT */
/*
 * Every line is made in a buffer, escaped as a whole, and written by one call, so that
 * lines of several threads stay whole and no part that comes from an archive controls a
 * terminal.
 */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "log.h"
#include "core/base/text.h"

static int shown = LOG_WARNING;
static bool use_syslog, colored;

void log_begin(void)
{
	colored = isatty(STDERR_FILENO) && kp_text_colored();
}

void log_level(int priority)
{
	shown = priority;
}

void log_to_syslog(void)
{
	openlog("kpackfs", LOG_PID, LOG_DAEMON);
	use_syslog = true;
}

void log_print(int priority, const char *fmt, ...)
{
	/* enough for a path and the paths of two archives */
	char line[8192], clean[8192];
	const char *color = "";
	va_list args;

	if (priority > shown)
		return;
	if (colored && priority <= LOG_WARNING)
		color = priority <= LOG_ERR ? "\033[1;31m" : "\033[1;33m";
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	kp_message_escape(kp_span_str(line), clean, sizeof(clean));
	/* One write per line, so that lines of several threads stay whole. */
	if (use_syslog)
		syslog(priority, "%s", clean);
	else
		fprintf(stderr, "%skpackfs:%s %s\n", color, *color ? "\033[m" : "",
			clean);
}

void log_about(int priority, const char *file, const char *text)
{
	char name[512], words[512];

	log_print(priority, "%s: %s",
		  kp_text_escape(kp_span_str(file), name, sizeof(name)),
		  kp_message_escape(kp_span_str(text), words, sizeof(words)));
}
