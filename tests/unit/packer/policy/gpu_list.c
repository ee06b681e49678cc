/* SPDX-License-Identifier: MIT */
/* Lists of GPUs: one text for the same GPUs, and a GPU that is missing now keeps its code. */
#include "packer/policy/gpu_list.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void check(const char *list, const char *earlier, const char *want,
		  const char *want_gone)
{
	struct kpackx_error why = {0};
	char *out, *gone;

	/* a place without a driver: no GPU is found */
	assert_int_equal(gpu_list_make(list, "/nonexistent", earlier, &out, &gone, &why),
			 want ? KPACK_SUCCESS : KPACK_ERROR_ARCH_NOT_FOUND);
	assert_string_equal(out ? out : "", want ? want : "");
	assert_string_equal(gone ? gone : "", want_gone);
	free(out);
	free(gone);
}

static void test_make(void **state)
{
	(void)state;
	check("gfx90a;gfx1100,gfx90a", NULL, "gfx1100,gfx90a", "");
	/* a list that names its GPUs is what it says */
	check("gfx1100", "gfx90a", "gfx1100", "");
	check("auto", NULL, NULL, "");
	check("auto", "gfx1100,gfx90a", "gfx1100,gfx90a", "gfx1100,gfx90a");
	check("auto,gfx942", "gfx1100,gfx942", "gfx1100,gfx942", "gfx1100");
}

static void test_compare(void **state)
{
	char *common;

	(void)state;
	assert_true(gpu_list_covers("gfx1100,gfx90a", "gfx90a"));
	assert_false(gpu_list_covers("gfx1100", "gfx90a,gfx1100"));
	assert_false(gpu_list_covers("gfx90a:xnack+", "gfx90a"));
	common = gpu_list_common("gfx1100,gfx90a", "gfx90a,gfx942");
	assert_string_equal(common, "gfx90a");
	free(common);
	common = gpu_list_common("gfx1100", "gfx90a");
	assert_false(gpu_list_covers(common, "gfx1100"));
	free(common);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_compare),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
