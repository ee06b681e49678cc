/* SPDX-License-Identifier: MIT */
#include "packer/wheel/split/metadata.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

#define METADATA                                                                         \
	"Metadata-Version: 2.1\nName: My.Torch\nVersion: 1.0+x\n"                        \
	"License-Expression: MIT\nProvides-Extra: Opt_ional\n\nbody\n"
#define WHEEL                                                                            \
	"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"                      \
	"Tag: py3-none-a\nTag: py3-none-b\nBuild: 7\n"

struct fixture {
	struct families families;
	struct device_wheels devices;
	struct dist_info info;
	struct wheel_metadata m;
};

static void open_with(struct fixture *f, const char *metadata, const char *arch)
{
	const struct dist_info_texts texts = {strdup(metadata), strdup(WHEEL),
					      strlen(metadata), strlen(WHEEL)};
	struct device_wheel *device;

	*f = (struct fixture){0};
	f->devices = (struct device_wheels){.families = &f->families, .host = "My.Torch"};
	assert_int_equal(
		dist_info_parse("my_torch-1.0+x.dist-info", &texts, NULL, &f->info, NULL),
		KPACK_SUCCESS);
	assert_int_equal(device_wheels_arch(&f->devices, arch, &device, NULL),
			 KPACK_SUCCESS);
	assert_int_equal(device_wheels_finish(&f->devices, NULL), KPACK_SUCCESS);
	f->m = (struct wheel_metadata){.host = &f->info, .devices = &f->devices};
}

static void close_it(struct fixture *f)
{
	device_wheels_fini(&f->devices);
	dist_info_fini(&f->info);
}

TEST(host)
{
	struct fixture f;
	size_t size;
	char *text;

	open_with(&f, METADATA, "gfx90a:sramecc+:xnack-");
	assert_int_equal(wheel_metadata_host(&f.m, &text, &size, NULL), KPACK_SUCCESS);
	assert_int_equal(strlen(text), size);
	assert_has(text, "\nProvides-Extra: device-gfx90a-sramecc-on\n"
			 "Requires-Dist: amd-My.Torch-device-gfx90a-sramecc-on == "
			 "1.0+x; extra == \"device-gfx90a-sramecc-on\"\n");
	assert_has(text, "\nProvides-Extra: gfx90a-sramecc-on\n");
	assert_has(text, "\nProvides-Extra: device-all\n");
	assert_string_equal(strstr(text, "\n\n"), "\n\nbody\n");
	free(text);
	close_it(&f);
}

/* Names of extras are compared without case and punctuation. */
TEST(clash)
{
	struct fixture f;
	struct kpackx_error why = {0};
	size_t size;
	char *text;

	open_with(&f,
		  "Metadata-Version: 2.1\nName: My.Torch\nVersion: 1.0+x\n"
		  "Provides-Extra: Device_ALL\n\n",
		  "gfx942");
	assert_int_equal(wheel_metadata_host(&f.m, &text, &size, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_has(why.text, "'device-all'");
	assert_null(text);
	close_it(&f);
}

TEST(device)
{
	static const char *const requires[] = {"rocm-@GFXARCH@-x==1", "plain"};
	struct wheel_name name;
	struct fixture f;
	size_t size;
	char *text;

	open_with(&f, METADATA, "gfx942");
	f.m.requires = requires;
	f.m.n_requires = 2;
	text = wheel_metadata_device(&f.m, f.devices.items[0], &size);
	assert_string_equal(text, "Metadata-Version: 2.4\n"
				  "Name: amd-My.Torch-device-gfx942\nVersion: 1.0+x\n"
				  "Summary: GPU code of My.Torch for gfx942\n"
				  "License-Expression: MIT\n"
				  "Requires-Dist: My.Torch == 1.0+x\n"
				  "Requires-Dist: rocm-gfx942-x==1\n"
				  "Requires-Dist: plain\n");
	free(text);
	assert_int_equal(
		wheel_name_parse("My.Torch-1.0+x-7-py3-none-a.b.whl", &name, NULL),
		KPACK_SUCCESS);
	text = wheel_metadata_wheel(&f.info, &name, &size);
	assert_has(text, "Root-Is-Purelib: true\nTag: py3-none-a\n"
			 "Tag: py3-none-b\nBuild: 7\n");
	free(text);
	close_it(&f);
}
