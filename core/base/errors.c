/* SPDX-License-Identifier: MIT */
/*
 * Errors as a code and a text that any terminal can print, and lists of faults.  A text that is too
 * long loses its middle: its beginning says where, and its end what.  The room is fixed, so that an
 * error needs no memory, which may just be what is missing, and nobody has to free it.
 */
#include "errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "bounds.h"
#include "text.h"

#define CODE(code, text) [code] = {#code, text}

static const struct {
	const char *name, *text;
} codes[] = {
	CODE(KPACK_SUCCESS, "success"),
	CODE(KPACK_ERROR_INVALID_ARGUMENT, "invalid argument"),
	CODE(KPACK_ERROR_FILE_NOT_FOUND, "no such file"),
	CODE(KPACK_ERROR_INVALID_FORMAT, "not an archive, or damaged"),
	CODE(KPACK_ERROR_UNSUPPORTED_VERSION, "archive of an unknown version"),
	CODE(KPACK_ERROR_KERNEL_NOT_FOUND, "no such kernel"),
	CODE(KPACK_ERROR_DECOMPRESSION_FAILED, "stored bytes do not decode"),
	CODE(KPACK_ERROR_OUT_OF_MEMORY, "out of memory"),
	CODE(KPACK_ERROR_NOT_IMPLEMENTED, "not implemented"),
	CODE(KPACK_ERROR_IO_ERROR, "input or output error"),
	CODE(KPACK_ERROR_MSGPACK_PARSE_FAILED, "table of contents is not valid"),
	CODE(KPACK_ERROR_PATH_DISCOVERY_FAILED, "no file is mapped there"),
	CODE(KPACK_ERROR_INVALID_METADATA, "marker is not valid"),
	CODE(KPACK_ERROR_ARCHIVE_NOT_FOUND, "no archive found"),
	CODE(KPACK_ERROR_ARCH_NOT_FOUND, "no code for the architecture"),
};

const char *kpackx_error_name(kpack_error_t code)
{
	return (unsigned)code < KP_COUNT(codes) ? codes[code].name : "KPACK_ERROR_?";
}

const char *kpack_error_string(kpack_error_t code)
{
	return (unsigned)code < KP_COUNT(codes) ? codes[code].text : "unknown error";
}

/* A cut text may end in the middle of a character: remove that character. */
static void end_at_character(char *text)
{
	size_t n = strlen(text), at = n;
	uint32_t c;

	while (at && n - at < 4 && ((uint8_t)text[at - 1] & 0xc0) == 0x80)
		at--;
	if (at && (uint8_t)text[at - 1] >= 0xc0 &&
	    !kp_text_char(kp_span_str(text + at - 1), &c))
		text[at - 1] = '\0';
}

/* Fill in WHY; whatever the arguments hold, any terminal can print its text. */
static void __attribute__((format(printf, 3, 0)))
fill_error(struct kpackx_error *why, kpack_error_t code, const char *fmt, va_list ap)
{
	char raw[sizeof(why->text)];

	why->code = code;
	vsnprintf(raw, sizeof(raw), fmt, ap);
	end_at_character(raw);
	kp_message_escape(kp_span_str(raw), why->text, sizeof(why->text));
}

kpack_error_t kp_fail(struct kpackx_error *why, kpack_error_t code, const char *fmt, ...)
{
	va_list ap;

	if (!why)
		return code;
	va_start(ap, fmt);
	fill_error(why, code, fmt, ap);
	va_end(ap);
	why->sys_errno = 0;
	return code;
}

/* As strerror, which may translate, and is not safe among threads everywhere. */
#if !__GLIBC_PREREQ(2, 32)
static const char *strerrordesc_np(int number)
{
	return number >= 0 && number < sys_nerr ? sys_errlist[number] : NULL;
}
#endif

const char *kp_errno_text(int sys_errno)
{
	const char *text =
		sys_errno == EFBIG
			? "File too large: raise the limit (ulimit -f), or write "
			  "to another file system"
			: strerrordesc_np(sys_errno);

	return text ? text : "unknown error";
}

kpack_error_t kp_fail_errno(struct kpackx_error *why, int sys_errno, const char *fmt, ...)
{
	kpack_error_t code = sys_errno == ENOENT   ? KPACK_ERROR_FILE_NOT_FOUND
			     : sys_errno == ENOMEM ? KPACK_ERROR_OUT_OF_MEMORY
						   : KPACK_ERROR_IO_ERROR;
	va_list ap;
	size_t used;

	if (!why)
		return code;
	va_start(ap, fmt);
	fill_error(why, code, fmt, ap);
	va_end(ap);
	why->sys_errno = sys_errno;
	/* after what was escaped: the system's text needs no escape, and is cut rather than the name */
	used = strlen(why->text);
	snprintf(why->text + used, sizeof(why->text) - used, ": %s",
		 kp_errno_text(sys_errno));
	return code;
}

kpack_error_t kp_fail_memory(struct kpackx_error *why, uint64_t size, const char *what)
{
	return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "out of memory: %llu bytes for %s",
		       (unsigned long long)size, what);
}

kpack_error_t kp_fail_prefix(struct kpackx_error *why, kpack_error_t code,
			     const char *fmt, ...)
{
	char old[sizeof(why->text)];
	const char *reason = old, *dots = "";
	size_t used, room, size;
	va_list ap;

	if (!why)
		return code;
	memcpy(old, why->text, sizeof(old));
	va_start(ap, fmt);
	fill_error(why, code, fmt, ap);
	va_end(ap);
	used = strlen(why->text);
	room = sizeof(why->text) - used;
	size = strlen(old);
	/*
	 * Each caller on the way up adds a prefix, so that a text can become too long.  Its end has
	 * the fault itself, the newest prefix the file: what is between them goes.
	 */
	if (room > sizeof(": ...") && size > room - sizeof(": ")) {
		dots = "...";
		reason += size - (room - sizeof(": ..."));
		while (((uint8_t)*reason & 0xc0) == 0x80)
			reason++;
	}
	snprintf(why->text + used, room, ": %s%s", dots, reason);
	end_at_character(why->text);
	return code;
}

/* --- lists of faults -------------------------------------------------------------------- */

void kp_faults_add(struct kp_faults *list, bool refused, const char *fmt, ...)
{
	char *raw, *text;
	va_list ap;
	int n;

	/* a hostile table has a fault in each of a million entries */
	list->counted++;
	if (list->kept == KP_FAULTS_MAX ||
	    !kp_grow(&list->items, list->kept, &list->cap, sizeof(*list->items)))
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
