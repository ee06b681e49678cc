/* SPDX-License-Identifier: MIT */
/* A text buffer that grows. */
#ifndef KP_CORE_BASE_STRBUF_H
#define KP_CORE_BASE_STRBUF_H

#include "errors.h"
#include "span.h"

/* All zero is an empty text.  Sticky: after a fault nothing more is added. */
struct kp_compose {
	char *text; /* owned; a NUL follows */
	size_t size, cap;
	bool no_memory;
};

void kp_compose_span(struct kp_compose *c, struct kp_span s);
void kp_compose_str(struct kp_compose *c, const char *text);
void kp_compose_print(struct kp_compose *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Cut the text to SIZE bytes. */
void kp_compose_cut(struct kp_compose *c, size_t size);

/* Return the text, which the caller frees with free(); it is not NULL when empty. */
kpack_error_t kp_compose_take(struct kp_compose *c, char **text,
			      struct kpackx_error *why);
void kp_compose_fini(struct kp_compose *c);

#endif
