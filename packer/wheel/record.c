/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "csv_row.h"
#include "core/base/alloc.h"
#include "record.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/options.h"

/* 43 characters for the 32 bytes of SHA-256, 86 for SHA-512. */
enum { BASE64_MAX = 88, COLUMNS = 3 };

static const char base64_url[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* False: not SIZE bytes in urlsafe base64 without padding. */
static bool base64_decode(struct kp_span text, uint8_t *out, size_t size)
{
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t n = 0;

	if (text.size != (size * 8 + 5) / 6)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		const char *at = text.data[i] ? strchr(base64_url, text.data[i]) : NULL;

		if (!at)
			return false;
		bits = bits << 6 | (uint32_t)(at - base64_url);
		n_bits += 6;
		if (n_bits >= 8 && n < size) {
			n_bits -= 8;
			out[n++] = (uint8_t)(bits >> n_bits);
		}
	}
	/* leftover bits must be zero, or two texts would be the same digest */
	return (bits & ((1u << n_bits) - 1)) == 0;
}

static void base64_encode(const uint8_t *data, size_t size, char out[BASE64_MAX])
{
	uint32_t bits = 0;
	unsigned n_bits = 0;
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		bits = bits << 8 | data[i];
		for (n_bits += 8; n_bits >= 6;) {
			n_bits -= 6;
			out[n++] = base64_url[bits >> n_bits & 63];
		}
	}
	if (n_bits)
		out[n++] = base64_url[bits << (6 - n_bits) & 63];
	out[n] = '\0';
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_decode(struct kp_span text, uint8_t *out, size_t size)
{
	if (text.size != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		int high = hex_digit(text.data[2 * i]),
		    low = hex_digit(text.data[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static kpack_error_t refuse_line(struct kpackx_error *why, size_t line, const char *text,
				 const char *value)
{
	char shown[120];

	kp_text_escape(kp_span_str(value), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "RECORD: line %zu: %s: '%s'",
		       line, text, shown);
}

static kpack_error_t read_hash(struct record_line *l, const char *text, size_t line,
			       struct kpackx_error *why)
{
	const char *is = strchr(text, '=');
	struct kp_span digest;
	size_t size;

	if (!*text)
		return KPACK_SUCCESS;
	if (!is)
		return refuse_line(why, line, "not a hash", text);
	if (!digest_kind_find((struct kp_span){(const uint8_t *)text, is - text},
			      &l->kind))
		return refuse_line(why, line, "not sha256, sha384 or sha512", text);
	digest = kp_span_str(is + 1);
	size = digest_size(l->kind);
	if (base64_decode(digest, l->digest, size))
		return KPACK_SUCCESS;
	l->hexadecimal = l->kind == DIGEST_SHA256 && hex_decode(digest, l->digest, size);
	return l->hexadecimal
		       ? KPACK_SUCCESS
		       : refuse_line(why, line, "not urlsafe base64 of its size", text);
}

static kpack_error_t read_size(struct record_line *l, const char *text, size_t line,
			       struct kpackx_error *why)
{
	if (!*text)
		return KPACK_SUCCESS;
	l->has_size = strspn(text, "0123456789") == strlen(text) &&
		      options_number(text, 0, UINT64_MAX, &l->size);
	return l->has_size ? KPACK_SUCCESS : refuse_line(why, line, "not a size", text);
}

static kpack_error_t read_line(struct record *r, struct csv_row *row,
			       struct kpackx_error *why)
{
	struct record_line l = {.path = row->fields[0]};
	const char *fault = kp_path_fault(kp_span_str(l.path));

	if (row->count != COLUMNS)
		return refuse_line(why, row->line, "not three columns", l.path);
	if (fault)
		return refuse_line(why, row->line, fault, l.path);
	KP_TRY(read_hash(&l, row->fields[1], row->line, why));
	KP_TRY(read_size(&l, row->fields[2], row->line, why));
	if (!kp_grow(&r->lines, r->count, &r->cap, sizeof(*r->lines)))
		return kp_fail_memory(why, r->count * sizeof(*r->lines), "RECORD");
	r->lines[r->count++] = l;
	r->n_hexadecimal += l.hexadecimal;
	return KPACK_SUCCESS;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct record_line *)a)->path,
		      ((const struct record_line *)b)->path);
}

static kpack_error_t sort_lines(struct record *r, struct kpackx_error *why)
{
	if (r->count)
		qsort(r->lines, r->count, sizeof(*r->lines), by_path);
	for (size_t i = 1; i < r->count; i++)
		if (by_path(&r->lines[i - 1], &r->lines[i]) == 0) {
			char shown[120];

			kp_text_escape(kp_span_str(r->lines[i].path), shown,
				       sizeof(shown));
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "RECORD: %s is listed twice", shown);
		}
	return KPACK_SUCCESS;
}

kpack_error_t record_parse(struct kp_span text, struct record *out,
			   struct kpackx_error *why)
{
	struct csv_row row = {.line = 0};

	*out = (struct record){0};
	if (text.size > RECORD_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "RECORD: %zu bytes, at most %d", text.size,
			       RECORD_SIZE_MAX);
	if (text.size && memchr(text.data, 0, text.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "RECORD: it has a NUL");
	out->text = malloc(text.size + 1);
	if (!out->text)
		return kp_fail_memory(why, text.size, "RECORD");
	if (text.size)
		memcpy(out->text, text.data, text.size);
	out->text[text.size] = '\0';
	row.rest = out->text;
	while (csv_row_next(&row))
		KP_TRY(read_line(out, &row, why));
	if (row.fault)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "RECORD: line %zu: %s",
			       row.line, row.fault);
	return sort_lines(out, why);
}

void record_fini(struct record *r)
{
	free(r->text);
	free(r->lines);
	*r = (struct record){0};
}

const struct record_line *record_find(const struct record *r, const char *path)
{
	struct record_line key = {.path = path};

	return r->count ? bsearch(&key, r->lines, r->count, sizeof(*r->lines), by_path)
			: NULL;
}

static void add_char(struct record_text *t, char c)
{
	xgrow(&t->text, t->size, &t->cap, 1);
	t->text[t->size++] = c;
}

static void add_text(struct record_text *t, const char *s)
{
	for (; *s; s++)
		add_char(t, *s);
}

static void add_quoted(struct record_text *t, const char *path)
{
	if (!strpbrk(path, ",\"\r\n")) {
		add_text(t, path);
		return;
	}
	add_char(t, '"');
	for (; *path; path++) {
		if (*path == '"')
			add_char(t, '"');
		add_char(t, *path);
	}
	add_char(t, '"');
}

void record_text_add(struct record_text *t, const char *path, const uint8_t digest[32],
		     uint64_t size)
{
	char base64[BASE64_MAX], rest[BASE64_MAX + 40];

	base64_encode(digest, 32, base64);
	snprintf(rest, sizeof(rest), ",sha256=%s,%" PRIu64 "\n", base64, size);
	add_quoted(t, path);
	add_text(t, rest);
}

void record_text_end(struct record_text *t, const char *path)
{
	add_quoted(t, path);
	add_text(t, ",,\n");
}

void record_text_fini(struct record_text *t)
{
	free(t->text);
	*t = (struct record_text){0};
}
