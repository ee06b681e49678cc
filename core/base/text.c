/* SPDX-License-Identifier: MIT */
/*
 * What texts may be: UTF-8, components, paths; how they are shown, so that no byte confuses a
 * terminal or its reader; and a text that grows.
 *
 * Names come from archives that anybody may have written.  A name may not end its line, move the
 * cursor, colour what follows, or look like another name: each byte of such a character is shown
 * as \ooo, and a backslash too, so that what is shown can be read back in one way only.  In a
 * message, whose names were escaped when it was composed, backslashes stay: it may be passed on
 * through several functions, each of which makes it safe again.
 *
 * Most names are plain ASCII, so that eight bytes at a time are looked at first: opening an
 * archive checks every key of its table.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "bounds.h"

/*
 * Characters that end a line, reorder the text around them, or that Unicode lets a
 * terminal print as nothing (Default_Ignorable_Code_Point, and U+FFF9..U+FFFB).  Sorted.
 */
static const struct {
	uint32_t first, last;
} deceptive[] = {
	{0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},
	{0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2028, 0x202e},
	{0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
	{0xffa0, 0xffa0},   {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
	{0xe0000, 0xe0fff},
};

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

bool kp_text_visible(uint32_t c)
{
	size_t i = 0, n = KP_COUNT(deceptive);

	while (i < n && c > deceptive[i].last)
		i++;
	return !is_control(c) && (i == n || c < deceptive[i].first);
}

size_t kp_text_char(struct kp_span s, uint32_t *out)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t lead = s.data[0];
	/* the character's bytes, by the high bits of the first; 0: it begins no character */
	size_t n = lead < 0x80   ? 1
		   : lead < 0xc2 ? 0
		   : lead < 0xe0 ? 2
		   : lead < 0xf0 ? 3
		   : lead < 0xf5 ? 4
				 : 0;
	uint32_t c = n == 1 ? lead : lead & (0x7fu >> n);

	if (n == 0 || n > s.size)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s.data[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s.data[i] & 0x3f);
	}
	/* longer than needed, out of range, or half of a pair of UTF-16: no other program reads these */
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*out = c;
	return n;
}

/*
 * Bytes at the start of S that are printable ASCII and not EXCEPT, counted eight at a time.
 */
static inline size_t plain_bytes(struct kp_span s, char except)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
	size_t i = 0;

	for (; i + 8 <= s.size; i += 8) {
		uint64_t v = kp_le64(s.data + i);
		uint64_t zero = v ^ ones * (uint8_t)except; /* in bytes that are EXCEPT */
		/* the high bit of a byte is set when it is below 0x20, 0x7f, or above */
		if (((v - ones * 0x20) | (v + ones) | v | ((zero - ones) & ~zero)) & high)
			break;
	}
	return i;
}

size_t kp_text_plain(struct kp_span s)
{
	size_t n = plain_bytes(s, '\\');

	while (n < s.size && s.data[n] >= ' ' && s.data[n] < 0x7f && s.data[n] != '\\')
		n++;
	return n;
}

bool kp_text_ok(struct kp_span s)
{
	uint32_t c;

	for (size_t i = plain_bytes(s, '\0'), n; i < s.size; i += n) {
		n = 1;
		if (s.data[i] >= ' ' && s.data[i] < 0x7f)
			continue;
		n = kp_text_char((struct kp_span){s.data + i, s.size - i}, &c);
		if (n == 0 || is_control(c))
			return false;
	}
	return true;
}

bool kp_component_ok(struct kp_span s)
{
	if (s.size == 0 || s.size > 255 || kp_span_is(s, ".") || kp_span_is(s, ".."))
		return false;
	return !memchr(s.data, '/', s.size) && !memchr(s.data, '\0', s.size);
}

bool kp_path_inside(const char *path)
{
	for (const char *end;; path = end + 1) {
		end = strchrnul(path, '/');
		if (!kp_component_ok((struct kp_span){(const uint8_t *)path,
						      (size_t)(end - path)}))
			return false;
		if (!*end)
			return true;
	}
}

const char *kp_path_shape_fault(struct kp_span s)
{
	const uint8_t *p = s.data, *end = s.data + s.size;

	if (s.size == 0)
		return "it is empty";
	if (s.size > KP_NAME_MAX)
		return "it has more than 4096 bytes";
	for (size_t depth = 1; depth <= KP_PATH_DEPTH_MAX; depth++) {
		const uint8_t *slash = memchr(p, '/', (size_t)(end - p));
		size_t size = (size_t)((slash ? slash : end) - p);

		if (size == 0)
			return "it has an empty component";
		if (size > 255)
			return "it has a component of more than 255 bytes";
		if (p[0] == '.' && (size == 1 || (size == 2 && p[1] == '.')))
			return "it has a component . or ..";
		if (!slash)
			return NULL;
		p = slash + 1;
	}
	return "it has more than 64 components";
}

