/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as text for terminals and in JSON: only characters that are seen come out,
 * and the bytes can be had back.
 */
#include "core/base/json.h"
#include "core/base/text.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_visible(struct kp_span s, size_t size_min)
{
	assert(s.size >= size_min);
	for (size_t i = 0, n; i < s.size; i += n) {
		uint32_t c;

		n = kp_text_char(kp_span_tail(s, i), &c);
		assert(n && kp_text_visible(c));
	}
}

/* The bytes that TEXT was made of: an escape is the only use of a backslash. */
static void check_back(const char *text, struct kp_span s)
{
	for (size_t i = 0; i < s.size; i++) {
		unsigned c = (uint8_t)*text++;

		if (c == '\\') {
			c = (unsigned)(text[0] - '0') << 6 |
			    (unsigned)(text[1] - '0') << 3 | (unsigned)(text[2] - '0');
			text += 3;
		}
		assert(c == s.data[i]);
	}
	assert(*text == '\0');
}

static void check_message(struct kp_span s)
{
	char *once = kp_message_escape_new(s), *twice;

	assert(once);
	check_visible(kp_span_str(once), s.size);
	twice = kp_message_escape_new(kp_span_str(once));
	assert(twice && strcmp(once, twice) == 0);
	free(once);
	free(twice);
}

/* The escape begins with the plain bytes, and changes what follows unless it is UTF-8. */
static void check_plain(struct kp_span s, const char *whole)
{
	size_t n = kp_text_plain(s);

	assert(n <= s.size && memcmp(whole, s.data, n) == 0);
	assert(n == s.size || whole[n] == '\\' || s.data[n] >= 0x80);
}

/* Every cut is one that the whole text begins with. */
static void check_cuts(struct kp_span s, const char *whole)
{
	char out[40];

	for (size_t cap = 1; cap <= sizeof(out); cap++) {
		kp_text_escape(s, out, cap);
		assert(strlen(out) < cap && strncmp(out, whole, strlen(out)) == 0);
		check_visible(kp_span_str(out), 0);
	}
}

static void check_json(struct kp_span s)
{
	struct kp_span text;
	struct kp_json j = {.limit = 12 * s.size + 2};

	kp_json_string(&j, s);
	assert(kp_json_finish(&j, &text, NULL) == KPACK_SUCCESS);
	check_visible(text, 2);
	kp_json_fini(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_span s = {data, size};
	char *whole = kp_text_escape_new(s);

	assert(whole);
	check_visible(kp_span_str(whole), size);
	check_back(whole, s);
	check_plain(s, whole);
	check_cuts(s, whole);
	check_message(s);
	check_json(s);
	free(whole);
	return 0;
}
