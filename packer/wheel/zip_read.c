/* SPDX-License-Identifier: MIT */
/*
 * Reading a wheel, which is a zip archive that anybody may have made:
 *
 *	local header, bytes      for each member
 *	central directory        an entry for each member: all of the local header, and more
 *	zip64 record, locator    if a number does not fit into the end record
 *	end record               where the directory is
 *
 * Everything is said twice, and zip tools differ in which they believe.  A wheel is refused
 * if the two differ, if anything overlaps or is left over, or if a member's name could mean
 * another file, so that what is split is what every installer would install.  All members
 * are checked before any is decoded.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "wheel.h"

enum {
	END_SIZE = 22,
	END64_SIZE = 56,
	LOCATOR_SIZE = 20,
	ENTRY_SIZE = 46,
	LOCAL_SIZE = 30,
	COMMENT_MAX = 65535,
	EXTRA_ZIP64 = 1,
	EXTRA_PATH = 0x7075, /* a second name, which some tools use */
	PATH_BEFORE = 5,     /* its version and CRC */
	ENCRYPTED = 1 << 0,  /* bits of a member's flags */
	DESCRIPTOR = 1 << 3,
};

/*
 * The fields, all little-endian, by offset:
 *
 *	end record	4 disks, 8 members on this one, 10 members, 12 size and 16 offset of
 *			the directory, 20 size of the comment that follows
 *	zip64 record	4 size of the rest, 16 disks, 24 members on this one, 32 members,
 *			40 size and 48 offset of the directory
 *	locator		4 disk and 8 offset of the zip64 record, 16 disks
 *	entry		6 version needed, 8 flags, 10 method, 12 time, 16 CRC, 20 size and
 *			24 decoded size, 28 size of the name, 30 of extra fields, 32 of the
 *			comment, which follow; 34 disk, 36 attributes, 38 mode << 16,
 *			42 offset of the local header
 *	local header	those from 6 to 30 of the entry, at 4 to 28; name and extra fields follow
 *	extra field	0 kind, 2 size of what follows
 */

/* Where the central directory is, and how many members it has. */
struct directory {
	uint64_t count, size, offset;
	uint64_t end; /* what follows it: the end record, or zip64's */
};

static kpack_error_t refuse_archive(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s", text);
}

