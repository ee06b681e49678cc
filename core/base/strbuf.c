/* SPDX-License-Identifier: MIT */
#include "strbuf.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "alloc.h"

/* Room for SIZE more bytes and a NUL. */
static bool reserve_room(struct kp_compose *c, size_t size)
{
	if (!c->no_memory)
		c->no_memory = size > SIZE_MAX / 2 - c->size ||
			       !kp_grow(&c->text, c->size + size, &c->cap, 1);
	return !c->no_memory;
}

void kp_compose_span(struct kp_compose *c, struct kp_span s)
{
	if (!reserve_room(c, s.size))
		return;
	if (s.size)
		memcpy(c->text + c->size, s.data, s.size);
	c->size += s.size;
	c->text[c->size] = '\0';
}

void kp_compose_str(struct kp_compose *c, const char *text)
{
	kp_compose_span(c, kp_span_str(text));
}

void kp_compose_print(struct kp_compose *c, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		c->no_memory = true;
	if (n < 0 || !reserve_room(c, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(c->text + c->size, (size_t)n + 1, fmt, ap);
	va_end(ap);
	c->size += (size_t)n;
}

void kp_compose_cut(struct kp_compose *c, size_t size)
{
	if (size >= c->size)
		return;
	c->size = size;
	c->text[size] = '\0';
}

kpack_error_t kp_compose_take(struct kp_compose *c, char **text, struct kpackx_error *why)
{
	kp_compose_str(c, "");
	if (c->no_memory) {
		size_t size = c->size;

		kp_compose_fini(c);
		return kp_fail_memory(why, size, "a text");
	}
	*text = c->text;
	*c = (struct kp_compose){0};
	return KPACK_SUCCESS;
}

void kp_compose_fini(struct kp_compose *c)
{
	free(c->text);
	*c = (struct kp_compose){0};
}
