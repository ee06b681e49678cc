/* SPDX-License-Identifier: MIT */
/* The lists of what kpack mark check finds: faults, and missing architectures. */
#include "mark_check.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

void mark_fault(struct mark_faults *f, const char *file, size_t wrapper, const char *arch,
		const char *fmt, ...)
{
	KP_AUTO_FREE char *text = NULL, *shown = NULL;
	char number[40] = "";
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		xalloc_fail(0);
	va_end(ap);
	f->count++;
	if (f->json) {
		json_array_append_new(
			f->list,
			json_pack("{so so so so}", "file", report_json_text(file),
				  "wrapper",
				  wrapper == MARK_NO_WRAPPER
					  ? json_null()
					  : json_integer((json_int_t)wrapper),
				  "arch", arch ? report_json_text(arch) : json_null(),
				  "text", report_json_message(text)));
		return;
	}
	if (wrapper != MARK_NO_WRAPPER)
		snprintf(number, sizeof(number), "wrapper %zu: ", wrapper);
	shown = arch ? kp_text_escape_new(kp_span_str(arch)) : NULL;
	report_error(file, "%s%s%s%s", number, shown ? shown : "", shown ? ": " : "",
		     text);
}

void mark_fault_why(struct mark_faults *f, const char *file,
		    const struct kpackx_error *why)
{
	mark_fault(f, file, MARK_NO_WRAPPER, NULL, "%s",
		   why->text[0] ? why->text : kpackx_error_name(why->code));
}

void missing_arches_add(struct missing_arches *list, const char *file, const char *arch)
{
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	list->items[list->count++] =
		(struct missing_arches_item){xstrdup(file), xstrdup(arch), false};
}

void missing_arches_sort(struct missing_arches *list)
{
	kp_sort(list->items, list->count, KP_BY_TEXT(struct missing_arches_item, arch),
		KP_BY_TEXT(struct missing_arches_item, file));
}

bool missing_arches_begins(const struct missing_arches *list, size_t i)
{
	return i == 0 || strcmp(list->items[i - 1].arch, list->items[i].arch) != 0;
}

void missing_arches_fini(struct missing_arches *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].file);
		free(list->items[i].arch);
	}
	free(list->items);
	*list = (struct missing_arches){0};
}