static kpack_error_t refuse_member(struct kpackx_error *why, const char *path,
				   const char *text)
{
	char shown[160];

	kp_text_escape(kp_span_str(path), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: %s", shown, text);
}

/* --- the directory -------------------------------------------------------------------- */

/*
 * Find the end record, and what it or the zip64 record in front of it says.  A comment may follow
 * it, and contain what looks like another.  Tools that search from the end and those that
 * check the comment's size would find different ones, so the record must be the last one
 * whose comment ends exactly with the file.
 */
static kpack_error_t find_directory(const struct kp_source *src, struct directory *d,
				    struct kpackx_error *why)
{
	const size_t room = END_SIZE + COMMENT_MAX;
	size_t n = src->size < room ? (size_t)src->size : room;
	KP_AUTO_FREE uint8_t *tail = xmalloc(n);
	uint8_t locator[LOCATOR_SIZE], end64[END64_SIZE];
	const uint8_t *end = NULL;
	uint64_t at, before;

	KP_TRY(kp_source_read(src, src->size - n, tail, n, why));
	for (size_t i = n < END_SIZE ? 0 : n - END_SIZE + 1; !end && i > 0; i--) {
		const uint8_t *p = tail + i - 1;

		if (kp_le32(p) == ZIP_END && kp_le16(p + 20) == n - (i - 1) - END_SIZE)
			end = p;
	}
	if (!end)
		return refuse_archive(why, "not a zip archive, or bytes follow its end");
	*d = (struct directory){kp_le16(end + 10), kp_le32(end + 12), kp_le32(end + 16),
				src->size - n + (uint64_t)(end - tail)};
	if (d->count == UINT16_MAX || d->size == UINT32_MAX || d->offset == UINT32_MAX) {
		if (d->end < LOCATOR_SIZE)
			return refuse_archive(why, "the zip64 record is missing");
		before = d->end - LOCATOR_SIZE;
		KP_TRY(kp_source_read(src, before, locator, sizeof(locator), why));
		at = kp_le64(locator + 8);
		if (kp_le32(locator) != ZIP_LOCATOR ||
		    !kp_range_ok(before, at, END64_SIZE))
			return refuse_archive(why, "the zip64 record is missing");
		if (kp_le32(locator + 4) || kp_le32(locator + 16) > 1)
			return refuse_archive(why, "an archive of several disks");
		KP_TRY(kp_source_read(src, at, end64, sizeof(end64), why));
		if (kp_le32(end64) != ZIP_END64 || kp_le64(end64 + 4) < END64_SIZE - 12 ||
		    kp_le64(end64 + 4) != before - at - 12)
			return refuse_archive(why, "the zip64 record is malformed");
		if (kp_le32(end64 + 16) || kp_le32(end64 + 20) ||
		    kp_le64(end64 + 24) != kp_le64(end64 + 32))
			return refuse_archive(why, "an archive of several disks");
		*d = (struct directory){kp_le64(end64 + 32), kp_le64(end64 + 40),
					kp_le64(end64 + 48), at};
	} else if (kp_le16(end + 4) || kp_le16(end + 6) || kp_le16(end + 8) != d->count) {
		return refuse_archive(why, "an archive of several disks");
	}

	/* nothing between the directory and its end: it would be in no tool's view */
	if (!kp_range_ok(d->end, d->offset, d->size) || d->end - d->offset != d->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "directory: %" PRIu64 " bytes at %" PRIu64
			       " do not end at %" PRIu64,
			       d->size, d->offset, d->end);
	if (d->count > WHEEL_MEMBERS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " members, at most %d", d->count,
			       WHEEL_MEMBERS_MAX);
	if (d->count > d->size / ENTRY_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "directory: %" PRIu64 " members in %" PRIu64 " bytes",
			       d->count, d->size);
	return KPACK_SUCCESS;
}

/*
 * Read the zip64 field of M, SIZE bytes at OFF: each number of M that is all ones, in this
 * order, is in it instead.
 */
static kpack_error_t read_extra64(struct kp_window *w, uint64_t off, size_t size,
				  struct wheel_member *m, struct kpackx_error *why)
{
	uint64_t *const values[] = {&m->size, &m->compressed, &m->at};
	size_t left = size < 24 ? size : 24;
	const uint8_t *p;

	KP_TRY(kp_window_get(w, off, left, &p, why));
	for (size_t i = 0; i < KP_COUNT(values); i++) {
		if (*values[i] != UINT32_MAX)
			continue;
		if (left < 8)
			return refuse_archive(why, "directory: a zip64 field is short");
		*values[i] = kp_le64(p);
		p += 8;
		left -= 8;
	}
	return KPACK_SUCCESS;
}

/* Read the entry at *OFF, and move *OFF past it; entries end at END. */
static kpack_error_t read_entry(struct kp_window *w, uint64_t *off, uint64_t end,
				struct wheel_member *m, struct kpackx_error *why)
{
	size_t extra, comment, n, id;
	const uint8_t *p;
	uint64_t at;

	if (!kp_range_ok(end, *off, ENTRY_SIZE))
		return refuse_archive(why, "directory: fewer members than its end says");
	KP_TRY(kp_window_get(w, *off, ENTRY_SIZE, &p, why));
	if (kp_le32(p) != ZIP_ENTRY)
		return refuse_archive(why,
				      "directory: an entry without its magic number");
	m->needs = kp_le16(p + 6);
	m->flags = kp_le16(p + 8);
	m->method = kp_le16(p + 10);
	m->time = kp_le32(p + 12);
	m->crc = kp_le32(p + 16);
	m->compressed = kp_le32(p + 20);
	m->size = kp_le32(p + 24);
	m->name_size = kp_le16(p + 28);
	extra = kp_le16(p + 30);
	comment = kp_le16(p + 32);
	m->text = p[36] & 1;
	m->attributes = kp_le32(p + 38);
	m->at = kp_le32(p + 42);
	if (kp_le16(p + 34) != 0)
		return refuse_archive(why, "an archive of several disks");
	at = *off + ENTRY_SIZE;
	if (!kp_range_ok(end, at, m->name_size + extra + comment))
		return refuse_archive(why, "directory: an entry is cut short");
	if (m->name_size > KP_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "directory: a name of %u bytes", m->name_size);
	KP_TRY(kp_window_get(w, at, m->name_size, &p, why));
	m->path = xcalloc(1, m->name_size + 1u);
	memcpy(m->path, p, m->name_size);
	at += m->name_size;
	*off = at + extra + comment;
	for (; extra >= 4; at += n, extra -= n) {
		KP_TRY(kp_window_get(w, at, 4, &p, why));
		id = kp_le16(p);
		n = 4u + kp_le16(p + 2);
		if (n > extra)
			return refuse_archive(why,
					      "directory: an extra field is too long");
		if (id == EXTRA_PATH) { /* it must be the same name */
			bool same = n == 4u + PATH_BEFORE + m->name_size;

			if (same)
				KP_TRY(kp_window_get(w, at + 4 + PATH_BEFORE,
						     m->name_size, &p, why));
			if (!same || memcmp(m->path, p, m->name_size) != 0)
				return refuse_archive(
					why, "directory: a member's second name differs");
		}
		if (id == EXTRA_ZIP64)
			KP_TRY(read_extra64(w, at + 4, n - 4, m, why));
	}
	return KPACK_SUCCESS;
}

/* --- members -------------------------------------------------------------------------- */

/* Check what the entry of M says, its name first. */
static kpack_error_t check_member(struct wheel_member *m, struct kpackx_error *why)
{
	struct kp_span path = {(const uint8_t *)m->path, m->name_size};
	mode_t mode = m->attributes >> 16, type = mode & S_IFMT;
	KP_AUTO_FREE char *name = xstrdup(m->path);
	const char *fault;

	if (strlen(m->path) != m->name_size)
		return refuse_member(why, name, "its entry can be read in two ways");
	m->directory = path.size && path.data[path.size - 1] == '/';
	path.size -= m->directory;
	m->path[path.size] = '\0';
	fault = kp_path_fault(path);
	if (fault)
		return refuse_member(why, name, fault);
	if (strchr(m->path, '\\'))
		return refuse_member(why, name, "it has a backslash");
	/* on Windows such a path leaves the directory into which a wheel is installed */
	if (isalpha((unsigned char)m->path[0]) && m->path[1] == ':')
		return refuse_member(why, name, "it begins with a drive");

	if (m->flags & ENCRYPTED)
		return refuse_member(why, m->path, "encrypted");
	if (m->method != ZIP_STORED && m->method != ZIP_DEFLATED)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: compression method %d", m->path, m->method);
	if (m->method == ZIP_STORED && m->size != m->compressed)
		return refuse_member(why, m->path, "stored with another size");
	if (m->directory && m->size)
		return refuse_member(why, m->path, "a directory with bytes");
	/* before anything is decoded, and before room is made for it */
	if (m->size / KP_ZLIB_RATIO_MAX > m->compressed)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %" PRIu64 " bytes cannot decode to %" PRIu64, m->path,
			       m->compressed, m->size);

	/* permission bits count whatever system the entry claims, as for installers */
	if (S_ISLNK(mode))
		return refuse_member(why, m->path, "a symbolic link");
	if (type && type != (m->directory ? S_IFDIR : S_IFREG))
		return refuse_member(why, m->path, "neither a file nor a directory");
	m->mode = mode & 0777;
	if (m->mode == 0)
		m->mode = m->directory ? 0755 : 0644;
	return KPACK_SUCCESS;
}

