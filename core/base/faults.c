/* SPDX-License-Identifier: MIT */
#include "faults.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "bounds.h"
#include "text.h"

static bool grow_list(struct kp_faults *list)
{
	struct kp_fault *items;

	if (list->kept & (list->kept - 1))
		return true; /* the array has room up to the next power of two */
	items = realloc(list->items, (list->kept ? 2 * list->kept : 1) * sizeof(*items));
	if (items)
		list->items = items;
	return items != NULL;
}

void kp_faults_add(struct kp_faults *list, bool refused, const char *fmt, ...)
{
	char *raw, *text;
	va_list ap;
	int n;

	list->counted++;
	if (list->kept == KP_FAULTS_MAX || !grow_list(list))
		return;
	va_start(ap, fmt);
	n = vasprintf(&raw, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	text = kp_message_escape_new(kp_span_str(raw));
	free(raw);
	if (text)
		list->items[list->kept++] =
			(struct kp_fault){.text = text, .refused = refused};
}

void kp_faults_add_entry(struct kp_faults *list, struct kp_span key, struct kp_span arch,
			 bool refused, const char *what)
{
	size_t before = list->kept;
	char k[512], a[128];

	kp_faults_add(list, refused, "toc: %s%s%s: %s", kp_text_escape(key, k, sizeof(k)),
		      arch.size ? " " : "", kp_text_escape(arch, a, sizeof(a)), what);
	if (list->kept == before)
		return;
	list->items[before].key = key;
	list->items[before].arch = arch;
}

void kp_faults_fini(struct kp_faults *list)
{
	for (size_t i = 0; i < list->kept; i++)
		free(list->items[i].text);
	free(list->items);
	*list = (struct kp_faults){0};
}
