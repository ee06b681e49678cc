/* SPDX-License-Identifier: MIT */
#include "report.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/text.h"
#include "packer/base/xalloc.h"

static const char *program = "kpack";

void report_set_program(const char *name)
{
	program = name;
}

const char *report_program(void)
{
	return program;
}

static const char *hidden, *in_place;

void report_in_place(const char *path, const char *shown)
{
	hidden = path;
	in_place = shown;
}

static void print_escaped(FILE *out, struct kp_span s)
{
	char small[256];
	char *text;

	/* each byte becomes at most four bytes */
	if (s.size < sizeof(small) / 4) {
		fputs(kp_text_escape(s, small, sizeof(small)), out);
		return;
	}
	text = kp_text_escape_new(s);
	fputs(text ? text : kp_text_escape(s, small, sizeof(small)), out);
	free(text);
}

/* Escape all but backslashes, so that names in TEXT are not escaped twice. */
static void print_message(FILE *out, const char *text)
{
	for (;;) {
		size_t n = strcspn(text, "\\");

		print_escaped(out, (struct kp_span){(const uint8_t *)text, n});
		text += n;
		if (*text == '\0')
			return;
		putc(*text++, out);
	}
}

static void print_file(FILE *out, const char *file)
{
	size_t n = hidden ? strlen(hidden) : 0;

	if (n && strncmp(file, hidden, n) == 0 && (file[n] == '/' || file[n] == '\0')) {
		print_escaped(out, kp_span_str(in_place));
		file += n;
	}
	print_escaped(out, kp_span_str(file));
	fputs(": ", out);
}

void report_error(const char *file, const char *fmt, ...)
{
	char small[512], *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text) {
		va_start(ap, fmt);
		vsnprintf(small, sizeof(small), fmt, ap);
		va_end(ap);
	}
	fflush(stdout);
	flockfile(stderr);
	fprintf(stderr, "%s: ", program);
	if (file)
		print_file(stderr, file);
	print_message(stderr, text ? text : small);
	putc('\n', stderr);
	funlockfile(stderr);
	free(text);
}

void report_why(const char *file, const struct kpackx_error *why)
{
	report_error(file, "%s", why->text[0] ? why->text : kpackx_error_name(why->code));
}

void report_span(struct kp_span s)
{
	print_escaped(stdout, s);
}

void report_text(const char *s)
{
	print_escaped(stdout, kp_span_str(s));
}

int report_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/* the stream is broken: report_error must not try to flush it again */
	report_error("standard output", "write: %s",
		     errno ? strerror(errno) : "not everything was written");
	return status ? status : 1;
}

const char *report_size(uint64_t bytes, char out[24])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double n = (double)bytes;
	size_t u = 0;

	for (; n >= 1024 && u + 1 < sizeof(units) / sizeof(units[0]); u++)
		n /= 1024;
	snprintf(out, 24, u ? "%.1f %s" : "%.0f %s", n, units[u]);
	return out;
}

json_t *report_json_span(struct kp_span s)
{
	json_t *value = json_stringn(s.size ? (const char *)s.data : "", s.size);
	char *text;

	if (value)
		return value;
	text = kp_text_escape_new(s);
	value = text ? json_string(text) : NULL;
	free(text);
	return value;
}

json_t *report_json_text(const char *s)
{
	return report_json_span(kp_span_str(s));
}

void report_array_add(struct report_array *array, json_t *element)
{
	if (!element)
		xalloc_fail(0);
	fputs(array->begun ? ",\n" : "[\n", stdout);
	array->begun = true;
	/* report_finish reports a failed write */
	if (json_dumpf(element, stdout, JSON_COMPACT) != 0 && !ferror(stdout))
		xalloc_fail(0);
	json_decref(element);
}

bool report_array_end(struct report_array *array)
{
	fputs(array->begun ? "\n]\n" : "[]\n", stdout);
	return true;
}

bool report_json(json_t *value)
{
	/* report_finish reports a failed write */
	if (!value || (json_dumpf(value, stdout, JSON_INDENT(1)) != 0 && !ferror(stdout)))
		xalloc_fail(0);
	putchar('\n');
	json_decref(value);
	return true;
}
