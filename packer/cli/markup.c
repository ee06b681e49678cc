/* SPDX-License-Identifier: MIT */
#include "markup.h"

static const char *entity(char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void markup_put(FILE *out, struct kp_span text)
{
	for (size_t i = 0; i < text.size; i++) {
		const char *e = entity((char)text.data[i]);

		if (e)
			fputs(e, out);
		else
			putc(text.data[i], out);
	}
}
