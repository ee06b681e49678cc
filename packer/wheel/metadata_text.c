/* SPDX-License-Identifier: MIT */
#include "metadata_text.h"
#include <stdlib.h>
#include <strings.h>
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* Header names are printable ASCII without blanks and colons (RFC 5322). */
static size_t name_size(struct kp_span line)
{
	size_t n = 0;

	while (n < line.size && line.data[n] > ' ' && line.data[n] < 0x7f &&
	       line.data[n] != ':')
		n++;
	return n < line.size && line.data[n] == ':' ? n : 0;
}

static struct kp_span trim_value(struct kp_span s)
{
	while (s.size && is_blank(s.data[0]))
		s = kp_span_tail(s, 1);
	while (s.size && (is_blank(s.data[s.size - 1]) || s.data[s.size - 1] == '\r' ||
			  s.data[s.size - 1] == '\n'))
		s.size--;
	return s;
}

/* The size of TEXT's first line with its line end; *CONTENT is the line without it. */
static size_t take_line(struct kp_span text, struct kp_span *content)
{
	const uint8_t *nl = memchr(text.data, '\n', text.size);
	size_t n = nl ? (size_t)(nl - text.data) : text.size;

	*content = kp_span_head(text, n);
	if (nl && n && text.data[n - 1] == '\r')
		content->size--;
	return nl ? n + 1 : n;
}

static bool is_utf8(struct kp_span s)
{
	while (s.size) {
		uint32_t c;
		size_t n = kp_text_char(s, &c);

		if (n == 0 || c == 0)
			return false;
		s = kp_span_tail(s, n);
	}
	return true;
}

static kpack_error_t refuse_line(struct kpackx_error *why, size_t line, const char *text)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "line %zu: %s", line, text);
}

/* Add LINE, which begins a header or continues the last one. */
static kpack_error_t add_line(struct metadata_text *m, struct kp_span line, size_t number,
			      struct kpackx_error *why)
{
	struct metadata_header *last = m->count ? &m->headers[m->count - 1] : NULL;
	size_t n = name_size(line);

	if (is_blank(line.data[0])) {
		if (!last)
			return refuse_line(why, number, "it continues no header");
		last->value = trim_value((struct kp_span){
			last->value.data,
			(size_t)(line.data + line.size - last->value.data)});
		return KPACK_SUCCESS;
	}
	if (n == 0)
		return refuse_line(why, number, "it is not a header");
	if (!kp_grow(&m->headers, m->count, &m->cap, sizeof(*m->headers)))
		return kp_fail_memory(why, m->count * sizeof(*m->headers), "headers");
	m->headers[m->count++] = (struct metadata_header){
		kp_span_head(line, n), trim_value(kp_span_tail(line, n + 1))};
	return KPACK_SUCCESS;
}

kpack_error_t metadata_text_parse(struct kp_span text, struct metadata_text *out,
				  struct kpackx_error *why)
{
	size_t at = 0;

	*out = (struct metadata_text){.text = text};
	if (!is_utf8(text))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "not UTF-8, or with a NUL");
	for (size_t number = 1; at < text.size; number++) {
		struct kp_span line;
		size_t n = take_line(kp_span_tail(text, at), &line);

		if (number == 1)
			out->crlf = n == line.size + 2;
		if (line.size == 0)
			break;
		/*
		 * Python's mail parser treats it as a line end, and it is invisible
		 */
		if (memchr(line.data, '\r', line.size))
			return refuse_line(why, number,
					   "it has a carriage return inside");
		KP_TRY(add_line(out, line, number, why));
		at += n;
	}
	out->headers_end = at;
	return KPACK_SUCCESS;
}

void metadata_text_fini(struct metadata_text *m)
{
	free(m->headers);
	*m = (struct metadata_text){0};
}

static bool is_header(const struct metadata_header *h, const char *name)
{
	return h->name.size == strlen(name) &&
	       strncasecmp((const char *)h->name.data, name, h->name.size) == 0;
}

static const struct metadata_header *find_header(const struct metadata_text *m,
						 const char *name, size_t from)
{
	for (size_t i = from; i < m->count; i++)
		if (is_header(&m->headers[i], name))
			return &m->headers[i];
	return NULL;
}

bool metadata_text_next(const struct metadata_text *m, const char *name, size_t *at,
			struct kp_span *value)
{
	const struct metadata_header *h = find_header(m, name, *at);

	if (!h)
		return false;
	*value = h->value;
	*at = (size_t)(h - m->headers) + 1;
	return true;
}

bool metadata_text_get(const struct metadata_text *m, const char *name,
		       struct kp_span *value)
{
	size_t at = 0;

	return metadata_text_next(m, name, &at, value);
}

/* Copy LINES with the text's line ends; TO has room for twice their size. */
static size_t put_lines(const struct metadata_text *m, char *to, const char *lines)
{
	char *p = to;

	for (; *lines; lines++) {
		if (*lines == '\n' && m->crlf)
			*p++ = '\r';
		*p++ = *lines;
	}
	return (size_t)(p - to);
}

/* Copy the text with the bytes [FROM, END) replaced by LINES. */
static char *replace_range(const struct metadata_text *m, size_t from, size_t end,
			   const char *lines, size_t *size)
{
	size_t n;
	char *text = xmalloc(m->text.size + 2 * strlen(lines) + 3);

	if (from)
		memcpy(text, m->text.data, from);
	n = from;
	if (from && text[from - 1] != '\n')
		n += put_lines(m, text + n, "\n");
	n += put_lines(m, text + n, lines);
	if (m->text.size > end)
		memcpy(text + n, m->text.data + end, m->text.size - end);
	n += m->text.size - end;
	text[n] = '\0';
	*size = n;
	return text;
}

char *metadata_text_add(const struct metadata_text *m, const char *headers, size_t *size)
{
	return replace_range(m, m->headers_end, m->headers_end, headers, size);
}

char *metadata_text_set(const struct metadata_text *m, const char *name,
			const char *value, size_t *size)
{
	const struct metadata_header *h = find_header(m, name, 0);
	size_t from = m->headers_end, end = from;
	char *line = xasprintf("%s: %s\n", name, value), *out;

	if (h) {
		from = (size_t)(h->name.data - m->text.data);
		end = h + 1 < m->headers + m->count
			      ? (size_t)(h[1].name.data - m->text.data)
			      : m->headers_end;
	}
	out = replace_range(m, from, end, line, size);
	free(line);
	return out;
}
