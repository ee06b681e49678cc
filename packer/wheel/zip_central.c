/* SPDX-License-Identifier: MIT */
#include "zip_central.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"

enum {
	END_SIZE = 22,
	END64_SIZE = 56,
	LOCATOR_SIZE = 20,
	ENTRY_SIZE = 46,
	LOCAL_SIZE = 30,
	COMMENT_MAX = 65535,
	EXTRA_ZIP64 = 1,
	EXTRA_PATH = 0x7075, /* a second name, which some tools use */
	PATH_BEFORE = 5,
};

#define END_MAGIC UINT32_C(0x06054b50)
#define END64_MAGIC UINT32_C(0x06064b50)
#define LOCATOR_MAGIC UINT32_C(0x07064b50)
#define ENTRY_MAGIC UINT32_C(0x02014b50)
#define LOCAL_MAGIC UINT32_C(0x04034b50)

/* The content of the end records. */
struct ending {
	uint64_t at; /* where the directory must end */
	uint64_t count, size, offset;
};

static kpack_error_t refuse_archive(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s", text);
}

/* Find the last end record whose comment ends with the file. */
static kpack_error_t find_end(const struct kp_source *src, uint8_t end[END_SIZE],
			      uint64_t *at, struct kpackx_error *why)
{
	size_t room = END_SIZE + COMMENT_MAX;
	size_t n = src->size < room ? (size_t)src->size : room, i;
	uint8_t *tail = xmalloc(n);
	kpack_error_t err = kp_source_read(src, src->size - n, tail, n, why);

	for (i = n < END_SIZE ? 0 : n - END_SIZE + 1; !err && i > 0; i--) {
		const uint8_t *p = tail + i - 1;

		if (kp_le32(p) == END_MAGIC && kp_le16(p + 20) == n - (i - 1) - END_SIZE)
			break;
	}
	if (!err && i == 0)
		err = refuse_archive(why, "not a zip archive, or bytes follow its end");
	if (!err) {
		memcpy(end, tail + i - 1, END_SIZE);
		*at = src->size - n + i - 1;
	}
	free(tail);
	return err;
}

static kpack_error_t read_end64(const struct kp_source *src, struct ending *e,
				struct kpackx_error *why)
{
	uint8_t locator[LOCATOR_SIZE], end[END64_SIZE];
	uint64_t at;

	if (e->at < LOCATOR_SIZE)
		return refuse_archive(why, "the zip64 record is missing");
	KP_TRY(kp_source_read(src, e->at - LOCATOR_SIZE, locator, sizeof(locator), why));
	at = kp_le64(locator + 8);
	if (kp_le32(locator) != LOCATOR_MAGIC ||
	    !kp_range_ok(e->at - LOCATOR_SIZE, at, END64_SIZE))
		return refuse_archive(why, "the zip64 record is missing");
	if (kp_le32(locator + 4) || kp_le32(locator + 16) > 1)
		return refuse_archive(why, "an archive of several disks");
	KP_TRY(kp_source_read(src, at, end, sizeof(end), why));
	if (kp_le32(end) != END64_MAGIC || kp_le64(end + 4) < END64_SIZE - 12 ||
	    kp_le64(end + 4) != e->at - LOCATOR_SIZE - at - 12)
		return refuse_archive(why, "the zip64 record is malformed");
	if (kp_le32(end + 16) || kp_le32(end + 20) ||
	    kp_le64(end + 24) != kp_le64(end + 32))
		return refuse_archive(why, "an archive of several disks");
	*e = (struct ending){at, kp_le64(end + 32), kp_le64(end + 40), kp_le64(end + 48)};
	return KPACK_SUCCESS;
}

static kpack_error_t read_end(const struct kp_source *src, struct ending *e,
			      struct kpackx_error *why)
{
	uint8_t end[END_SIZE] = {0};

	KP_TRY(find_end(src, end, &e->at, why));
	e->count = kp_le16(end + 10);
	e->size = kp_le32(end + 12);
	e->offset = kp_le32(end + 16);
	if (e->count == UINT16_MAX || e->size == UINT32_MAX || e->offset == UINT32_MAX)
		return read_end64(src, e, why);
	if (kp_le16(end + 4) || kp_le16(end + 6) || kp_le16(end + 8) != e->count)
		return refuse_archive(why, "an archive of several disks");
	return KPACK_SUCCESS;
}

static kpack_error_t check_end(const struct ending *e, uint64_t max,
			       struct kpackx_error *why)
{
	if (!kp_range_ok(e->at, e->offset, e->size) || e->at - e->offset != e->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "directory: %" PRIu64 " bytes at %" PRIu64
			       " do not end at %" PRIu64,
			       e->size, e->offset, e->at);
	if (e->count > max)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " members, at most %" PRIu64, e->count, max);
	if (e->count > e->size / ENTRY_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "directory: %" PRIu64 " members in %" PRIu64 " bytes",
			       e->count, e->size);
	return KPACK_SUCCESS;
}