const char *kp_path_fault(struct kp_span s)
{
	return kp_text_ok(s) ? kp_path_shape_fault(s)
			     : "it is not UTF-8 without control bytes";
}

/*
 * Each byte of a character that must not be seen becomes \ooo; KEEP is written as it is.  Neither a
 * character nor an escape is cut in two.
 */
static char *escape_text(struct kp_span s, char keep, char *out, size_t cap)
{
	size_t used = 0, n, room;
	uint32_t c;

	for (; s.size; s = kp_span_tail(s, n)) {
		bool plain;

		n = kp_text_char(s, &c);
		plain = n && kp_text_visible(c) && (c != '\\' || keep == '\\');
		n = n ? n : 1;
		room = plain ? n : 4 * n;
		if (room >= cap - used)
			break;
		for (size_t i = 0; i < n; i++) {
			uint8_t byte = s.data[i];

			if (plain) {
				out[used++] = (char)byte;
				continue;
			}
			out[used++] = '\\';
			out[used++] = (char)('0' + (byte >> 6));
			out[used++] = (char)('0' + (byte >> 3 & 7));
			out[used++] = (char)('0' + (byte & 7));
		}
	}
	out[used] = '\0';
	return out;
}

static char *escape_text_new(struct kp_span s, char keep)
{
	size_t cap = 4 * s.size + 1; /* each byte as \ooo */
	char *out = s.size < SIZE_MAX / 8 ? malloc(cap) : NULL;

	return out ? escape_text(s, keep, out, cap) : NULL;
}

char *kp_text_escape(struct kp_span s, char *out, size_t cap)
{
	return escape_text(s, '\0', out, cap);
}

char *kp_text_escape_new(struct kp_span s)
{
	return escape_text_new(s, '\0');
}

void kp_text_unescape(char *text)
{
	char *to = text;

	/* in place: an escape is longer than its byte */
	for (const char *from = text; *from; from++) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

char *kp_message_escape(struct kp_span s, char *out, size_t cap)
{
	return escape_text(s, '\\', out, cap);
}

char *kp_message_escape_new(struct kp_span s)
{
	return escape_text_new(s, '\\');
}

/* --- a text that grows -------------------------------------------------------------- */

/*
 * Room for SIZE more bytes and a NUL.  After a failure there is never room again, so that a text
 * cannot lack its middle; who composes asks once, at the end.
 */
static bool reserve_room(struct kp_compose *c, size_t size)
{
	if (!c->no_memory)
		c->no_memory = size > SIZE_MAX / 2 - c->size ||
			       !kp_grow(&c->text, c->size + size, &c->cap, 1);
	return !c->no_memory;
}

void kp_compose_span(struct kp_compose *c, struct kp_span s)
{
	if (!reserve_room(c, s.size))
		return;
	if (s.size)
		memcpy(c->text + c->size, s.data, s.size);
	c->size += s.size;
	c->text[c->size] = '\0';
}

void kp_compose_str(struct kp_compose *c, const char *text)
{
	kp_compose_span(c, kp_span_str(text));
}

void kp_compose_print(struct kp_compose *c, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		c->no_memory = true;
	if (n < 0 || !reserve_room(c, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(c->text + c->size, (size_t)n + 1, fmt, ap);
	va_end(ap);
	c->size += (size_t)n;
}

void kp_compose_cut(struct kp_compose *c, size_t size)
{
	if (size >= c->size)
		return;
	c->size = size;
	c->text[size] = '\0';
}

kpack_error_t kp_compose_take(struct kp_compose *c, char **text, struct kpackx_error *why)
{
	kp_compose_str(c, "");
	if (c->no_memory) {
		size_t size = c->size;

		kp_compose_fini(c);
		return kp_fail_memory(why, size, "a text");
	}
	*text = c->text;
	*c = (struct kp_compose){0};
	return KPACK_SUCCESS;
}

void kp_compose_fini(struct kp_compose *c)
{
	free(c->text);
	*c = (struct kp_compose){0};
}

bool kp_text_colored(void)
{
	const char *no = secure_getenv("NO_COLOR"), *term = secure_getenv("TERM");

	return !(no && *no) && term && strcmp(term, "dumb") != 0;
}
