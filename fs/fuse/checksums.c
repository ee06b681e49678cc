/* SPDX-License-Identifier: MIT */
#include <malloc.h>
#include <stdlib.h>
#include "checksums.h"
#include "core/base/alloc.h"
#include "fs/tree/walk.h"

/*
 * Freeing a text of more bytes than this returns memory to the system, which takes a
 * while.
 */
#define CHECKSUMS_LONG (1 << 20)

struct line {
	size_t at; /* offset of its digest in the text */
	uint32_t file;
	bool known;
};

struct checksums {
	atomic_uint refs;
	struct edition *edition;
	char *text;
	size_t size, cap;
	struct line *lines;
	size_t n_lines, lines_cap;
	uint32_t *known; /* by file: 1 + number of a line with its digest, or 0 */
};

static bool put_bytes(struct checksums *s, const void *bytes, size_t n)
{
	while (s->cap - s->size < n)
		if (!kp_grow(&s->text, s->cap, &s->cap, 1))
			return false;
	memcpy(s->text + s->size, bytes, n);
	s->size += n;
	return true;
}

/*
 * Write a path: backslashes are doubled, and the line begins with one then.  Paths have
 * no newlines.
 */
static bool put_path(struct checksums *s, struct kp_span path)
{
	for (size_t i = 0; i < path.size; i++)
		if ((path.data[i] == '\\' && !put_bytes(s, "\\", 1)) ||
		    !put_bytes(s, &path.data[i], 1))
			return false;
	return put_bytes(s, "\n", 1);
}

static bool add_line(void *user, struct kp_span path, uint32_t name)
{
	struct checksums *s = user;
	char zeros[CHECKSUM_DIGITS];

	if (!kp_grow(&s->lines, s->n_lines, &s->lines_cap, sizeof(*s->lines)))
		return false;
	if (memchr(path.data, '\\', path.size) && !put_bytes(s, "\\", 1))
		return false;
	s->lines[s->n_lines++] = (struct line){
		.at = s->size,
		.file = kp_view_name(s->edition->view, name).index,
	};
	memset(zeros, '0', sizeof(zeros));
	return put_bytes(s, zeros, sizeof(zeros)) && put_bytes(s, "  ", 2) &&
	       put_path(s, path);
}

struct checksums *checksums_new(struct edition *e)
{
	struct checksums *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->refs = 1;
	s->edition = edition_ref(e);
	s->known = calloc((size_t)kp_view_file_count(e->view) + 1, sizeof(*s->known));
	if (s->known && walk_files(e->view, e->tree, add_line, s))
		return s;
	checksums_unref(s);
	return NULL;
}

struct checksums *checksums_ref(struct checksums *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void checksums_unref(struct checksums *s)
{
	bool is_long;

	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	is_long = s->size > CHECKSUMS_LONG;
	edition_unref(s->edition);
	free(s->text);
	free(s->lines);
	free(s->known);
	free(s);
	if (is_long)
		malloc_trim(0);
}

size_t checksums_size(const struct checksums *s)
{
	return s->size;
}

const char *checksums_text(const struct checksums *s)
{
	return s->text;
}

/* The first line whose digest ends after OFF. */
static size_t line_at(const struct checksums *s, uint64_t off)
{
	size_t low = 0, high = s->n_lines;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->lines[mid].at + CHECKSUM_DIGITS > off)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/*
 * Copy the digest from another line of the same file, if needed; false: it is not known.
 */
static bool learn_digest(struct checksums *s, struct line *line)
{
	uint32_t other = s->known[line->file];

	if (!line->known && other) {
		memcpy(s->text + line->at, s->text + s->lines[other - 1].at,
		       CHECKSUM_DIGITS);
		line->known = true;
	}
	return line->known;
}

bool checksums_unknown(struct checksums *s, uint64_t off, size_t len, uint32_t *line)
{
	for (size_t i = line_at(s, off); i < s->n_lines; i++) {
		if (s->lines[i].at >= off && s->lines[i].at - off >= len)
			return false;
		if (!learn_digest(s, &s->lines[i])) {
			*line = (uint32_t)i;
			return true;
		}
	}
	return false;
}

bool checksums_file(const struct checksums *s, uint32_t line, struct file_content *out)
{
	return edition_file(s->edition, s->lines[line].file, out);
}

void checksums_set(struct checksums *s, uint32_t line, const char digits[CHECKSUM_DIGITS])
{
	memcpy(s->text + s->lines[line].at, digits, CHECKSUM_DIGITS);
	s->lines[line].known = true;
	s->known[s->lines[line].file] = line + 1;
}
