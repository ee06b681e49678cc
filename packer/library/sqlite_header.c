/* SPDX-License-Identifier: MIT */
#include "sqlite.h"

/* Offsets of the fields, all big-endian. */
enum {
	PAGE_SIZE = 16,
	WRITE_VERSION = 18,
	READ_VERSION = 19,
	RESERVED = 20,
	FRACTIONS = 21,
	CHANGES = 24,
	PAGES = 28,
	SCHEMA_FORMAT = 44,
	ENCODING = 56,
	ZEROS = 72,
	VALID_FOR = 92,
	HEADER_SIZE = 100,
};

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

static kpack_error_t check_begin(const struct kp_source *source, const uint8_t *head,
				 size_t head_size, struct kpackx_error *why)
{
	if (head_size &&
	    memcmp(head, magic, head_size < sizeof(magic) ? head_size : sizeof(magic)))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "not an SQLite database: it does not begin with "
			       "\"SQLite format 3\"");
	if (head_size < HEADER_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: the file has %llu of its %d bytes",
			       (unsigned long long)source->size, HEADER_SIZE);
	return KPACK_SUCCESS;
}

static kpack_error_t check_version(const uint8_t *head, int at, const char *field,
				   struct kpackx_error *why)
{
	if (head[at] == 2)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: %s (byte %d) is 2: WAL mode, which cannot "
			       "be read from a read-only mount; switch it with "
			       "PRAGMA journal_mode=DELETE",
			       field, at);
	if (head[at] != 1)
		return fail_field(why, field, at, head[at], "1");
	return KPACK_SUCCESS;
}

static bool page_size_ok(uint32_t size)
{
	return size >= 512 && size <= 65536 && (size & (size - 1)) == 0;
}

static kpack_error_t check_fields(const uint8_t *head, uint32_t page_size,
				  struct kpackx_error *why)
{
	if (!page_size_ok(page_size))
		return fail_field(why, "page size", PAGE_SIZE, get_be16(head + PAGE_SIZE),
				  "a power of two from 512 to 32768, or 1");
	KP_TRY(check_version(head, WRITE_VERSION, "write version", why));
	KP_TRY(check_version(head, READ_VERSION, "read version", why));
	if (page_size - head[RESERVED] < 480)
		return fail_field(why, "reserved bytes of a page", RESERVED,
				  head[RESERVED],
				  "a number that leaves 480 of each page");
	if (memcmp(head + FRACTIONS, "\100\040\040", 3))
		return fail_field(why, "payload fractions", FRACTIONS, head[FRACTIONS],
				  "64, 32 and 32");
	if (get_be32(head + SCHEMA_FORMAT) > 4)
		return fail_field(why, "schema format", SCHEMA_FORMAT,
				  get_be32(head + SCHEMA_FORMAT), "0 to 4");
	if (get_be32(head + ENCODING) > 3)
		return fail_field(why, "text encoding", ENCODING,
				  get_be32(head + ENCODING), "0 to 3");
	for (int i = ZEROS; i < VALID_FOR; i++)
		if (head[i])
			return fail_field(why, "reserved byte", i, head[i], "0");
	return KPACK_SUCCESS;
}

/*
 * The page count is valid only if the last writer set it: SQLite before 3.7 did not.  A
 * file may have more bytes than the count says: SQLite does not read them.
 */
static kpack_error_t check_size(const struct kp_source *source, const uint8_t *head,
				uint32_t page_size, struct kpackx_error *why)
{
	uint32_t pages = get_be32(head + PAGES);
	bool stated = pages && get_be32(head + CHANGES) == get_be32(head + VALID_FOR);

	if (stated && source->size < (uint64_t)pages * page_size)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"SQLite header: page count (byte %d) is %u, %llu bytes, but "
			"the file has %llu: it is cut short",
			PAGES, pages, (unsigned long long)pages * page_size,
			(unsigned long long)source->size);
	if (!stated && (source->size < page_size || source->size % page_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: page size (byte %d) is %u, and the file's "
			       "%llu bytes are no whole pages: it is cut short",
			       PAGE_SIZE, page_size, (unsigned long long)source->size);
	return KPACK_SUCCESS;
}

kpack_error_t sqlite_header_check(const struct kp_source *source, const uint8_t *head,
				  size_t head_size, struct kpackx_error *why)
{
	uint32_t page_size;

	KP_TRY(check_begin(source, head, head_size, why));
	page_size = get_be16(head + PAGE_SIZE);
	if (page_size == 1)
		page_size = 65536;
	KP_TRY(check_fields(head, page_size, why));
	return check_size(source, head, page_size, why);
}