/* Compare the entry of M with the header in front of M's bytes, and find these. */
static kpack_error_t check_local(struct kp_window *w, struct wheel_member *m,
				 struct kpackx_error *why)
{
	static const char differ[] = "a member's two headers differ";
	struct wheel_member local;
	size_t extra, n;
	const uint8_t *p;
	uint64_t at = m->at + LOCAL_SIZE;

	KP_TRY(kp_window_get(w, m->at, LOCAL_SIZE, &p, why));
	local = (struct wheel_member){
		.needs = kp_le16(p + 4),
		.flags = kp_le16(p + 6),
		.method = kp_le16(p + 8),
		.time = kp_le32(p + 10),
		.crc = kp_le32(p + 14),
		.compressed = kp_le32(p + 18),
		.size = kp_le32(p + 22),
		.name_size = kp_le16(p + 26),
	};
	extra = kp_le16(p + 28);
	m->at = at + local.name_size + extra;
	if (kp_le32(p) != ZIP_LOCAL || local.name_size != m->name_size ||
	    !kp_range_ok(m->end, m->at, m->compressed))
		return refuse_archive(why, differ);
	KP_TRY(kp_window_get(w, at, m->name_size, &p, why));
	n = strlen(m->path);
	if (memcmp(p, m->path, n) != 0 || (m->directory && p[n] != '/'))
		return refuse_archive(why, differ);
	at += m->name_size;
	for (; extra >= 4; at += n, extra -= n) {
		KP_TRY(kp_window_get(w, at, 4, &p, why));
		n = 4u + kp_le16(p + 2);
		if (n > extra)
			break;
		if (kp_le16(p) == EXTRA_ZIP64) {
			KP_TRY(read_extra64(w, at + 4, n - 4, &local, why));
			break;
		}
	}
	if (local.needs > m->needs || local.method != m->method || local.time != m->time)
		return refuse_archive(why, differ);
	if (local.crc == m->crc && local.compressed == m->compressed &&
	    local.size == m->size)
		return KPACK_SUCCESS;
	/* a stream's header leaves them to a descriptor behind the bytes */
	return (local.flags & DESCRIPTOR) && !local.crc && !local.compressed &&
			       !local.size
		       ? KPACK_SUCCESS
		       : refuse_archive(why, differ);
}

