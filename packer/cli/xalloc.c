/* SPDX-License-Identifier: MIT */
/*
 * A program that only reads and writes files has nothing better to do without memory than to
 * end.  It ends as a killed one does, so that only one way of being interrupted must be right.
 */
#include "xalloc.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/text.h"

/* Only calls that need no memory: stdout is not flushed, and no exit handler runs. */
void xalloc_fail(size_t size)
{
	char line[128];
	int n = snprintf(line, sizeof(line),
			 size ? "%.64s: out of memory (%zu bytes)\n"
			      : "%.64s: out of memory\n",
			 program_invocation_short_name, size);

	if (write(STDERR_FILENO, line, (size_t)n) < 0) {
		/* there is nobody else to report it to */
	}
	_exit(1);
}

/* BLOCK, of SIZE bytes, which is there. */
static void *checked(void *block, size_t size)
{
	if (!block)
		xalloc_fail(size);
	return block;
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1), size);
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1), n * size);
}

void *xrealloc(void *block, size_t size)
{
	return checked(realloc(block, size ? size : 1), size);
}

char *xstrdup(const char *text)
{
	return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t size)
{
	return checked(strndup(text, size), size);
}

char *xvasprintf(const char *format, va_list ap)
{
	char *text;

	if (vasprintf(&text, format, ap) < 0)
		xalloc_fail(0);
	return text;
}

char *xasprintf(const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	text = xvasprintf(format, ap);
	va_end(ap);
	return text;
}

char *xescape(struct kp_span text)
{
	return checked(kp_text_escape_new(text), 0);
}

void xgrow(void *array, size_t count, size_t *cap, size_t item)
{
	if (!kp_grow(array, count, cap, item))
		xalloc_fail(count * item);
}

/*
 * A stream of fopencookie: whoever writes to it needs no check, because without memory the
 * process ends here, in the write.  After each write the text ends with a zero.
 */
struct memory_stream {
	char **text;
	size_t *size, room;
};

static ssize_t write_memory(void *cookie, const char *data, size_t size)
{
	struct memory_stream *m = cookie;

	if (size >= m->room - *m->size) {
		m->room = 2 * (*m->size + size) + 1;
		*m->text = xrealloc(*m->text, m->room);
	}
	memcpy(*m->text + *m->size, data, size);
	*m->size += size;
	(*m->text)[*m->size] = '\0';
	return (ssize_t)size;
}

static int close_memory(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *xmemstream(char **text, size_t *size)
{
	const cookie_io_functions_t calls = {.write = write_memory,
					     .close = close_memory};
	struct memory_stream *m = xmalloc(sizeof(*m));
	FILE *f = fopencookie(m, "w", calls);

	if (!f)
		xalloc_fail(0);
	*text = xcalloc(1, 1);
	*size = 0;
	*m = (struct memory_stream){.text = text, .size = size, .room = 1};
	return f;
}
