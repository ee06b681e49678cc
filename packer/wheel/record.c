/* SPDX-License-Identifier: MIT */
/*
 * RECORD: a wheel's list of its files, one line of CSV each: path, hash, size.  Fields may be
 * quoted, and quotes in them are doubled.
 *
 *	torch/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0
 *	torch-2.10.0.dist-info/RECORD,,
 *
 * Hashes are sha256, sha384 or sha512 in urlsafe base64 without padding.  Some real wheels,
 * those of AMD's splitter among them, have hexadecimal SHA-256 instead: these are read, and
 * never written.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/options.h"
#include "packer/cli/xalloc.h"
#include "wheel.h"

enum { COLUMNS = 3 };

/* --- hashes ------------------------------------------------------------------------- */

static const char base64_url[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/*
 * Decode the digest TEXT of KIND: urlsafe base64 without padding, or hexadecimal SHA-256.
 * Decoding is exact, so that one digest has one text, and nobody has to wonder whether two lines
 * mean the same.
 */
static bool digest_decode(const char *text, enum digest_kind kind, uint8_t *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t size = digest_size(kind), length = strlen(text), n = 0;
	uint32_t bits = 0;
	unsigned n_bits = 0;

	if (kind == DIGEST_SHA256 && length == 2 * size &&
	    strspn(text, digits) == length) {
		for (; n < size; n++, text += 2)
			out[n] = (uint8_t)((strchr(digits, text[0]) - digits) << 4 |
					   (strchr(digits, text[1]) - digits));
		return true;
	}
	if (length != (size * 8 + 5) / 6)
		return false;
	for (; *text; text++) {
		const char *at = strchr(base64_url, *text);

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

/* --- reading ------------------------------------------------------------------------ */

static kpack_error_t refuse_line(struct kpackx_error *why, size_t line, const char *text,
				 const char *value)
{
	char shown[120];

	kp_text_escape(kp_span_str(value), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "RECORD: line %zu: %s: '%s'",
		       line, text, shown);
}

kpack_error_t record_refuse(struct kpackx_error *why, const char *path, const char *text)
{
	char shown[160];

	kp_text_escape(kp_span_str(path), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "RECORD: %s: %s", shown, text);
}

/*
 * Cut the row at P, of which line NUMBER is, into fields, in place; further fields than fit are
 * only counted.  Returns the next row; NULL: *FAULT says what is wrong.
 */
static char *cut_row(char *p, char *fields[COLUMNS], size_t *count, const char **fault)
{
	char *field, *to, end;

	for (*count = 0;; p++) {
		field = to = p;
		if (*p == '"') {
			for (p++; *p != '"' || p[1] == '"'; p++) {
				if (!*p) {
					*fault = "a quote is not closed";
					return NULL;
				}
				p += *p == '"';
				*to++ = *p;
			}
			p++;
		} else {
			p += strcspn(p, ",\r\n");
			to = p;
		}
		end = *p;
		if (end && !strchr(",\r\n", end)) {
			*fault = "text behind a quote";
			return NULL;
		}
		*to = '\0';
		if (*count < COLUMNS)
			fields[*count] = field;
		++*count;
		if (end != ',')
			break;
	}
	return p + (end != '\0') + (end == '\r' && p[1] == '\n');
}

kpack_error_t record_parse(struct kp_span text, struct record *out,
			   struct kpackx_error *why)
{
	char *fields[COLUMNS];
	size_t line = 1, count;

	*out = (struct record){0};
	if (text.size > RECORD_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "RECORD: %zu bytes, at most %d", text.size,
			       RECORD_SIZE_MAX);
	if (text.size && memchr(text.data, 0, text.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "RECORD: it has a NUL");
	/* rows are cut in place, in a copy, and paths point into it */
	KP_TRY(kp_new(&out->text, text.size + 1, "RECORD", why));
	if (text.size)
		memcpy(out->text, text.data, text.size);
	for (char *row = out->text; *row; line++) {
		struct record_line l = {0};
		const char *fault = NULL, *hash, *value;

		if (*row == '\r' || *row == '\n') { /* an empty line */
			row += 1 + (*row == '\r' && row[1] == '\n');
			continue;
		}
		row = cut_row(row, fields, &count, &fault);
		if (!row)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "RECORD: line %zu: %s", line, fault);
		l.path = fields[0];
		if (count != COLUMNS)
			return refuse_line(why, line, "not three columns", l.path);
		fault = kp_path_fault(kp_span_str(l.path));
		if (fault)
			return refuse_line(why, line, fault, l.path);
		/* whether hash and size may be missing depends on the file: see record_check */
		hash = fields[1];
		value = strchr(hash, '=');
		if (*hash && !value)
			return refuse_line(why, line, "not a hash", hash);
		/* MD5 and SHA-1 are no hashes here, as the specification says */
		if (*hash && !digest_kind_find((struct kp_span){(const uint8_t *)hash,
								(size_t)(value - hash)},
					       &l.kind))
			return refuse_line(why, line, "not sha256, sha384 or sha512",
					   hash);
		if (*hash && !digest_decode(value + 1, l.kind, l.digest))
			return refuse_line(why, line, "not urlsafe base64 of its size",
					   hash);
		l.has_size = strspn(fields[2], "0123456789") == strlen(fields[2]) &&
			     options_number(fields[2], 0, UINT64_MAX, &l.size);
		if (*fields[2] && !l.has_size)
			return refuse_line(why, line, "not a size", fields[2]);
		KP_TRY(kp_room(&out->lines, out->count, &out->cap, "RECORD", why));
		out->lines[out->count++] = l;
	}
	kp_sort(out->lines, out->count, KP_BY_TEXT(struct record_line, path));
	for (size_t i = 1; i < out->count; i++)
		if (strcmp(out->lines[i - 1].path, out->lines[i].path) == 0) {
			char shown[120];

			kp_text_escape(kp_span_str(out->lines[i].path), shown,
				       sizeof(shown));
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "RECORD: %s is listed twice", shown);
		}
	return KPACK_SUCCESS;
}

void record_fini(struct record *r)
{
	free(r->text);
	free(r->lines);
	*r = (struct record){0};
}

const struct record_line *record_find(const struct record *r, const char *path)
{
	const struct record_line probe = {.path = path};

	return kp_find(r->lines, r->count, &probe, KP_BY_TEXT(struct record_line, path));
}

bool record_is_own(const char *path, const char *dist_info)
{
	static const char *const files[] = {"RECORD", "RECORD.jws", "RECORD.p7s"};
	const char *file = kp_path_below(path, dist_info);

	for (size_t i = 0; file && i < KP_COUNT(files); i++)
		if (strcmp(file, files[i]) == 0)
			return true;
	return false;
}

kpack_error_t record_check(const struct wheel_in *w, const char *dist_info,
			   struct record *out, struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/RECORD", dist_info), *text = NULL;
	size_t member, size = 0;
	char sizes[100];

	*out = (struct record){0};
	if (!wheel_in_find(w, path, &member))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: it is missing",
			       path);
	KP_TRY(wheel_in_text(w, member, RECORD_SIZE_MAX, &text, &size, why));
	KP_TRY(record_parse((struct kp_span){(const uint8_t *)text, size}, out, why));
	/* every file but RECORD and its signatures is listed, with a hash, and with its size */
	for (const struct wheel_member *m = w->members; m < w->members + w->count; m++) {
		const struct record_line *l = record_find(out, m->path);
		bool own = record_is_own(m->path, dist_info);

		if (m->directory || (!l && own))
			continue;
		if (!l)
			return record_refuse(why, m->path, "not listed");
		if (l->kind == DIGEST_NONE && !own)
			return record_refuse(why, m->path, "no hash");
		if (!l->has_size || l->size == m->size)
			continue;
		snprintf(sizes, sizeof(sizes),
			 "%" PRIu64 " bytes listed, %" PRIu64 " found", l->size, m->size);
		return record_refuse(why, m->path, sizes);
	}
	for (size_t i = 0; i < out->count; i++)
		if (!wheel_in_find(w, out->lines[i].path, &member) ||
		    w->members[member].directory)
			return record_refuse(why, out->lines[i].path,
					     "listed, but not a file of the wheel");
	return KPACK_SUCCESS;
}

/* --- writing ------------------------------------------------------------------------ */

void record_put(FILE *f, const char *path, const uint8_t digest[32], uint64_t size)
{
	const char *quote = strpbrk(path, ",\"\r\n") ? "\"" : "";
	uint32_t bits = 0;
	unsigned n_bits = 0;

	fputs(quote, f);
	for (; *path; path++) {
		if (*path == '"')
			fputc('"', f);
		fputc(*path, f);
	}
	fputs(quote, f);
	if (!digest) {
		fputs(",,\n", f);
		return;
	}
	fputs(",sha256=", f);
	for (size_t i = 0; i < 32; i++) {
		bits = bits << 8 | digest[i];
		for (n_bits += 8; n_bits >= 6;) {
			n_bits -= 6;
			fputc(base64_url[bits >> n_bits & 63], f);
		}
	}
	/* 32 bytes leave four bits */
	fputc(base64_url[bits << (6 - n_bits) & 63], f);
	fprintf(f, ",%" PRIu64 "\n", size);
}
