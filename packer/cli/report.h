/* SPDX-License-Identifier: MIT */
/*
 * The program's output: messages and progress on stderr, text and JSON on stdout; rows.h makes
 * both from one description.  Names from archives and the command line never reach a terminal
 * unescaped.
 */
#ifndef PACKER_CLI_REPORT_H
#define PACKER_CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* The exit status of a command. */
enum {
	EXIT_OK = 0,    /* done */
	EXIT_FAULT = 1, /* a fault was found, or the work failed */
	EXIT_USAGE = 2, /* the command line is wrong */
};

/* The name that this program was called by, for messages; "kpack" until set. */
void report_set_program(const char *name);
const char *report_program(void);

/*
 * Whether the name of the program before a message is red: "always", "never", or "auto", as from
 * the beginning: on a terminal that is not dumb, unless NO_COLOR is set.  Returns false for
 * another WHEN.
 */
bool report_color(const char *when);

/*
 * From now on, if a FILE is PATH or below it, report_error prints SHOWN in place of PATH,
 * because a temporary path means nothing to the user.  Both strings are borrowed until
 * report_in_place(NULL, NULL).  Do not call it while other threads report.
 */
void report_in_place(const char *path, const char *shown);

/*
 * Print "PROGRAM: FILE: TEXT" on stderr, after flushing stdout.  FILE may be NULL.
 * FILE is escaped.  In TEXT control characters are escaped, but backslashes are not,
 * because texts from core contain names that are escaped already.  Returns EXIT_FAULT.
 */
int report_error(const char *file, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* As report_error, for a failure in core. */
int report_why(const char *file, const struct kpackx_error *why);

/* Print "FILE: TEXT" on stdout, with the same escapes. */
void report_line(const char *file, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Print the text on stdout, escaped. */
void report_span(struct kp_span s);
void report_text(const char *s);
/* Print N on stdout: as printf, but fast enough for a line of each entry. */
void report_number(uint64_t n);

/* Print a message on stdout, as report_error prints its text. */
void report_message(const char *text);

/*
 * Flush stdout, and report an error if not everything could be written.  Returns STATUS,
 * or 1 if STATUS is 0 and output was lost.  Every command ends with this call.
 */
int report_finish(int status);

/* The end of a noun behind its number: "1 file", "2 files"; "1 entry", "2 entries". */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}
static inline const char *plural_y(uint64_t n)
{
	return n == 1 ? "y" : "ies";
}

/* 1536 -> "1.5 KiB". */
const char *report_size(uint64_t bytes, char out[24]);

/*
 * A JSON string that has every byte of the text: a text that is not UTF-8 is escaped by
 * kp_text_escape, and so is one that would look so.  A reader that replaces each \ooo by
 * its byte has the original.
 */
json_t *report_json_span(struct kp_span s);
json_t *report_json_text(const char *s);

/* A JSON string of a message, whose names are escaped already. */
json_t *report_json_message(const char *text);
/* A JSON array of N texts. */
json_t *report_json_list(const char *const *texts, size_t n);

/*
 * Write VALUE as JSON with jansson's FLAGS: UTF-8, in which characters that are not
 * kp_text_visible are escapes.  Takes VALUE; NULL, from jansson without memory, ends the
 * process.  All JSON of this program goes through one of these.
 */
void report_json_put(FILE *out, json_t *value, size_t flags);
char *report_json_new(json_t *value, size_t flags);

/* Prints one JSON array on stdout, an element at a time, so that memory stays small. */
struct report_array {
	bool begun;
};
/* Takes ELEMENT; NULL, from jansson without memory, ends the process. */
void report_array_add(struct report_array *array, json_t *element);
/* Begin an element, which the caller prints. */
void report_array_next(struct report_array *array);
void report_array_end(const struct report_array *array);

/* Print one JSON value on stdout.  Takes VALUE, as report_array_add does. */
void report_json(json_t *value);

/*
 * The progress bar, of which there is one: a line on stderr while something takes long, if
 * WANTED and stderr is a terminal.  Messages are printed above it.  Any thread may add.
 */
void progress_begin(const char *what, uint64_t total, bool wanted);
void progress_add(uint64_t bytes);
/* Remove the bar. */
void progress_end(void);

#endif
