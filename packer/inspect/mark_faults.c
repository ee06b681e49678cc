/* SPDX-License-Identifier: MIT */
#include "mark_faults.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "core/base/text.h"

static void print_fault(const char *file, size_t wrapper, const char *arch,
			const char *text)
{
	char *shown = arch ? kp_text_escape_new(kp_span_str(arch)) : NULL;
	char number[40] = "";

	if (wrapper != MARK_NO_WRAPPER)
		snprintf(number, sizeof(number), "wrapper %zu: ", wrapper);
	report_error(file, "%s%s%s%s", number, shown ? shown : "", shown ? ": " : "",
		     text);
	free(shown);
}

static void keep_fault(struct mark_faults *f, const char *file, size_t wrapper,
		       const char *arch, const char *text)
{
	json_t *number = wrapper == MARK_NO_WRAPPER ? json_null()
						    : json_integer((json_int_t)wrapper);

	json_array_append_new(f->list,
			      json_pack("{so so so so}", "file", report_json_text(file),
					"wrapper", number, "arch",
					arch ? report_json_text(arch) : json_null(),
					"text", report_json_message(text)));
}

void mark_fault(struct mark_faults *f, const char *file, size_t wrapper, const char *arch,
		const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		xalloc_fail(0);
	va_end(ap);
	f->count++;
	if (f->json)
		keep_fault(f, file, wrapper, arch, text);
	else
		print_fault(file, wrapper, arch, text);
	free(text);
}

void mark_fault_why(struct mark_faults *f, const char *file,
		    const struct kpackx_error *why)
{
	mark_fault(f, file, MARK_NO_WRAPPER, NULL, "%s",
		   why->text[0] ? why->text : kpackx_error_name(why->code));
}
