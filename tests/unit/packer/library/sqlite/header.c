/* SPDX-License-Identifier: MIT */
#include "packer/library/sqlite/header.h"
#include "tests/unit/unit.h"

static struct kpackx_error why;

/* Three pages of 1024 bytes, as SQLite writes them. */
static size_t good(uint8_t bytes[4096])
{
	memset(bytes, 0, 4096);
	memcpy(bytes, "SQLite format 3", 16);
	memcpy(bytes + 16, "\4\0\1\1\0\100\040\040\0\0\0\7\0\0\0\3", 16);
	bytes[47] = 4;
	bytes[59] = 1;
	bytes[95] = 7;
	return 3072;
}

static kpack_error_t check(const uint8_t *bytes, size_t size)
{
	struct kp_source source = kp_source_memory(bytes, size);

	why = (struct kpackx_error){0};
	return sqlite_header_check(&source, bytes, size < 512 ? size : 512, &why);
}

/* The bytes of a field, and the message for them; NULL: valid. */
static const struct {
	size_t at;
	const char *bytes;
	size_t size;
	const char *says;
} fields[] = {
	{0, "S", 1, NULL},
	{0, "s", 1, "not an SQLite database"},
	{15, "4", 1, "not an SQLite database"},
	{16, "\2\0", 2, NULL}, /* smaller pages, so fewer bytes are needed */
	{16, "\2\1", 2, "page size (byte 16) is 513, not a power of two"},
	{16, "\1\0", 2, "page size (byte 16) is 256"},
	{16, "\0\0", 2, "page size (byte 16) is 0"},
	{16, "\0\1", 2, "is 3, 196608 bytes, but the file has 3072: it is cut short"},
	{18, "\2", 1, "write version (byte 18) is 2: WAL mode"},
	{19, "\2", 1, "read version (byte 19) is 2: WAL mode"},
	{18, "\0", 1, "write version (byte 18) is 0, not 1"},
	{19, "\3", 1, "read version (byte 19) is 3, not 1"},
	{20, "\40", 1, NULL},
	{20, "\377", 1, NULL}, /* of page size 1024 */
	{21, "\101", 1, "payload fractions (byte 21) is 65"},
	{23, "\41", 1, "payload fractions"},
	{28, "\0\0\0\4", 4, "page count (byte 28) is 4, 4096 bytes"},
	{28, "\0\0\0\2", 4, NULL}, /* bytes after the last page are ignored */
	{28, "\377\377\377\377", 4, "is 4294967295, 4398046510080 bytes"},
	{28, "\0\0\0\0", 4, NULL}, /* written by an old SQLite */
	{24, "\0\0\0\1", 4, NULL},
	{44, "\0\0\0\5", 4, "schema format (byte 44) is 5"},
	{56, "\0\0\0\4", 4, "text encoding (byte 56) is 4"},
	{72, "\1", 1, "reserved byte (byte 72) is 1"},
	{91, "\1", 1, "reserved byte (byte 91) is 1"},
};

TEST(each_field_is_looked_at)
{
	uint8_t bytes[4096];

	for (size_t i = 0; i < COUNT(fields); i++) {
		size_t size = good(bytes);

		memcpy(bytes + fields[i].at, fields[i].bytes, fields[i].size);
		if (!fields[i].says) {
			if (check(bytes, size))
				fail_msg("%zu: %s", i, why.text);
			continue;
		}
		assert_int_equal(check(bytes, size), KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, fields[i].says);
	}
}

TEST(wal_mode_error_says_how_to_leave_it)
{
	uint8_t bytes[4096];
	size_t size = good(bytes);

	bytes[18] = bytes[19] = 2;
	assert_int_equal(check(bytes, size), KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, "PRAGMA journal_mode=DELETE");
}

TEST(shorter_files_are_cut_short)
{
	uint8_t bytes[4096];

	good(bytes);
	for (size_t size = 0; size < 3072; size++)
		if (check(bytes, size) != KPACK_ERROR_INVALID_FORMAT)
			fail_msg("%zu bytes pass", size);
	assert_int_equal(check(bytes, 3072), KPACK_SUCCESS);
	assert_int_equal(check(bytes, 4000), KPACK_SUCCESS);
	/* without a page count the file must be whole pages */
	bytes[95] = 8;
	assert_int_equal(check(bytes, 2048), KPACK_SUCCESS);
	assert_int_equal(check(bytes, 2047), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(check(bytes, 512), KPACK_ERROR_INVALID_FORMAT);
}

TEST(reserved_bytes_must_leave_something)
{
	uint8_t bytes[4096];
	size_t size = good(bytes);

	memcpy(bytes + 16, "\2\0", 2);
	bytes[20] = 32;
	assert_int_equal(check(bytes, size), KPACK_SUCCESS);
	bytes[20] = 33;
	assert_int_equal(check(bytes, size), KPACK_ERROR_INVALID_FORMAT);
}