kpack_error_t wheel_in_read(struct wheel_in *w, const struct kp_source *src,
			    struct kpackx_error *why)
{
	struct place {
		uint64_t at;
		size_t member;
	};
	KP_AUTO_FREE struct place *places = NULL;
	struct directory d = {0};
	struct kp_window window;
	char above[KP_NAME_MAX + 1];
	uint64_t off, end, sum = 0;
	size_t member;

	w->size = src->size;
	KP_TRY(find_directory(src, &d, why));
	KP_TRY(kp_new(&w->members, (size_t)d.count + 1, "members", why));
	kp_window_init(&window, src);
	for (off = d.offset; w->count < d.count;)
		KP_TRY(read_entry(&window, &off, d.end, &w->members[w->count++], why));
	if (off != d.end)
		return refuse_archive(why, "directory: more than its members");
	/*
	 * Each member has room until the next one, or the directory, begins.  Overlapping members
	 * are how a small file becomes petabytes, and a member that reaches into the directory
	 * could be one thing as bytes and another as an entry.
	 */
	KP_TRY(kp_new(&places, w->count + 1, "members", why));
	for (size_t i = 0; i < w->count; i++)
		places[i] = (struct place){w->members[i].at, i};
	kp_sort(places, w->count, KP_BY_NUMBER(struct place, at));
	end = d.offset;
	for (size_t i = w->count; i > 0; i--) {
		struct wheel_member *m = &w->members[places[i - 1].member];

		m->end = end;
		if (!kp_range_ok(end, m->at, LOCAL_SIZE + m->name_size) ||
		    m->compressed > end - m->at - LOCAL_SIZE - m->name_size)
			return refuse_archive(
				why, "members overlap, or reach into the directory");
		end = m->at;
	}
	for (size_t i = 0; i < w->count; i++)
		KP_TRY(check_member(&w->members[i], why));
	/* subtract instead of adding: sizes can be any 64-bit number */
	for (size_t i = 0; i < w->count; i++) {
		if (w->members[i].size > WHEEL_SIZE_MAX - sum)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "decodes to more than %" PRIu64 " bytes",
				       WHEEL_SIZE_MAX);
		sum += w->members[i].size;
	}
	if (sum > WHEEL_RATIO_FREE && sum / WHEEL_RATIO_MAX > w->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " bytes decode to %" PRIu64
			       ", more than %d times as many",
			       w->size, sum, WHEEL_RATIO_MAX);
	/*
	 * No member occurs twice, or stands below a member that is a file.  This comes before the
	 * headers are compared, because that names no member.
	 */
	KP_TRY(kp_new(&w->by_path, w->count + 1, "members", why));
	for (size_t i = 0; i < w->count; i++)
		w->by_path[i] = (struct wheel_path){w->members[i].path, i};
	kp_sort(w->by_path, w->count, KP_BY_TEXT(struct wheel_path, path));
	for (size_t i = 1; i < w->count; i++)
		if (strcmp(w->by_path[i - 1].path, w->by_path[i].path) == 0)
			return refuse_member(why, w->by_path[i].path, "it occurs twice");
	for (size_t i = 0; i < w->count; i++) {
		memcpy(above, w->members[i].path, strlen(w->members[i].path) + 1);
		for (char *slash = above; (slash = strchr(slash, '/')); *slash++ = '/') {
			*slash = '\0';
			if (wheel_in_find(w, above, &member) &&
			    !w->members[member].directory)
				return refuse_member(why, w->members[i].path,
						     "it stands below a file");
		}
	}
	for (size_t i = 0; i < w->count; i++)
		KP_TRY(check_local(&window, &w->members[i], why));
	return KPACK_SUCCESS;
}

