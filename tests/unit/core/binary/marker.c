/* SPDX-License-Identifier: MIT */
#include "core/base/bounds.h"
#include "core/binary/marker.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

#define BYTES(text)                                                                      \
	{                                                                                \
		(const uint8_t *)(text), sizeof(text) - 1                                \
	}

/* MessagePack as readable pieces. */
#define PATHS "\262kpack_search_paths"
#define NAME "\253kernel_name"
#define TWO_PATHS "\222\243a/b\241c"
#define LIB "\250lib/x.so"

TEST(wrappers_have_a_magic_and_version_1)
{
	static const uint8_t fat[] = "FPIH\1\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01"
				     "\x2a\0\0\0\0\0\0\x80";
	struct kp_wrapper w;
	uint8_t bytes[KP_WRAPPER_SIZE];

	assert_true(kp_wrapper_decode(fat, &w));
	assert_int_equal(w.magic, KP_WRAPPER_HIPF);
	assert_int_equal(w.version, 1);
	assert_int_equal(w.pointer, UINT64_C(0x0102030405060708));
	assert_int_equal(w.index, UINT64_C(0x800000000000002a));

	memcpy(bytes, fat, sizeof(bytes));
	memcpy(bytes, "HIPK", 4);
	assert_true(kp_wrapper_decode(bytes, &w));
	assert_int_equal(w.magic, KP_WRAPPER_HIPK);

	memcpy(bytes, "HIPF", 4); /* the magic is a number, not these bytes */
	assert_false(kp_wrapper_decode(bytes, &w));
	memset(bytes, 0, 4);
	assert_false(kp_wrapper_decode(bytes, &w));
}

TEST(wrappers_of_another_version_are_refused)
{
	uint8_t bytes[KP_WRAPPER_SIZE] = "HIPK";
	struct kp_wrapper w = {.index = 7};

	assert_false(kp_wrapper_decode(bytes, &w)); /* 0 */
	bytes[4] = 2;
	assert_false(kp_wrapper_decode(bytes, &w));
	bytes[4] = 1;
	bytes[7] = 1;
	assert_false(kp_wrapper_decode(bytes, &w));
	assert_int_equal(w.index, 7);
	bytes[7] = 0;
	assert_true(kp_wrapper_decode(bytes, &w));
}

/* Markers with name "lib/x.so" and paths "a/b", "c"; SIZE 0: the marker is all of IN. */
static const struct {
	struct kp_span in;
	size_t size;
} good[] = {
	{BYTES("\202" PATHS TWO_PATHS NAME LIB), 0},
	{BYTES("\202" NAME LIB PATHS TWO_PATHS), 0},
	/* the same in longer encodings */
	{BYTES("\336\0\2" PATHS "\334\0\2\331\3a/b\332\0\1c" NAME
	       "\333\0\0\0\10lib/x.so"),
	 0},
	{BYTES("\337\0\0\0\2" NAME LIB PATHS "\335\0\0\0\2\243a/b\241c"), 0},
	/* bytes after the map are ignored */
	{BYTES("\202" PATHS TWO_PATHS NAME LIB "\301\377\0"),
	 sizeof("\202" PATHS TWO_PATHS NAME LIB) - 1},
	/* unknown keys, and keys that are not strings */
	{BYTES("\204\241x\222\300\201\1\2" NAME LIB "\7\303" PATHS TWO_PATHS), 0},
	{BYTES("\204" NAME LIB "\222\1\2\3" PATHS TWO_PATHS "\304\13kernel_name\1"), 0},
	/* the first of equal keys counts, whatever the later ones are */
	{BYTES("\204" PATHS TWO_PATHS NAME LIB NAME "\245other" PATHS "\300"), 0},
	/* members that are not strings */
	{BYTES("\202" PATHS "\226\300\243a/b\1\221\241z\241c\304\1d" NAME LIB), 0},
};

TEST(markers_are_read)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		struct kpackx_error why = {0};
		struct kp_marker m;

		if (kp_marker_parse(good[i].in, &m, &why) != KPACK_SUCCESS)
			fail_msg("row %zu: %s", i, why.text);
		assert_string_equal(m.kernel_name, "lib/x.so");
		assert_int_equal(m.n_search_paths, 2);
		assert_string_equal(m.search_paths[0], "a/b");
		assert_string_equal(m.search_paths[1], "c");
		assert_int_equal(m.size, good[i].size ? good[i].size : good[i].in.size);
		kp_marker_fini(&m);
		assert_null(m.kernel_name);
		assert_int_equal(m.n_search_paths, 0);
		kp_marker_fini(&m);
	}
}

