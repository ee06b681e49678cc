/* SPDX-License-Identifier: MIT */
#include "packer/wheel/metadata/name.h"
#include <string.h>
#include "tests/unit/unit.h"

TEST(test_parts)
{
	static const struct {
		const char *file, *dist, *version, *build, *python, *platform, *variant;
	} rows[] = {
		{"torch-2.0-cp313-cp313-linux_x86_64.whl", "torch", "2.0", "", "cp313",
		 "linux_x86_64", ""},
		{"a_b-1!2.0+rocm7.1-1x-py2.py3-none-any.whl", "a_b", "1!2.0+rocm7.1",
		 "1x", "py2.py3", "any", ""},
		{"t-1-py3-none-any-gfx942.whl", "t", "1", "", "py3", "any", "gfx942"},
		{"t-1-2-py3-none-any-gfx90a.xnack_on.whl", "t", "1", "2", "py3", "any",
		 "gfx90a.xnack_on"},
	};
	struct wheel_name n;
	char out[WHEEL_NAME_MAX + 1];

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(wheel_name_parse(rows[i].file, &n, NULL), 0);
		assert_string_equal(n.dist, rows[i].dist);
		assert_string_equal(n.version, rows[i].version);
		assert_string_equal(n.build, rows[i].build);
		assert_string_equal(n.python, rows[i].python);
		assert_string_equal(n.platform, rows[i].platform);
		assert_string_equal(n.variant, rows[i].variant);
		assert_int_equal(wheel_name_compose(&n, out, NULL), 0);
		assert_string_equal(out, rows[i].file);
	}
}

TEST(test_refused)
{
	static const char *const files[] = {
		"",
		".whl",
		"x-1-py3-none-any.zip",
		"x-1-py3-none.whl",
		"-1-py3-none-any.whl",
		"x--py3-none-any.whl",
		"x-1-py3-none-any-.whl",
		"x-1-py3-none-any-GFX.whl",
		"x-1-b-py3-none-any-gfx942.whl",
		"x-1-1-py3-none-any-gfx942-more.whl",
		"x/../y-1-py3-none-any.whl",
		"x-1-py3-none-\x1b.whl",
	};
	struct kpackx_error why;
	struct wheel_name n;

	for (size_t i = 0; i < COUNT(files); i++) {
		why = (struct kpackx_error){0};
		assert_int_equal(wheel_name_parse(files[i], &n, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_true(why.text[0]);
		assert_null(strchr(why.text, '\x1b'));
	}
}

TEST(test_long)
{
	char file[400], out[WHEEL_NAME_MAX + 1];
	struct wheel_name n = {.dist = file,
			       .version = "1",
			       .build = "",
			       .python = "py3",
			       .abi = "none",
			       .platform = "any",
			       .variant = ""};

	memset(file, 'x', sizeof(file));
	strcpy(file + 300, "-1-py3-none-any.whl");
	assert_int_equal(wheel_name_parse(file, &n, NULL), KPACK_ERROR_INVALID_ARGUMENT);
	file[250] = '\0';
	assert_int_equal(wheel_name_compose(&n, out, NULL), KPACK_ERROR_INVALID_ARGUMENT);
}

TEST(test_check)
{
	struct wheel_name n;

	assert_int_equal(wheel_name_parse("Torch_Gpu-2.0_1+r-py3-none-any.whl", &n, NULL),
			 0);
	assert_int_equal(wheel_name_check(&n, "torch.gpu", "2.0-1+r", NULL), 0);
	assert_int_equal(wheel_name_check(&n, "torchgpu", "2.0-1+r", NULL),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(wheel_name_check(&n, "torch-gpu", "2.0", NULL),
			 KPACK_ERROR_INVALID_FORMAT);
}

TEST(test_normal)
{
	char out[WHEEL_NAME_MAX + 1];

	assert_true(dist_name_normal("Amd._-Torch_DEV", '-', out));
	assert_string_equal(out, "amd-torch-dev");
	assert_true(dist_name_normal("Amd._-Torch_DEV", '_', out));
	assert_string_equal(out, "amd_torch_dev");
	assert_false(dist_name_normal("-x", '-', out));
	assert_false(dist_name_normal("x y", '-', out));
	assert_false(dist_name_normal("", '-', out));
	assert_true(dist_version_escape("1-2", out));
	assert_string_equal(out, "1_2");
	assert_false(dist_version_escape("1/2", out));
}