kpack_error_t wheel_in_open(const char *path, struct wheel_in **out,
			    struct kpackx_error *why)
{
	struct wheel_in *w = xcalloc(1, sizeof(*w));
	struct kp_source src;
	struct stat st;
	kpack_error_t err;

	w->fd = -1;
	err = below_file_open(path, &w->fd, &st, why);
	if (!err) {
		src = kp_source_fd(w->fd, 0, (uint64_t)st.st_size);
		err = wheel_in_read(w, &src, why);
	}
	if (err)
		wheel_in_close(w);
	else
		*out = w;
	return err;
}

void wheel_in_fini(struct wheel_in *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->members[i].path);
	free(w->members);
	free(w->by_path);
}

void wheel_in_close(struct wheel_in *w)
{
	if (!w)
		return;
	wheel_in_fini(w);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

bool wheel_in_find(const struct wheel_in *w, const char *path, size_t *member)
{
	const struct wheel_path probe = {.path = path};
	const struct wheel_path *found = kp_find(w->by_path, w->count, &probe,
						 KP_BY_TEXT(struct wheel_path, path));

	if (found)
		*member = found->member;
	return found;
}

struct kp_source wheel_in_bytes(const struct wheel_in *w, size_t member)
{
	return kp_source_fd(w->fd, w->members[member].at, w->members[member].compressed);
}

/* --- decoding ------------------------------------------------------------------------- */

struct wheel_reader {
	const struct wheel_in *w;
	z_stream z;
	uint8_t in[128 << 10], out[128 << 10];
};

struct wheel_reader *wheel_reader_new(const struct wheel_in *w)
{
	struct wheel_reader *r = xcalloc(1, sizeof(*r));

	r->w = w;
	/* negative: raw deflate without a header, as in zip */
	if (inflateInit2(&r->z, -MAX_WBITS) != Z_OK)
		xalloc_fail(0);
	return r;
}

void wheel_reader_free(struct wheel_reader *r)
{
	if (r)
		inflateEnd(&r->z);
	free(r);
}

kpack_error_t wheel_reader_read(struct wheel_reader *r, size_t member, wheel_take *take,
				void *arg, struct kpackx_error *why)
{
	const struct wheel_member *m = &r->w->members[member];
	struct kp_source src = wheel_in_bytes(r->w, member);
	bool deflated = m->method == ZIP_DEFLATED, ended = !deflated, more = false;
	uint64_t at = 0, done = 0;
	uint32_t crc = 0;

	inflateReset(&r->z);
	r->z.avail_in = 0;
	/* each buffer of output is given away at once: a member may be larger than the memory */
	while (more || (at < src.size && (!deflated || !ended))) {
		const uint8_t *bytes = r->in;
		size_t n = src.size - at < sizeof(r->in) ? (size_t)(src.size - at)
							 : sizeof(r->in);

		if (!more) {
			KP_TRY(kp_source_read(&src, at, r->in, n, why));
			at += n;
			r->z.next_in = r->in;
			r->z.avail_in = (uInt)n;
		}
		if (deflated) {
			int result;

			r->z.next_out = r->out;
			r->z.avail_out = sizeof(r->out);
			result = inflate(&r->z, Z_NO_FLUSH);
			if (result == Z_MEM_ERROR)
				return kp_fail_memory(why, 0, m->path);
			if (result != Z_OK && result != Z_STREAM_END &&
			    result != Z_BUF_ERROR)
				return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					       "%s: does not decode: %s", m->path,
					       r->z.msg ? r->z.msg : "damaged");
			ended = result == Z_STREAM_END;
			more = !ended && r->z.avail_out == 0;
			bytes = r->out;
			n = sizeof(r->out) - r->z.avail_out;
		}
		if (n > m->size - done)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: decodes to more than %" PRIu64 " bytes",
				       m->path, m->size);
		done += n;
		crc = (uint32_t)crc32_z(crc, bytes, n);
		if (n)
			KP_TRY(take(arg, (struct kp_span){bytes, n}, why));
	}
	if (done != m->size || !ended)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: decodes to %" PRIu64 " bytes of %" PRIu64, m->path,
			       done, m->size);
	return crc == m->crc ? KPACK_SUCCESS
			     : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: its bytes do not match its CRC", m->path);
}

static kpack_error_t append_text(void *arg, struct kp_span data, struct kpackx_error *why)
{
	char **to = arg;

	(void)why; /* never more than the member's size */
	*to = mempcpy(*to, data.data, data.size);
	return KPACK_SUCCESS;
}

kpack_error_t wheel_in_text(const struct wheel_in *w, size_t member, size_t max,
			    char **text, size_t *size, struct kpackx_error *why)
{
	const struct wheel_member *m = &w->members[member];
	KP_AUTO_FREE char *bytes = NULL;
	struct wheel_reader *r;
	kpack_error_t err;
	char *to;

	if (m->size > max)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %" PRIu64 " bytes, at most %zu", m->path, m->size,
			       max);
	KP_TRY(kp_new(&bytes, (size_t)m->size + 1, m->path, why));
	to = bytes;
	r = wheel_reader_new(w);
	err = wheel_reader_read(r, member, append_text, &to, why);
	wheel_reader_free(r);
	if (err)
		return err;
	*size = (size_t)m->size;
	*text = bytes;
	bytes = NULL;
	return KPACK_SUCCESS;
}