static const struct {
	struct kp_span in;
	const char *reason;
} invalid[] = {
	{BYTES("\300"), "not a map"},
	{BYTES("\222" NAME LIB), "not a map"},
	{BYTES("\243abc"), "not a map"},
	{BYTES("\200"), "kernel_name: missing"},
	{BYTES("\201" PATHS TWO_PATHS), "kernel_name: missing"},
	{BYTES("\201" NAME LIB), "kpack_search_paths: missing"},
	{BYTES("\202" PATHS TWO_PATHS "\304\13kernel_name" LIB), "kernel_name: missing"},
	{BYTES("\202" PATHS TWO_PATHS NAME "\7"), "kernel_name: not a string"},
	{BYTES("\202" PATHS TWO_PATHS NAME "\304\1x"), "kernel_name: not a string"},
	{BYTES("\203" PATHS TWO_PATHS NAME "\300" NAME LIB), "kernel_name: not a string"},
	{BYTES("\202" NAME LIB PATHS LIB), "kpack_search_paths: not an array"},
	{BYTES("\202" NAME LIB PATHS "\200"), "kpack_search_paths: not an array"},
	{BYTES("\203" NAME LIB PATHS "\300" PATHS TWO_PATHS),
	 "kpack_search_paths: not an array"},
	{BYTES("\202" NAME LIB PATHS "\220"), "kpack_search_paths: no string"},
	{BYTES("\202" NAME LIB PATHS "\223\300\1\302"), "kpack_search_paths: no string"},
	{BYTES("\203" NAME LIB PATHS "\220" PATHS TWO_PATHS),
	 "kpack_search_paths: no string"},
	{BYTES("\202" PATHS TWO_PATHS NAME "\243a\0b"), "NUL"},
	{BYTES("\202" NAME LIB PATHS "\222\241a\242b\0"), "NUL"},
};

TEST(markers_without_their_fields_are_invalid)
{
	for (size_t i = 0; i < COUNT(invalid); i++) {
		struct kpackx_error why = {0};
		struct kp_marker m = {.size = 7};

		assert_int_equal(kp_marker_parse(invalid[i].in, &m, &why),
				 KPACK_ERROR_INVALID_METADATA);
		assert_int_equal(why.code, KPACK_ERROR_INVALID_METADATA);
		assert_has(why.text, "marker: ");
		if (!strstr(why.text, invalid[i].reason))
			fail_msg("row %zu: %s", i, why.text);
		assert_int_equal(m.size, 7);
		assert_int_equal(kp_marker_parse(invalid[i].in, &m, NULL),
				 KPACK_ERROR_INVALID_METADATA);
	}
}

/*
 * Each marker cut at each byte; on the heap, so that a sanitizer detects reads past the
 * end.
 */
TEST(markers_cut_short_are_no_messagepack)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		size_t size = good[i].size ? good[i].size : good[i].in.size;

		for (size_t n = 0; n < size; n++) {
			uint8_t *copy = malloc(n ? n : 1);
			struct kpackx_error why = {0};
			struct kp_marker m;

			assert_non_null(copy);
			memcpy(copy, good[i].in.data, n);
			assert_int_equal(
				kp_marker_parse((struct kp_span){copy, n}, &m, &why),
				KPACK_ERROR_MSGPACK_PARSE_FAILED);
			assert_int_equal(why.code, KPACK_ERROR_MSGPACK_PARSE_FAILED);
			free(copy);
		}
	}
}

static const struct kp_span hostile[] = {
	BYTES("\301"),
	BYTES("\337\377\377\377\377"),
	BYTES("\202" NAME LIB PATHS "\335\377\377\377\377\241a"),
	BYTES("\202" NAME "\333\377\377\377\377x"),
	BYTES("\202" NAME LIB PATHS "\222\241a\301"),
	BYTES("\203" NAME LIB PATHS TWO_PATHS "\241x\301"),
};

TEST(counts_are_not_believed)
{
	uint8_t deep[200];
	struct kp_marker m;

	for (size_t i = 0; i < COUNT(hostile); i++)
		assert_int_equal(kp_marker_parse(hostile[i], &m, NULL),
				 KPACK_ERROR_MSGPACK_PARSE_FAILED);
	memset(deep, 0x91, sizeof(deep));
	deep[0] = 0x81;
	deep[sizeof(deep) - 1] = 0xc0;
	assert_int_equal(kp_marker_parse((struct kp_span){deep, sizeof(deep)}, &m, NULL),
			 KPACK_ERROR_MSGPACK_PARSE_FAILED);
	assert_int_equal(kp_marker_parse((struct kp_span){NULL, 0}, &m, NULL),
			 KPACK_ERROR_MSGPACK_PARSE_FAILED);
}

/* A marker whose path makes it exactly SIZE bytes long. */
static struct kp_span big_marker(uint8_t *buffer, size_t size)
{
	static const char front[] = "\202" NAME LIB PATHS "\221\333";
	size_t path = size - (sizeof(front) - 1) - 4;

	memset(buffer, 'p', size);
	memcpy(buffer, front, sizeof(front) - 1);
	for (int i = 0; i < 4; i++)
		buffer[sizeof(front) - 1 + (size_t)i] = (uint8_t)(path >> (24 - 8 * i));
	return (struct kp_span){buffer, size};
}

TEST(markers_are_bounded)
{
	uint8_t *buffer = malloc(KP_MARKER_MAX + 1);
	struct kp_marker m;

	assert_non_null(buffer);
	assert_int_equal(kp_marker_parse(big_marker(buffer, KP_MARKER_MAX), &m, NULL),
			 KPACK_SUCCESS);
	assert_int_equal(m.size, KP_MARKER_MAX);
	kp_marker_fini(&m);
	assert_int_equal(kp_marker_parse(big_marker(buffer, KP_MARKER_MAX + 1), &m, NULL),
			 KPACK_ERROR_MSGPACK_PARSE_FAILED);
	free(buffer);
}
