/* SPDX-License-Identifier: MIT */
#include "core/base/json.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include <locale.h>
#include <sys/stat.h>
#include "tests/unit/unit.h"

static struct kpackx_error why;

/* The value as JSON, on the heap; NULL, with the reason in why, on failure. */
static char *printed(const void *bytes, size_t size)
{
	struct kp_mp c = kp_mp_over((struct kp_span){bytes, size});
	struct kp_json j = {.limit = KP_JSON_MAX};
	struct kp_span out;
	char *text = NULL;

	why = (struct kpackx_error){0};
	kp_json_value(&j, &c);
	if (kp_json_finish(&j, &out, &why) == KPACK_SUCCESS)
		text = strndup((const char *)out.data, out.size);
	kp_json_fini(&j);
	return text;
}

static void check(const void *bytes, size_t size, const char *want)
{
	char *text = printed(bytes, size);

	if (!text)
		fail_msg("%s: %s", want, why.text);
	assert_string_equal(text, want);
	free(text);
}

/* localedef's output for LC_NUMERIC with the decimal point "," */
static const char comma[] =
	"\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x24\0\0\0\x28\0\0\0"
	"\x2c\0\0\0\x30\0\0\0,\0.\0\3\3\0\0,\0\0\0.\0\0\0ANSI_X3.4-1968";

TEST(the_locale_has_no_say)
{
	char dir[] = "/tmp/json-locale-XXXXXX", path[64], text[16];
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/point", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/point/LC_NUMERIC", dir);
	f = fopen(path, "wb");
	assert_true(f && fwrite(comma, sizeof(comma), 1, f) == 1 && fclose(f) == 0);
	setenv("LOCPATH", dir, 1);
	assert_non_null(setlocale(LC_NUMERIC, "point"));
	snprintf(text, sizeof(text), "%.1f", 1.5);
	assert_string_equal(text, "1,5");
	check("\xcb\x3f\xf8\0\0\0\0\0\0", 9, "1.5");
	setlocale(LC_NUMERIC, "C");
	unsetenv("LOCPATH");
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(dir);
}

/* --- bounds --------------------------------------------------------------------------- */

TEST(nesting_is_bounded)
{
	uint8_t bytes[100];
	char *text;

	memset(bytes, 0x91, sizeof(bytes));
	bytes[KP_MSGPACK_DEPTH_MAX] = 0;
	text = printed(bytes, KP_MSGPACK_DEPTH_MAX + 1);
	assert_non_null(text);
	free(text);
	bytes[KP_MSGPACK_DEPTH_MAX] = 0x91;
	bytes[sizeof(bytes) - 1] = 0;
	assert_null(printed(bytes, sizeof(bytes)));
	assert_int_equal(why.code, KPACK_ERROR_MSGPACK_PARSE_FAILED);
}

/* Maps as keys of maps: each level doubles the text. */
TEST(quotes_within_quotes_are_bounded)
{
	uint8_t bytes[128];
	size_t n = 30;

	memset(bytes, 0x81, n);
	memcpy(bytes + n, "\xa1\"", 2);
	memset(bytes + n + 2, 1, n);
	assert_null(printed(bytes, n + 2 + n));
	assert_int_equal(why.code, KPACK_ERROR_OUT_OF_MEMORY);
}

/*
 * Pairs that are left out as duplicates take time too, so they count towards the limit.
 */
TEST(work_is_bounded)
{
	enum { PAIRS = 40000 };
	uint8_t *bytes = malloc(3 + 36 * PAIRS);
	size_t size = 3;

	assert_non_null(bytes);
	memcpy(bytes, "\xde\x9c\x40", 3);
	for (int i = 0; i < PAIRS; i++) {
		bytes[size++] = 0xa0 | 31;
		memset(bytes + size, 'a', 31);
		size += 31;
		bytes[size++] = 1;
	}
	assert_null(printed(bytes, size));
	assert_string_equal(why.text, "json: more than 1048576 bytes");
	free(bytes);
}

/* --- compared with Python ------------------------------------------------------------- */

enum { VALUES = 2000 };

static void run_oracle(const char *what, const char *path)
{
	const char *source = getenv("KPACK_SRC");
	char command[4096];

	snprintf(command, sizeof(command),
		 "/usr/bin/python3 '%s/tests/integration/jsoncheck.py' %s 1 %d '%s'",
		 source ? source : ".", what, VALUES, path);
	assert_int_equal(system(command), 0);
}

TEST(python_reads_the_same)
{
	char made[] = "/tmp/json-made-XXXXXX", lines[] = "/tmp/json-lines-XXXXXX";
	int fd = mkstemp(made), out = mkstemp(lines);
	uint8_t length[4], bytes[1 << 16];
	FILE *in, *text;

	assert_true(fd >= 0 && out >= 0);
	close(fd);
	run_oracle("make", made);
	in = fopen(made, "rb");
	text = fopen(lines, "wb");
	assert_true(in && text);
	while (fread(length, 4, 1, in) == 1) {
		uint32_t n = kp_le32(length);
		char *json;

		assert_true(n <= sizeof(bytes));
		assert_int_equal(fread(bytes, 1, n, in), n);
		json = printed(bytes, n);
		assert_non_null(json);
		fprintf(text, "%s\n", json);
		free(json);
	}
	fclose(in);
	assert_int_equal(fclose(text), 0);
	run_oracle("check", lines);
	close(out);
	unlink(made);
	unlink(lines);
}
