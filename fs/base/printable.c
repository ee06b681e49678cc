/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "core/base/text.h"
#include "printable.h"

char *printable_line(const char *line, char *out, size_t cap)
{
	char *to = out;
	size_t n;

	if (cap == 0)
		return out;
	for (*to = '\0'; *line && cap > 1; line += n) {
		n = strspn(line, "\\");
		if (n) {
			n = n < cap - 1 ? n : cap - 1;
			memcpy(to, line, n);
			to[n] = '\0';
		} else {
			n = strcspn(line, "\\");
			kp_text_escape((struct kp_span){(const uint8_t *)line, n}, to,
				       cap);
		}
		cap -= strlen(to);
		to += strlen(to);
	}
	return out;
}
