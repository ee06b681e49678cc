/* SPDX-License-Identifier: MIT */
/*
 * The first 100 bytes of an SQLite database, which say without SQLite whether it is whole, and
 * whether a loader can open it where nothing can be written.  Fields are big-endian:
 *
 *	0 magic, 16 page size, 18 and 19 write and read version, 20 reserved bytes of a page,
 *	21 to 23 payload fractions, 24 number of changes, 28 number of pages, 44 schema format,
 *	56 text encoding, 72 to 91 zeros, 92 the number of changes for which 28 is valid
 */
#include <string.h>
#include "sqlite.h"

enum { HEADER_SIZE = 100 };

static const char magic[16] = "SQLite format 3";

static uint32_t get_be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t get_be32(const uint8_t *p)
{
	return get_be16(p) << 16 | get_be16(p + 2);
}

bool sqlite_header_probe(const uint8_t *head, size_t head_size)
{
	return head_size >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0;
}

static kpack_error_t fail_field(struct kpackx_error *why, const char *field, int at,
				uint32_t value, const char *wanted)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "SQLite header: %s (byte %d) is %u, not %s", field, at, value,
		       wanted);
}

static kpack_error_t check_fields(const uint8_t *head, uint32_t page_size,
				  struct kpackx_error *why)
{
	if (page_size < 512 || page_size > 65536 || (page_size & (page_size - 1)))
		return fail_field(why, "page size", 16, get_be16(head + 16),
				  "a power of two from 512 to 32768, or 1");
	for (int at = 18; at <= 19; at++) {
		const char *field = at == 18 ? "write version" : "read version";

		if (head[at] == 2)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "SQLite header: %s (byte %d) is 2: WAL mode, "
				       "which cannot "
				       "be read from a read-only mount; switch it with "
				       "PRAGMA journal_mode=DELETE",
				       field, at);
		if (head[at] != 1)
			return fail_field(why, field, at, head[at], "1");
	}
	if (page_size - head[20] < 480)
		return fail_field(why, "reserved bytes of a page", 20, head[20],
				  "a number that leaves 480 of each page");
	if (memcmp(head + 21, "\100\040\040", 3) != 0)
		return fail_field(why, "payload fractions", 21, head[21],
				  "64, 32 and 32");
	if (get_be32(head + 44) > 4)
		return fail_field(why, "schema format", 44, get_be32(head + 44),
				  "0 to 4");
	if (get_be32(head + 56) > 3)
		return fail_field(why, "text encoding", 56, get_be32(head + 56),
				  "0 to 3");
	for (int at = 72; at < 92; at++)
		if (head[at])
			return fail_field(why, "reserved byte", at, head[at], "0");
	return KPACK_SUCCESS;
}

kpack_error_t sqlite_header_check(const struct kp_source *source, const uint8_t *head,
				  size_t head_size, struct kpackx_error *why)
{
	unsigned long long size = source->size;
	uint32_t page_size, pages;
	bool stated;

	if (head_size && memcmp(head, magic, head_size < 16 ? head_size : 16) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "not an SQLite database: it does not begin with "
			       "\"SQLite format 3\"");
	if (head_size < HEADER_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: the file has %llu of its %d bytes", size,
			       HEADER_SIZE);
	page_size = get_be16(head + 16);
	if (page_size == 1)
		page_size = 65536;
	KP_TRY(check_fields(head, page_size, why));
	/*
	 * The page count is valid only if the last writer set it: SQLite before 3.7 did not.
	 * A file may have more bytes than the count says: SQLite does not read them.
	 */
	pages = get_be32(head + 28);
	stated = pages && get_be32(head + 24) == get_be32(head + 92);
	if (stated && size < (uint64_t)pages * page_size)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"SQLite header: page count (byte %d) is %u, %llu bytes, but "
			"the file has %llu: it is cut short",
			28, pages, (unsigned long long)pages * page_size, size);
	if (!stated && (size < page_size || size % page_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: page size (byte %d) is %u, and the file's "
			       "%llu bytes are no whole pages: it is cut short",
			       16, page_size, size);
	return KPACK_SUCCESS;
}