/* Read VALUE from the zip64 field if it is UNSET, all ones. */
static bool take_zip64(uint64_t *value, uint64_t unset, struct kp_span *field)
{
	if (*value != unset)
		return true;
	if (field->size < 8)
		return false;
	*value = kp_le64(field->data);
	*field = kp_span_tail(*field, 8);
	return true;
}

static bool apply_zip64(struct central_entry *e, struct kp_span field)
{
	return take_zip64(&e->size, UINT32_MAX, &field) &&
	       take_zip64(&e->compressed, UINT32_MAX, &field) &&
	       take_zip64(&e->offset, UINT32_MAX, &field);
}

/* Read the zip64 field, SIZE bytes at OFF. */
static kpack_error_t read_extra64(struct kp_window *w, uint64_t off, size_t size,
				  struct central_entry *e, struct kpackx_error *why)
{
	size_t used = size < 24 ? size : 24;
	const uint8_t *p;

	KP_TRY(kp_window_get(w, off, used, &p, why));
	return apply_zip64(e, (struct kp_span){p, used})
		       ? KPACK_SUCCESS
		       : refuse_archive(why, "directory: a zip64 field is short");
}

/*
 * Check that the second name, SIZE bytes at OFF with version and CRC, equals the one at
 * NAME.
 */
static kpack_error_t check_second(struct kp_window *w, uint64_t name, uint64_t off,
				  size_t size, const struct central_entry *e,
				  struct kpackx_error *why)
{
	uint8_t first[KP_NAME_MAX];
	const uint8_t *p;

	if (size != PATH_BEFORE + e->name_size)
		return refuse_archive(why, "directory: a member's second name differs");
	KP_TRY(kp_window_get(w, name, e->name_size, &p, why));
	memcpy(first, p, e->name_size);
	KP_TRY(kp_window_get(w, off + PATH_BEFORE, e->name_size, &p, why));
	return memcmp(first, p, e->name_size) == 0
		       ? KPACK_SUCCESS
		       : refuse_archive(why, "directory: a member's second name differs");
}

/* Read SIZE bytes of extra fields at OFF, directly after the name. */
static kpack_error_t read_extra(struct kp_window *w, uint64_t off, size_t size,
				struct central_entry *e, struct kpackx_error *why)
{
	const uint64_t name = off - e->name_size;
	const uint8_t *p;

	while (size >= 4) {
		size_t n, id;

		KP_TRY(kp_window_get(w, off, 4, &p, why));
		id = kp_le16(p);
		n = kp_le16(p + 2);
		if (n > size - 4)
			return refuse_archive(why,
					      "directory: an extra field is too long");
		if (id == EXTRA_PATH)
			KP_TRY(check_second(w, name, off + 4, n, e, why));
		if (id == EXTRA_ZIP64)
			KP_TRY(read_extra64(w, off + 4, n, e, why));
		off += 4 + n;
		size -= 4 + n;
	}
	return KPACK_SUCCESS;
}

/* Read the entry at *OFF, and move *OFF past it; entries end at END. */
static kpack_error_t read_entry(struct kp_window *w, uint64_t *off, uint64_t end,
				struct central_entry *e, struct kpackx_error *why)
{
	size_t extra, comment;
	const uint8_t *p;

	if (!kp_range_ok(end, *off, ENTRY_SIZE))
		return refuse_archive(why, "directory: fewer members than its end says");
	KP_TRY(kp_window_get(w, *off, ENTRY_SIZE, &p, why));
	if (kp_le32(p) != ENTRY_MAGIC)
		return refuse_archive(why,
				      "directory: an entry without its magic number");
	e->needs = kp_le16(p + 6);
	e->flags = kp_le16(p + 8);
	e->method = kp_le16(p + 10);
	e->time = kp_le32(p + 12);
	e->crc = kp_le32(p + 16);
	e->text = p[36] & 1;
	e->attributes = kp_le32(p + 38);
	e->compressed = kp_le32(p + 20);
	e->size = kp_le32(p + 24);
	e->name_size = kp_le16(p + 28);
	extra = kp_le16(p + 30);
	comment = kp_le16(p + 32);
	e->offset = kp_le32(p + 42);
	if (kp_le16(p + 34) != 0)
		return refuse_archive(why, "an archive of several disks");
	*off += ENTRY_SIZE;
	if (!kp_range_ok(end, *off, e->name_size + extra + comment))
		return refuse_archive(why, "directory: an entry is cut short");
	if (e->name_size > KP_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "directory: a name of %" PRIu32 " bytes", e->name_size);
	KP_TRY(kp_window_get(w, *off, e->name_size, &p, why));
	e->has_nul = e->name_size && memchr(p, 0, e->name_size);
	e->name = xcalloc(1, e->name_size + 1);
	memcpy(e->name, p, e->name_size);
	KP_TRY(read_extra(w, *off + e->name_size, extra, e, why));
	*off += e->name_size + extra + comment;
	return KPACK_SUCCESS;
}

static int by_offset(const void *a, const void *b)
{
	const struct central_entry *x = *(const struct central_entry *const *)a;
	const struct central_entry *y = *(const struct central_entry *const *)b;

	return KP_ORDER(x->offset, y->offset);
}

