/* SPDX-License-Identifier: MIT */
/*
 * The members of a JSON object, for the few facts in small files next to kernels.
 * Needs no JSON library: it allocates nothing, reads the text once, and skips
 * what it does not understand.
 */
#ifndef PACKER_LIBRARY_JSON_MEMBERS_H
#define PACKER_LIBRARY_JSON_MEMBERS_H

#include "core/base/span.h"

enum member_kind {
	MEMBER_TEXT,   /* a string without escapes; the value is without the quotes */
	MEMBER_NUMBER, /* as it is written */
	MEMBER_OBJECT, /* with its braces */
	MEMBER_OTHER,
};

struct json_member {
	struct kp_span name, value;
	enum member_kind kind;
};

/*
 * Read the next member of an object and move REST past it.  To read the first member,
 * REST begins with the object's '{'.  false: no more members, or the text ends early.
 */
bool member_next(struct kp_span *rest, struct json_member *out);

/* Read the number as an integer; false: not an integer, or more than 18 digits. */
bool member_integer(struct kp_span number, int64_t *out);

#endif
