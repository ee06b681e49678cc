/* SPDX-License-Identifier: MIT */
/*
 * The format of METADATA and WHEEL: headers "Name: value", continued by lines that begin
 * with a blank, up to the first empty line; free text follows.
 */
#ifndef PACKER_WHEEL_METADATA_TEXT_H
#define PACKER_WHEEL_METADATA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/*
 * Size limit of such a file, which is held in memory: real descriptions have some 100 KB.
 */
#define METADATA_TEXT_MAX (16 << 20)

struct metadata_header {
	struct kp_span name;
	struct kp_span value; /* without surrounding blanks; with continuation lines */
};

struct metadata_text {
	struct kp_span text; /* borrowed */
	struct metadata_header *headers;
	size_t count, cap;
	size_t headers_end; /* offset of the empty line, or the text's size */
	bool crlf;          /* the first line ends in CR LF */
};

/*
 * Parse TEXT.  INVALID_FORMAT, naming the line: not UTF-8, a NUL, a line that is not a
 * header or has a carriage return inside.  The caller calls metadata_text_fini even after
 * an error.
 */
kpack_error_t metadata_text_parse(struct kp_span text, struct metadata_text *out,
				  struct kpackx_error *why);
void metadata_text_fini(struct metadata_text *m);

/* Find the first header NAME, in any case; false: there is none. */
bool metadata_text_get(const struct metadata_text *m, const char *name,
		       struct kp_span *value);

/* Find the next header NAME from index *AT on, and move *AT past it; *AT begins as 0. */
bool metadata_text_next(const struct metadata_text *m, const char *name, size_t *at,
			struct kp_span *value);

/*
 * Copy the text with HEADERS (lines that end in \n) inserted before the empty line, with
 * the line ends of the text.  The caller frees the copy, which has *SIZE bytes and a NUL
 * behind them.
 */
char *metadata_text_add(const struct metadata_text *m, const char *headers, size_t *size);

/* Copy the text with VALUE in the first header NAME, which is added if there is none. */
char *metadata_text_set(const struct metadata_text *m, const char *name,
			const char *value, size_t *size);

#endif
