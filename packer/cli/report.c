/* SPDX-License-Identifier: MIT */
/*
 * Two kinds of text are printed.  Names - of files, of entries, from the command line - are any
 * bytes, and are escaped here.  Messages contain such names, which were escaped when the message
 * was made; only what could still confuse a terminal is escaped in them, and backslashes stay.
 *
 * There is one place for each kind of output, so that no command can forget this: text by
 * report_text and its relatives, JSON by put_json.
 */
#include "report.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/base/json.h"
#include "core/base/text.h"
#include "xalloc.h"

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

/* TEXT, which core made on the heap; the program ends if there was no memory for it. */
static char *made(char *text)
{
	if (!text)
		xalloc_fail(0);
	return text;
}

/* Most names have nothing to escape, and long ones are rare: only these cost an allocation. */
static void print_escaped(FILE *out, struct kp_span s)
{
	size_t plain = kp_text_plain(s);
	KP_AUTO_FREE char *text = NULL;
	char small[256];

	if (plain)
		fwrite(s.data, 1, plain, out);
	s = kp_span_tail(s, plain);
	/* each byte becomes at most four bytes */
	if (s.size < sizeof(small) / 4) {
		if (s.size)
			fputs(kp_text_escape(s, small, sizeof(small)), out);
		return;
	}
	text = made(kp_text_escape_new(s));
	fputs(text, out);
}

void report_number(uint64_t n)
{
	char digits[20]; /* of 2^64 - 1 */
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, stdout);
}

/* Names in TEXT are escaped already. */
static void print_message(FILE *out, const char *text)
{
	KP_AUTO_FREE char *shown = made(kp_message_escape_new(kp_span_str(text)));

	fputs(shown, out);
}

/* --- progress ------------------------------------------------------------------------ */

/* The bar is one line, drawn over itself ten times a second at most, and cleared at the end. */
enum { BAR_WIDTH = 30, BAR_INTERVAL_MS = 100 };

/* Changed under the lock of stderr, so that a message finds a whole line. */
static struct progress {
	const char *what;
	uint64_t total, done;
	struct timespec shown; /* when it was drawn last */
	bool on;
	bool drawn;
} progress;

static void draw_bar(void)
{
	char what[128], done[24], total[24], bar[BAR_WIDTH + 1] = "";
	double part = progress.done < progress.total
			      ? (double)progress.done / (double)progress.total
			      : 1.0;

	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < (int)(part * BAR_WIDTH) ? '#' : '.';
	fprintf(stderr, "\r%s [%s] %3d%% %s of %s\033[K",
		kp_text_escape(kp_span_str(progress.what), what, sizeof(what)), bar,
		(int)(part * 100), report_size(progress.done, done),
		report_size(progress.total, total));
	fflush(stderr);
	progress.drawn = true;
}

static void clear_bar(void)
{
	if (progress.drawn)
		fputs("\r\033[K", stderr);
	progress.drawn = false;
}

void progress_begin(const char *what, uint64_t total, bool wanted)
{
	progress = (struct progress){.what = what, .total = total};
	progress.on = wanted && isatty(STDERR_FILENO);
	if (progress.on)
		draw_bar();
}

void progress_add(uint64_t bytes)
{
	struct timespec now;

	if (!progress.on)
		return;
	flockfile(stderr);
	progress.done += bytes;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((now.tv_sec - progress.shown.tv_sec) * 1000 +
		    (now.tv_nsec - progress.shown.tv_nsec) / 1000000 >=
	    BAR_INTERVAL_MS) {
		progress.shown = now;
		draw_bar();
	}
	funlockfile(stderr);
}

void progress_end(void)
{
	clear_bar();
	progress.on = false;
}

/* --- lines --------------------------------------------------------------------------- */

static enum { COLOR_AUTO, COLOR_NEVER, COLOR_ALWAYS } color;

bool report_color(const char *when)
{
	static const char *const words[] = {"auto", "never", "always"};

	for (size_t i = 0; i < KP_COUNT(words); i++)
		if (strcmp(when, words[i]) == 0) {
			color = i;
			return true;
		}
	return false;
}

/* Print "LEAD: FILE: TEXT", without what is NULL. */
static void print_line(FILE *out, const char *lead, const char *file, const char *fmt,
		       va_list ap)
{
	size_t n = hidden && file ? strlen(hidden) : 0;
	KP_AUTO_FREE char *text = xvasprintf(fmt, ap);

	/* threads report too: a line stays whole */
	flockfile(out);
	if (lead) {
		clear_bar();
		if (color == COLOR_AUTO)
			color = isatty(STDERR_FILENO) && kp_text_colored() ? COLOR_ALWAYS
									   : COLOR_NEVER;
		fprintf(out,
			color == COLOR_ALWAYS ? "\033[1;31m%s:\033[m " : "%s: ", lead);
	}
	if (n && strncmp(file, hidden, n) == 0 && (file[n] == '/' || file[n] == '\0')) {
		print_escaped(out, kp_span_str(in_place));
		file += n;
	}
	if (file) {
		print_escaped(out, kp_span_str(file));
		fputs(": ", out);
	}
	print_message(out, text);
	putc('\n', out);
	funlockfile(out);
}

