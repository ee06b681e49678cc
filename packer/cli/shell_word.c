/* SPDX-License-Identifier: MIT */
#include "shell_word.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/text.h"
#include "xalloc.h"

/* Characters that have no meaning for a shell or for printf. */
static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			   "0123456789_@+=:,./-";

/* Whether a terminal shows every character of TEXT. */
static bool is_visible(const char *text)
{
	struct kp_span s = kp_span_str(text);
	size_t n;

	for (uint32_t c; s.size; s = kp_span_tail(s, n)) {
		n = kp_text_char(s, &c);
		if (n == 0 || !kp_text_visible(c))
			return false;
	}
	return true;
}

/*
 * Write SIZE bytes as octal escapes of printf, which every shell has.  A dash at the
 * beginning would be an option of printf.
 */
static void put_escaped(FILE *f, const char *text, size_t size)
{
	fputs("\"$(printf '", f);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (strchr(safe, c) && (i || c != '-'))
			fputc(c, f);
		else
			fprintf(f, "\\%03o", c);
	}
	fputs("')\"", f);
}

static void put_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", f);
		fputc(*text, f);
	}
	fputc('\'', f);
}

/* Write TEXT, which has bytes that a terminal would not show. */
static void put_hidden(FILE *f, const char *text)
{
	size_t n = strlen(text);

	while (n && text[n - 1] == '\n')
		n--;
	if (n)
		put_escaped(f, text, n);
	if (text[n])
		put_quoted(f, text + n);
}

char *shell_word(const char *text)
{
	char *word = NULL;
	size_t size;
	FILE *f = xmemstream(&word, &size);

	if (*text && text[strspn(text, safe)] == '\0')
		fputs(text, f);
	else if (is_visible(text))
		put_quoted(f, text);
	else
		put_hidden(f, text);
	fclose(f);
	return word;
}
