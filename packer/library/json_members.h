/* SPDX-License-Identifier: MIT */
/*
 * The members of a JSON object, for the few facts that small files beside kernels tell.
 * Needs no JSON library: it holds nothing, goes over the text once, and passes over
 * what it does not understand.
 */
#ifndef PACKER_LIBRARY_JSON_MEMBERS_H
#define PACKER_LIBRARY_JSON_MEMBERS_H

#include "core/base/span.h"

enum member_kind {
	MEMBER_TEXT, /* a string without escapes; the value is what stands in the quotes */
	MEMBER_NUMBER, /* as it is written */
	MEMBER_OBJECT, /* with its braces */
	MEMBER_OTHER,
};

struct json_member {
	struct kp_span name, value;
	enum member_kind kind;
};

/*
 * The next member of the object that REST stands in, which moves behind it; a REST that
 * begins with '{' stands before the first.  false: there is none, or the text ends early.
 */
bool member_next(struct kp_span *rest, struct json_member *out);

/* The number as an integer; false: it is none, or has more than 18 digits. */
bool member_integer(struct kp_span number, int64_t *out);

#endif
