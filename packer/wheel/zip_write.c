/* SPDX-License-Identifier: MIT */
/*
 * The bytes are those that libzip would write: the versions and the order of fields are
 * its own.
 */
#include "zip_write.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "packer/cli/xalloc.h"

enum {
	MADE_BY = 3 << 8 | 63, /* Unix; version 6.3 */
	NEEDS_STORED = 10,
	NEEDS_DEFLATED = 20,
	NEEDS_ZIP64 = 45,
	UTF_8 = 1 << 11, /* of a member's flags: its name is not ASCII */
	EXTRA_ZIP64 = 1,
	LOCAL_MAX = 30 + 4 + 16, /* without the name */
	ENTRY_MAX = 46 + 4 + 24,
	END_MAX = 56 + 20 + 22,
};

/* ---- fields ---- */

static uint8_t *put16(uint8_t *p, unsigned v)
{
	*p++ = (uint8_t)v;
	*p++ = (uint8_t)(v >> 8);
	return p;
}

static uint8_t *put32(uint8_t *p, uint64_t v)
{
	kp_put_le32(p, (uint32_t)v);
	return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	kp_put_le64(p, v);
	return p + 8;
}

/* A field of 32 bits, all ones if the zip64 field has its value. */
static uint8_t *put_small(uint8_t *p, uint64_t v)
{
	return put32(p, v < UINT32_MAX ? v : UINT32_MAX);
}

static bool is_large(uint64_t v)
{
	return v >= UINT32_MAX;
}

/* The fields from the version to the CRC, which both headers have. */
static uint8_t *put_common(uint8_t *p, const struct zip_writer *w,
			   const struct zip_member *m, bool zip64)
{
	unsigned flags = m->flags;

	for (const char *c = m->path; *c; c++)
		if (*c & 0x80)
			flags |= UTF_8;
	p = put16(p, zip64                       ? NEEDS_ZIP64
		     : m->method == ZIP_DEFLATED ? NEEDS_DEFLATED
						 : NEEDS_STORED);
	p = put16(p, flags);
	p = put16(p, m->method);
	p = put16(p, w->time.time);
	p = put16(p, w->time.date);
	return put32(p, m->crc);
}

/* ---- members ---- */

static kpack_error_t put_local(struct zip_writer *w, const struct zip_member *m,
			       struct kpackx_error *why)
{
	bool zip64 = is_large(m->size) || is_large(m->bytes.size);
	size_t name_size = strlen(m->path);
	uint8_t *header = xmalloc(LOCAL_MAX + name_size), *p = header;
	kpack_error_t err;

	p = put_common(put32(p, 0x04034b50), w, m, zip64);
	p = put32(p, zip64 ? UINT32_MAX : m->bytes.size);
	p = put32(p, zip64 ? UINT32_MAX : m->size);
	p = put16(p, (unsigned)name_size);
	p = put16(p, zip64 ? 20 : 0);
	p = mempcpy(p, m->path, name_size);
	if (zip64)
		p = put64(put64(put16(put16(p, EXTRA_ZIP64), 16), m->size),
			  m->bytes.size);
	err = kp_sink_put(&w->sink, header, (size_t)(p - header), why);
	free(header);
	return err;
}

static void add_entry(struct zip_writer *w, const struct zip_member *m, uint64_t offset)
{
	uint64_t values[] = {m->size, m->bytes.size, offset};
	size_t name_size = strlen(m->path), large = 0;
	uint8_t *p;

	for (size_t i = 0; i < 3; i++)
		large += is_large(values[i]);
	while (w->cap - w->size < ENTRY_MAX + name_size) {
		w->cap = w->cap ? 2 * w->cap : 4096;
		w->directory = xrealloc(w->directory, w->cap);
	}
	p = put16(put32(w->directory + w->size, 0x02014b50), MADE_BY);
	p = put_common(p, w, m, large > 0);
	p = put_small(put_small(p, m->bytes.size), m->size);
	p = put16(p, (unsigned)name_size);
	p = put16(p, large ? (unsigned)(4 + 8 * large) : 0);
	p = put16(put16(p, 0), 0); /* comment, disk */
	p = put16(p, m->text);
	p = put32(p, (uint64_t)(S_IFREG | m->mode) << 16);
	p = put_small(p, offset);
	p = mempcpy(p, m->path, name_size);
	if (large)
		p = put16(put16(p, EXTRA_ZIP64), (unsigned)(8 * large));
	for (size_t i = 0; i < 3; i++)
		if (is_large(values[i]))
			p = put64(p, values[i]);
	w->size = (size_t)(p - w->directory);
	w->zip64 |= large > 0;
	w->count++;
}

kpack_error_t zip_put_member(struct zip_writer *w, const struct zip_member *m,
			     struct kpackx_error *why)
{
	add_entry(w, m, w->sink.size);
	KP_TRY(put_local(w, m, why));
	return kp_sink_copy(&w->sink, &m->bytes, why);
}

/* ---- the end ---- */

kpack_error_t zip_put_end(struct zip_writer *w, struct kpackx_error *why)
{
	uint64_t offset = w->sink.size;
	uint8_t end[END_MAX], *p = end;

	KP_TRY(kp_sink_put(&w->sink, w->directory, w->size, why));
	if (w->zip64 || w->count > UINT16_MAX || offset > UINT32_MAX) {
		p = put64(put32(p, 0x06064b50), 44);
		p = put16(put16(p, NEEDS_ZIP64), NEEDS_ZIP64);
		p = put32(put32(p, 0), 0); /* disks */
		p = put64(put64(p, w->count), w->count);
		p = put64(put64(p, w->size), offset);
		p = put32(put32(p, 0x07064b50), 0);
		p = put32(put64(p, w->sink.size), 1);
	}
	p = put16(put16(put32(p, 0x06054b50), 0), 0);
	for (int i = 0; i < 2; i++)
		p = put16(p, w->count < UINT16_MAX ? (unsigned)w->count : UINT16_MAX);
	p = put_small(put_small(p, w->size), offset);
	p = put16(p, 0); /* comment */
	return kp_sink_put(&w->sink, end, (size_t)(p - end), why);
}

void zip_writer_fini(struct zip_writer *w)
{
	free(w->directory);
	w->directory = NULL;
}
