/* SPDX-License-Identifier: MIT */
#include "packer/gpu/names.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

static const struct {
	const char *label, *package, *wheel;
} labels[] = {
	{"gfx1100", "p-gfx1100", "D[device-gfx1100]"},
	{"gfx110X", "p-gfx110x", "D[device-gfx110X]"},
	{"gfx12_0", "p-gfx12-0", "D[device-gfx12-0]"},
	{"gfx90a:xnack+", "p-gfx90a-xnack-on", "D[device-gfx90a]"},
	{"gfx90a:sramecc-:xnack+", "p-gfx90a-sramecc-off-xnack-on", "D[device-gfx90a]"},
	{"gfx90a:sramecc+:xnack-", "p-gfx90a-sramecc-on-xnack-off", "D[device-gfx90a]"},
	{"gfx9-4-generic:xnack-", "p-gfx9-4-generic-xnack-off",
	 "D[device-gfx9-4-generic]"},
	{"gfx1250-strict", "p-gfx1250-strict", "D[device-gfx1250]"},
	{"odd-", "p-odd-", "D[device-odd-]"},
};

TEST(labels_become_names)
{
	const struct gpu_names names = {"g", "p", "D", false};

	for (size_t i = 0; i < COUNT(labels); i++) {
		char *package = gpu_package_name(&names, labels[i].label);
		char *wheel = gpu_wheel_name(&names, labels[i].label);

		assert_string_equal(package, labels[i].package);
		assert_string_equal(wheel, labels[i].wheel);
		free(package);
		free(wheel);
	}
}

TEST(long_labels_fit)
{
	char label[KP_TARGET_TEXT_MAX] = "g", out[GPU_NAME_PART_MAX];

	for (size_t i = 1; i + 2 < sizeof(label); i += 2)
		memcpy(label + i, ":-", 3);
	gpu_package_part(label, out);
	assert_true(strlen(out) < sizeof(out));
}

TEST(archives_have_a_separator)
{
	struct gpu_names names = {.group = "g"};
	char *name = gpu_archive_name(&names, "gfx90a:xnack+");

	assert_string_equal(name, "g_gfx90a:xnack+.kpack");
	free(name);
	names.family = true;
	name = gpu_archive_name(&names, "gfx110X");
	assert_string_equal(name, "g-gfx110X.kpack");
	free(name);
}

static const struct {
	struct gpu_names names;
	bool ok;
} checks[] = {
	{{"torch", "rocm-blas", "torch", false}, true},
	{{"blas_lib", "libstdc++6", "amd.torch_x", false}, true},
	{{.group = ""}, false},
	{{.group = "."}, false},
	{{.group = "-x"}, false},
	{{.group = "a/b"}, false},
	{{.group = "a b"}, false},
	{{.group = "a$(b)"}, false},
	{{.package = "a"}, false},
	{{.package = "Rocm"}, false},
	{{.package = "-rocm"}, false},
	{{.package = "a_b"}, false},
	{{.dist = ""}, false},
	{{.dist = "torch-"}, false},
	{{.dist = "-torch"}, false},
	{{.dist = "torch;rm"}, false},
	{{.dist = "torch[x]"}, false},
};

TEST(names_are_checked)
{
	for (size_t i = 0; i < COUNT(checks); i++) {
		struct kpackx_error why = {0};
		kpack_error_t err = gpu_names_check(&checks[i].names, &why);

		if (err != (checks[i].ok ? KPACK_SUCCESS : KPACK_ERROR_INVALID_ARGUMENT))
			fail_msg("%zu: %s", i, why.text);
		assert_true(checks[i].ok || strncmp(why.text, "--", 2) == 0);
	}
}
