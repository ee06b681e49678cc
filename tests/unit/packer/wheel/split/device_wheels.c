/* SPDX-License-Identifier: MIT */
#include "packer/wheel/split/device_wheels.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static struct device_wheel *device(struct device_wheels *devices, const char *arch)
{
	struct device_wheel *out;

	assert_int_equal(device_wheels_arch(devices, arch, &out, NULL), KPACK_SUCCESS);
	return out;
}

TEST(names)
{
	struct families none = {0};
	struct device_wheels devices = {.families = &none, .host = "My.Torch"};
	char out[WHEEL_NAME_MAX + 1];

	assert_string_equal(device(&devices, "gfx942")->dist,
			    "amd-My.Torch-device-gfx942");
	assert_string_equal(device(&devices, "gfx942")->file,
			    "amd_My_Torch_device_gfx942");
	assert_true(device_wheels_suffix("gfx90a:sramecc+:xnack-", out));
	assert_string_equal(out, "gfx90a-sramecc-on-xnack-off");
	assert_true(device_wheels_suffix("gfx9-4-generic", out));
	assert_string_equal(out, "gfx9-4-generic");
	assert_true(device_wheels_suffix("gfx12_0", out));
	assert_string_equal(out, "gfx12-0");
	assert_false(device_wheels_suffix("a/b", out));
	device_wheels_fini(&devices);
}

/* All xnack states share one bundle; sramecc states do not. */
TEST(bundles)
{
	struct families none = {0};
	struct device_wheels devices = {.families = &none, .host = "torch"};
	struct device_wheel *a = device(&devices, "gfx90a:xnack+");
	char text[KP_TARGET_TEXT_MAX];

	assert_ptr_equal(a, device(&devices, "gfx90a"));
	assert_ptr_equal(a, device(&devices, "gfx90a-xnack-"));
	assert_ptr_not_equal(a, device(&devices, "gfx90a:sramecc+:xnack+"));
	assert_int_equal(a->n_arches, 1);
	device_wheels_bundle("gfx90a:sramecc-:xnack-", text);
	assert_string_equal(text, "gfx90a:sramecc-");
	/* a stepping is not named, whether the features are the processor's or not */
	device_wheels_bundle("gfx1250-strict", text);
	assert_string_equal(text, "gfx1250");
	device_wheels_bundle("gfx1250-strict:xnack+", text);
	assert_string_equal(text, "gfx1250:xnack+");
	assert_int_equal(device_wheels_finish(&devices, NULL), KPACK_SUCCESS);
	/* code that states less runs on this GPU too, but not the other way round */
	assert_string_equal(devices.items[1]->name, "gfx90a:sramecc+");
	assert_int_equal(devices.items[1]->n_needs, 1);
	assert_int_equal(devices.items[0]->n_needs, 0);
	device_wheels_fini(&devices);
}

/* A stepping has the processor's wheel, alone or not, in a family or not. */
TEST(steppings)
{
	struct families asked = {0};
	struct device_wheels devices = {.families = &asked, .host = "torch"};
	char arches[2][KP_TARGET_TEXT_MAX] = {"gfx1250-strict", "gfx1251"};
	struct device_wheel *a = device(&devices, "gfx1250-strict"), *family, *group;

	assert_string_equal(a->dist, "amd-torch-device-gfx1250");
	assert_ptr_equal(a, device(&devices, "gfx1250"));
	assert_int_equal(a->n_arches, 1);
	assert_string_equal(a->arches[0], "gfx1250");
	assert_int_equal(
		device_wheels_family(&devices, "gfx12_5", arches, 2, &group, NULL),
		KPACK_SUCCESS);
	assert_string_equal(group->arches[0], "gfx1250");
	assert_int_equal(device_wheels_finish(&devices, NULL), KPACK_SUCCESS);
	assert_int_equal(a->n_needs, 1);
	assert_ptr_equal(a->needs[0], group);
	device_wheels_fini(&devices);
	assert_int_equal(families_add(&asked, kp_span_str("F"), "gfx1250,gfx1251", NULL),
			 KPACK_SUCCESS);
	devices = (struct device_wheels){.families = &asked, .host = "torch"};
	family = device(&devices, "gfx1250-strict");
	assert_string_equal(family->name, "F");
	assert_ptr_equal(family, device(&devices, "gfx1250"));
	device_wheels_fini(&devices);
	families_fini(&asked);
}

TEST(needs)
{
	struct families none = {0};
	struct device_wheels devices = {
		.families = &none, .host = "torch", .prefix = "x-device"};
	char arches[2][KP_TARGET_TEXT_MAX] = {"gfx1100", "gfx1151"};
	struct device_wheel *p = device(&devices, "gfx1100"), *group;

	device(&devices, "gfx942");
	device(&devices, "gfx11-generic");
	assert_int_equal(
		device_wheels_family(&devices, "gfx11xx", arches, 2, &group, NULL),
		KPACK_SUCCESS);
	assert_string_equal(group->name, "gfx11");
	assert_string_equal(group->dist, "x-device-gfx11");
	assert_int_equal(device_wheels_finish(&devices, NULL), KPACK_SUCCESS);
	assert_int_equal(p->n_needs, 2);
	assert_string_equal(p->needs[0]->name, "gfx11-generic");
	assert_ptr_equal(p->needs[1], group);
	assert_int_equal(group->n_needs, 0);
	device_wheels_fini(&devices);
}

TEST(families)
{
	struct families asked = {0};
	struct device_wheels devices = {.families = &asked, .host = "torch"};
	char arches[1][KP_TARGET_TEXT_MAX] = {"gfx1103"};
	struct device_wheel *p, *group;

	assert_int_equal(
		families_add(&asked, kp_span_str("gfx110X"), "gfx1100,gfx1101", NULL),
		KPACK_SUCCESS);
	p = device(&devices, "gfx1100");
	assert_ptr_equal(p, device(&devices, "gfx1101"));
	assert_string_equal(p->dist, "torch-device-gfx110X");
	assert_string_equal(p->file, "torch_device_gfx110X");
	/* the database's spelling of the same family */
	assert_int_equal(
		device_wheels_family(&devices, "gfx110x", arches, 1, &group, NULL),
		KPACK_SUCCESS);
	assert_ptr_equal(group, p);
	device_wheels_fini(&devices);
	families_fini(&asked);
}
