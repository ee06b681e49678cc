/* SPDX-License-Identifier: MIT */
#include "faults.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "packer/base/xalloc.h"
#include "core/base/text.h"

static void print_fault(const char *file, size_t wrapper, const char *arch,
			const char *text)
{
	char number[40] = "";

	if (wrapper != MARK_NO_WRAPPER)
		snprintf(number, sizeof(number), "wrapper %zu: ", wrapper);
	report_error(file, "%s%s%s%s", number, arch ? arch : "", arch ? ": " : "", text);
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
					"text", report_json_text(text)));
}

void mark_fault(struct mark_faults *f, const char *file, size_t wrapper, const char *arch,
		const char *fmt, ...)
{
	char *text, *safe_arch = arch ? kp_text_escape_new(kp_span_str(arch)) : NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		xalloc_fail(0);
	va_end(ap);
	f->count++;
	if (f->json)
		keep_fault(f, file, wrapper, safe_arch, text);
	else
		print_fault(file, wrapper, safe_arch, text);
	free(safe_arch);
	free(text);
}

void mark_fault_why(struct mark_faults *f, const char *file,
		    const struct kpackx_error *why)
{
	mark_fault(f, file, MARK_NO_WRAPPER, NULL, "%s",
		   why->text[0] ? why->text : kpackx_error_name(why->code));
}