static kpack_error_t check_overlap(const struct central *c, struct kpackx_error *why)
{
	struct central_entry **sorted = calloc(c->count + 1, sizeof(void *));
	uint64_t end = c->offset;
	bool ok = true;

	if (!sorted)
		return kp_fail_memory(why, c->count * sizeof(void *), "members");
	for (size_t i = 0; i < c->count; i++)
		sorted[i] = &c->entries[i];
	if (c->count)
		qsort(sorted, c->count, sizeof(void *), by_offset);
	for (size_t i = c->count; ok && i > 0; i--) {
		struct central_entry *e = sorted[i - 1];

		e->end = end;
		ok = kp_range_ok(end, e->offset, LOCAL_SIZE + e->name_size) &&
		     e->compressed <= end - e->offset - LOCAL_SIZE - e->name_size;
		end = e->offset;
	}
	free(sorted);
	return ok ? KPACK_SUCCESS
		  : refuse_archive(why, "members overlap, or reach into the directory");
}

kpack_error_t central_read(const struct kp_source *src, uint64_t max, struct central *out,
			   struct kpackx_error *why)
{
	struct ending e = {0};
	struct kp_window w;
	uint64_t off;

	*out = (struct central){0};
	KP_TRY(read_end(src, &e, why));
	KP_TRY(check_end(&e, max, why));
	out->offset = off = e.offset;
	out->entries = calloc((size_t)e.count + 1, sizeof(*out->entries));
	if (!out->entries)
		return kp_fail_memory(why, e.count * sizeof(*out->entries), "members");
	kp_window_init(&w, src);
	while (out->count < e.count)
		KP_TRY(read_entry(&w, &off, e.at, &out->entries[out->count++], why));
	if (off != e.at)
		return refuse_archive(why, "directory: more than its members");
	return check_overlap(out, why);
}

/* Read the sizes of a local header, SIZE bytes of extra fields at OFF, into LOCAL. */
static kpack_error_t read_local64(struct kp_window *w, uint64_t off, size_t size,
				  struct central_entry *local, struct kpackx_error *why)
{
	const uint8_t *p;

	for (size_t n; size >= 4; off += n, size -= n) {
		KP_TRY(kp_window_get(w, off, 4, &p, why));
		n = 4 + (size_t)kp_le16(p + 2);
		if (n > size)
			return KPACK_SUCCESS;
		if (kp_le16(p) == EXTRA_ZIP64)
			return read_extra64(w, off + 4, n - 4, local, why);
	}
	return KPACK_SUCCESS;
}

/* Whether the local header says what the entry says. */
static bool is_same(const struct central_entry *e, const struct central_entry *local)
{
	if (local->needs > e->needs || local->method != e->method ||
	    local->time != e->time)
		return false;
	if (local->crc == e->crc && local->compressed == e->compressed &&
	    local->size == e->size)
		return true;
	/* a stream's header leaves them to a descriptor behind the bytes */
	return (local->flags & ZIP_DESCRIPTOR) && !local->crc && !local->compressed &&
	       !local->size;
}

static kpack_error_t check_local(struct kp_window *w, struct central_entry *e,
				 struct kpackx_error *why)
{
	struct central_entry local = {0};
	size_t name_size, extra;
	const uint8_t *p;

	KP_TRY(kp_window_get(w, e->offset, LOCAL_SIZE, &p, why));
	local = (struct central_entry){
		.needs = kp_le16(p + 4),
		.flags = kp_le16(p + 6),
		.method = kp_le16(p + 8),
		.time = kp_le32(p + 10),
		.crc = kp_le32(p + 14),
		.compressed = kp_le32(p + 18),
		.size = kp_le32(p + 22),
	};
	name_size = kp_le16(p + 26);
	extra = kp_le16(p + 28);
	e->data = e->offset + LOCAL_SIZE + name_size + extra;
	if (kp_le32(p) != LOCAL_MAGIC || name_size != e->name_size ||
	    !kp_range_ok(e->end, e->data, e->compressed))
		return refuse_archive(why, "a member's two headers differ");
	KP_TRY(kp_window_get(w, e->offset + LOCAL_SIZE, name_size, &p, why));
	if (memcmp(p, e->name, name_size) != 0)
		return refuse_archive(why, "a member's two headers differ");
	KP_TRY(read_local64(w, e->data - extra, extra, &local, why));
	return is_same(e, &local) ? KPACK_SUCCESS
				  : refuse_archive(why, "a member's two headers differ");
}

kpack_error_t central_check_locals(const struct kp_source *src, struct central *c,
				   struct kpackx_error *why)
{
	struct kp_window w;

	kp_window_init(&w, src);
	for (size_t i = 0; i < c->count; i++)
		KP_TRY(check_local(&w, &c->entries[i], why));
	return KPACK_SUCCESS;
}

void central_fini(struct central *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->entries[i].name);
	free(c->entries);
	*c = (struct central){0};
}
