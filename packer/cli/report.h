/* SPDX-License-Identifier: MIT */
/*
 * What the program says: messages on stderr, tables and JSON on stdout.
 * Names from archives and the command line never reach a terminal unescaped.
 */
#ifndef PACKER_CLI_REPORT_H
#define PACKER_CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* Is --json built in?  It needs jansson. */
#ifndef KP_WITH_JSON
#define KP_WITH_JSON 1
#endif

/* The name this program was called by, for messages; "kpack" until set. */
void report_set_program(const char *name);
const char *report_program(void);

/*
 * From now on report_error shows SHOWN in place of PATH and of what FILE has of it at its
 * beginning: a temporary place means nothing to the user.  Both stay the caller's, until
 * report_in_place(NULL, NULL).  Not while other threads report.
 */
void report_in_place(const char *path, const char *shown);

/*
 * "PROGRAM: FILE: TEXT" on stderr, after what was printed so far.  FILE may be NULL.
 * FILE is escaped.  In TEXT controls are too, but a backslash stays, because
 * texts from core carry names that are escaped already.
 */
void report_error(const char *file, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for a failure in core. */
void report_why(const char *file, const struct kpackx_error *why);

/* Print escaped on stdout. */
void report_span(struct kp_span s);
void report_text(const char *s);

/*
 * Flush stdout and say so when not everything could be written.  Returns STATUS, or 1
 * when it was 0 and output was lost.  Every command ends with it.
 */
int report_finish(int status);

/* 1536 -> "1.5 KiB". */
const char *report_size(uint64_t bytes, char out[24]);

/* Can --json be answered?  If not, says so; the exit status is 2. */
bool report_json_ok(void);

#if KP_WITH_JSON
#include <jansson.h>

/* A JSON string; bytes that are not UTF-8 are escaped as \ooo. */
json_t *report_json_span(struct kp_span s);
json_t *report_json_text(const char *s);

/* One JSON array on stdout, an element at a time: memory stays small. */
struct report_array {
	bool begun;
	bool failed; /* out of memory, or an element could not be made */
};
void report_array_add(struct report_array *array, json_t *element); /* takes ELEMENT */
bool report_array_end(struct report_array *array); /* false: something is missing */

/* One JSON value on stdout.  Takes VALUE; false: out of memory. */
bool report_json(json_t *value);
#endif

#endif
