/* SPDX-License-Identifier: MIT */
#include "core/rocm_kpack/kpackx.h"
#include <stdio.h>
#include "tests/unit/unit.h"

TEST(the_version_is_the_builds)
{
	char text[64];

	assert_string_equal(kpackx_version(), KP_VERSION);
	snprintf(text, sizeof(text), "%d.%d.%d", KPACKX_VERSION_MAJOR,
		 KPACKX_VERSION_MINOR, KPACKX_VERSION_PATCH);
	assert_string_equal(text, KP_VERSION);
	snprintf(text, sizeof(text), "%d.%d.%d", KPACKX_VERSION / 10000,
		 KPACKX_VERSION / 100 % 100, KPACKX_VERSION % 100);
	assert_string_equal(text, KP_VERSION);
}
