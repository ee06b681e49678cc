/* SPDX-License-Identifier: MIT */
/*
 * Memory for kpack, which ends when there is none: each call returns memory, or prints one line
 * and ends the process with status 1.  A run that ends so leaves what a killed run leaves,
 * and the next run removes it.
 *
 * Not for sizes that a file states: such an allocation may fail because the file lies, and
 * that is a fault of the entry (kp_fail_memory).
 */
#ifndef PACKER_BASE_XALLOC_H
#define PACKER_BASE_XALLOC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include "core/base/alloc.h"
#include "core/base/span.h"

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *block, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t size) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *format, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
char *xvasprintf(const char *format, va_list ap)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 0)));
/* TEXT for a message, as kp_text_escape, uncut. */
char *xescape(struct kp_span text) __attribute__((malloc, returns_nonnull));

/* As kp_grow: make room for item number COUNT in the array that *ARRAY points to. */
void xgrow(void *array, size_t count, size_t *cap, size_t item);

/*
 * Open a stream that writes to memory.  After fclose, or fflush, *TEXT is what was written, SIZE bytes and a
 * zero; the caller frees it.  open_memstream's streams instead lose bytes without an error when there is no
 * memory for them.
 */
FILE *xmemstream(char **text, size_t *size) __attribute__((returns_nonnull));

/* Print that SIZE bytes could not be had (0: not known), and end the process. */
void xalloc_fail(size_t size) __attribute__((noreturn));

#endif
