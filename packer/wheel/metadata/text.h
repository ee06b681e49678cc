/* SPDX-License-Identifier: MIT */
/*
 * METADATA and WHEEL: lines "Name: value", continued by lines that begin with a blank, up to
 * the first empty line; behind it is a text.
 */
#ifndef PACKER_WHEEL_METADATA_TEXT_H
#define PACKER_WHEEL_METADATA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* Bytes of such a file, which is held whole: descriptions have some 100 KB. */
#define METADATA_TEXT_MAX (16 << 20)

struct metadata_header {
	struct kp_span name;
	struct kp_span value; /* without blanks around; continued lines as they stand */
};

struct metadata_text {
	struct kp_span text; /* borrowed */
	struct metadata_header *headers;
	size_t count, cap;
	size_t headers_end; /* where in the text the empty line begins, or its size */
	bool crlf;          /* the first line ends so */
};

/*
 * INVALID_FORMAT: not UTF-8, NUL, a line that is no header or has a carriage return inside;
 * the text names the line.
 * Freed by metadata_text_fini in any case.
 */
kpack_error_t metadata_text_parse(struct kp_span text, struct metadata_text *out,
				  struct kpackx_error *why);
void metadata_text_fini(struct metadata_text *m);

/* The first header NAME, whatever its case; false: there is none. */
bool metadata_text_get(const struct metadata_text *m, const char *name,
		       struct kp_span *value);

/* The next one from number *AT of all headers on; *AT is 0 at first, and moved behind it. */
bool metadata_text_next(const struct metadata_text *m, const char *name, size_t *at,
			struct kp_span *value);

/*
 * The text with HEADERS (lines that end in \n) put before the empty line, with the line ends
 * of the text.  The caller frees *OUT, which has *SIZE bytes and a NUL behind them.
 */
kpack_error_t metadata_text_add(const struct metadata_text *m, const char *headers,
				char **out, size_t *size, struct kpackx_error *why);

/* The same with the first header NAME having VALUE; added where there is none. */
kpack_error_t metadata_text_set(const struct metadata_text *m, const char *name,
				const char *value, char **out, size_t *size,
				struct kpackx_error *why);

#endif