int report_error(const char *file, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	print_line(stderr, program, file, fmt, ap);
	va_end(ap);
	return EXIT_FAULT;
}

void report_line(const char *file, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(stdout, NULL, file, fmt, ap);
	va_end(ap);
}

int report_why(const char *file, const struct kpackx_error *why)
{
	return report_error(file, "%s",
			    why->text[0] ? why->text : kpackx_error_name(why->code));
}

void report_span(struct kp_span s)
{
	print_escaped(stdout, s);
}

void report_text(const char *s)
{
	print_escaped(stdout, kp_span_str(s));
}

void report_message(const char *text)
{
	print_message(stdout, text);
}

int report_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/* the stream is broken: report_error must not try to flush it again */
	report_error("standard output", "write: %s",
		     errno ? kp_errno_text(errno) : "not everything was written");
	return status ? status : EXIT_FAULT;
}

const char *report_size(uint64_t bytes, char out[24])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double n = (double)bytes;
	size_t u = 0;

	for (; n >= 1024 && u + 1 < KP_COUNT(units); u++)
		n /= 1024;
	snprintf(out, 24, u ? "%.1f %s" : "%.0f %s", n, units[u]);
	return out;
}

json_t *report_json_span(struct kp_span s)
{
	json_t *value = NULL;
	bool looks_escaped = false; /* has a backslash and three digits, below 0400 */
	KP_AUTO_FREE char *text = NULL;

	/*
	 * A reader replaces each backslash and three digits by a byte: a text that has these by itself
	 * is escaped as a whole.
	 */
	for (size_t i = 0; i + 3 < s.size; i++)
		looks_escaped |= s.data[i] == '\\' && (s.data[i + 1] & ~3) == '0' &&
				 (s.data[i + 2] & ~7) == '0' &&
				 (s.data[i + 3] & ~7) == '0';
	if (!looks_escaped)
		value = json_stringn(s.size ? (const char *)s.data : "", s.size);
	if (value)
		return value;
	/* it would be taken for an escape, or is not UTF-8 */
	text = made(kp_text_escape_new(s));
	return json_string(text);
}

json_t *report_json_text(const char *s)
{
	return report_json_span(kp_span_str(s));
}

/*
 * Write a part of JSON's text.  jansson escapes only ASCII's controls; all other
 * characters outside of ASCII are in strings, where an escape stands for the character.
 */
static int put_json(const char *text, size_t size, void *out)
{
	struct kp_span s = {(const uint8_t *)text, size};
	char escape[KP_JSON_ESCAPE_MAX];

	while (s.size) {
		size_t plain = 0, n = 1;
		uint32_t c = 0;

		while (plain < s.size && s.data[plain] < 0x7f)
			plain++;
		if (plain)
			fwrite(s.data, 1, plain, out);
		s = kp_span_tail(s, plain);
		if (!s.size)
			break;
		n = kp_text_char(s, &c);
		n = n ? n : 1;
		if (c && !kp_text_visible(c)) {
			kp_json_escape(c, escape);
			fputs(escape, out);
		} else {
			fwrite(s.data, 1, n, out);
		}
		s = kp_span_tail(s, n);
	}
	return 0;
}

void report_json_put(FILE *out, json_t *value, size_t flags)
{
	/* the callback cannot fail, so jansson lacks memory; report_finish reports a
	 * failed write */
	if (!value || json_dump_callback(value, put_json, out, flags | JSON_ENCODE_ANY))
		xalloc_fail(0);
	json_decref(value);
}

char *report_json_new(json_t *value, size_t flags)
{
	char *text = NULL;
	size_t size;
	FILE *out = xmemstream(&text, &size);

	report_json_put(out, value, flags);
	fclose(out);
	return text;
}

json_t *report_json_message(const char *text)
{
	KP_AUTO_FREE char *shown = made(kp_message_escape_new(kp_span_str(text)));

	return json_string(shown);
}

json_t *report_json_list(const char *const *texts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, report_json_text(texts[i]));
	return list;
}

void report_array_next(struct report_array *array)
{
	fputs(array->begun ? ",\n" : "[\n", stdout);
	array->begun = true;
}

void report_array_add(struct report_array *array, json_t *element)
{
	if (!element)
		xalloc_fail(0);
	report_array_next(array);
	report_json_put(stdout, element, JSON_COMPACT);
}

void report_array_end(const struct report_array *array)
{
	fputs(array->begun ? "\n]\n" : "[]\n", stdout);
}

void report_json(json_t *value)
{
	report_json_put(stdout, value, JSON_INDENT(1));
	putchar('\n');
}
