/* SPDX-License-Identifier: MIT */
#include "content_type.h"
#include <string.h>
#include "check_toc.h"
#include "core/base/text.h"

kpack_error_t content_head_add(const void *data, size_t size, void *arg,
			       struct kpackx_error *why)
{
	struct content_head *head = arg;
	size_t room = sizeof(head->bytes) - head->size, n = size < room ? size : room;

	(void)why;
	if (n)
		memcpy(head->bytes + head->size, data, n);
	head->size += n;
	return KPACK_SUCCESS;
}

kpack_error_t content_head_check(const struct content_head *head, struct kp_span type,
				 struct kpackx_error *why)
{
	const char *is = kp_object_type((struct kp_span){head->bytes, head->size});
	char text[64];

	/* "so": a name that other writers may choose, though one bit from "co" */
	if (strcmp(is, "co") == 0 || kp_span_is(type, is) || kp_span_is(type, "hsaco") ||
	    kp_span_is(type, "co") || kp_span_is(type, "so"))
		return KPACK_SUCCESS;
	if (!raw_is_flipped(type, is) && !raw_is_flipped(type, "hsaco") &&
	    !raw_is_flipped(type, "co"))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
		       "type is %s, but the code is %s",
		       kp_text_escape(type, text, sizeof(text)), is);
}
