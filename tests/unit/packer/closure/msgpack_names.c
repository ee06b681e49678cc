/* SPDX-License-Identifier: MIT */
#include "packer/closure/msgpack_names.h"
#include <stdlib.h>
#include "tests/unit/unit.h"

/*
 * {"gfx942": {"AMax": [{"co_path": "a.co", 7: "b"}], "co_path": ["c.co"]}}, and a byte
 * after it
 */
static const char names[] = "\x81\xa6gfx942\x82\xa4"
			    "AMax\x91\x82\xa7"
			    "co_path\xa4"
			    "a.co\x07\xa1"
			    "b\xa7"
			    "co_path\x91\xa4"
			    "c.co\xc0";

static struct msgpack_names x;
static struct kpackx_error why;

static kpack_error_t read_bytes(const void *bytes, size_t size, const char *key)
{
	return msgpack_names_read((struct kp_span){bytes, size}, key, &x, &why);
}

TEST(test_key)
{
	assert_int_equal(read_bytes(names, sizeof(names) - 1, "co_path"), 0);
	/* a string in a list is not the value of a key */
	assert_int_equal(x.count, 1);
	assert_true(kp_span_is(x.items[0], "a.co"));
	msgpack_names_fini(&x);
}

TEST(test_all)
{
	static const char *const wanted[] = {"a.co", "b", "c.co"};

	assert_int_equal(read_bytes(names, sizeof(names) - 1, NULL), 0);
	assert_int_equal(x.count, COUNT(wanted));
	for (size_t i = 0; i < COUNT(wanted); i++)
		assert_true(kp_span_is(x.items[i], wanted[i]));
	msgpack_names_fini(&x);
}

TEST(test_cut)
{
	/* the last byte follows the value */
	for (size_t n = 0; n < sizeof(names) - 2; n++) {
		assert_int_equal(read_bytes(names, n, NULL),
				 KPACK_ERROR_MSGPACK_PARSE_FAILED);
		msgpack_names_fini(&x);
	}
}

TEST(test_hostile)
{
	static const char *const bytes[] = {"\x90", "\xc0", "\xa1x",
					    "\xdf\xff\xff\xff\xff",
					    "\x81\xa1x\xdd\xff\xff\xff\xff"};
	char *deep = malloc(100000);

	assert_non_null(deep);
	for (size_t i = 0; i < COUNT(bytes); i++) {
		assert_int_equal(read_bytes(bytes[i], strlen(bytes[i]), NULL),
				 KPACK_ERROR_MSGPACK_PARSE_FAILED);
		msgpack_names_fini(&x);
	}
	memset(deep, 0x91, 100000);
	memcpy(deep, "\x81\xa1x", 3);
	assert_int_equal(read_bytes(deep, 100000, NULL),
			 KPACK_ERROR_MSGPACK_PARSE_FAILED);
	assert_has(why.text, "nested too deeply");
	msgpack_names_fini(&x);
	free(deep);
}
