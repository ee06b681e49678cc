/* SPDX-License-Identifier: MIT */
/* States are read as they were written, and what is printed of them is checked. */
#include "packer/policy/state.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "packer/base/xalloc.h"

/* Write a state with these lists of GPUs, and read it into OUT. */
static kpack_error_t read_back(const char *arch, const char *file_arch, struct state *out)
{
	struct state s = {.tree = xstrdup("/usr"), .arch = xstrdup(arch)};
	const struct state_file file = {.kind = STATE_CHANGED,
					.path = xstrdup("lib/a\33 b.so"),
					.arch = xstrdup(file_arch),
					.before = 9,
					.after = 7,
					.seconds = -1};
	struct state_part *parts = xcalloc(2, sizeof(*parts));
	struct kpackx_error why = {0};
	kpack_error_t err;
	uint8_t *data;
	size_t size;

	parts[0] = (struct state_part){xstrdup("lib/a b/"), xstrdup(arch)};
	parts[1] = (struct state_part){xstrdup("lib/c.so"), xstrdup(file_arch)};
	s.action = "thin";
	state_set_parts(&s, parts, 2);
	state_put_file(&s, &file);
	for (int i = 0; i < 2; i++) {
		const struct state_file packed = {.kind = STATE_PACKED,
						  .path = xstrdup(i ? "lib/d" : "lib/c"),
						  .arch = xstrdup(file_arch),
						  .owned = i};

		state_put_file(&s, &packed);
	}
	data = state_format(&s, &size);
	*out = (struct state){0};
	err = state_parse((struct kp_span){data, size}, out, &why);
	free(data);
	state_fini(&s);
	return err;
}

static void test_same(void **state)
{
	struct state s;

	(void)state;
	assert_int_equal(read_back("gfx1100,gfx90a:xnack+", "-", &s), KPACK_SUCCESS);
	assert_string_equal(s.tree, "/usr");
	assert_string_equal(s.arch, "gfx1100,gfx90a:xnack+");
	assert_int_equal(s.n_files, 3);
	assert_string_equal(s.files[0].path, "lib/a\33 b.so");
	assert_string_equal(s.files[0].arch, "-");
	assert_int_equal(s.files[0].seconds, -1);
	assert_int_equal(s.files[0].kind, STATE_CHANGED);
	assert_int_equal(s.n_parts, 2);
	assert_string_equal(state_find_part(&s, "lib/a b/"), s.arch);
	assert_string_equal(state_find_part(&s, "lib/c.so"), "-");
	assert_null(state_find_part(&s, "lib/c"));
	for (int i = 1; i < 3; i++) {
		assert_int_equal(s.files[i].kind, STATE_PACKED);
		assert_int_equal(s.files[i].owned, i == 2);
	}
	state_fini(&s);
}

static void test_no_gpus(void **state)
{
	static const char *const wrong[] = {"gfx1100\33[31m", "\377", "gfx1100;x"};
	struct state s;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(read_back(wrong[i], "gfx1100", &s),
				 KPACK_ERROR_INVALID_FORMAT);
		state_fini(&s);
		assert_int_equal(read_back("gfx1100", wrong[i], &s),
				 KPACK_ERROR_INVALID_FORMAT);
		state_fini(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same),
					   cmocka_unit_test(test_no_gpus)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
