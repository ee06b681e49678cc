/* SPDX-License-Identifier: MIT */
#include "core/target/kfd.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/kpack-gpus-XXXXXX";

static int enter_dir(void **state)
{
	return mkdtemp(root) == NULL || chdir(root);
}

static int leave_dir(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

TEST(versions_are_processors)
{
	static const struct {
		const char *properties, *name; /* properties, name: NULL for a CPU */
	} nodes[] = {
		{"gfx_target_version 0\n", NULL},
		{"gfx_target_version 90010\n", "gfx90a"},
		{"gfx_target_version 90402\n", "gfx942"},
		{"gfx_target_version 90500\n", "gfx950"},
		{"gfx_target_version 90012\n", "gfx90c"},
		{"gfx_target_version 100306\n", "gfx1036"},
		{"gfx_target_version 110000\n", "gfx1100"},
		{"gfx_target_version 110501\n", "gfx1151"},
		{"gfx_target_version 120001", "gfx1201"},
		{"gfx_target_version 120500\n", "gfx1250"},
		{"gfx_target_version 150000\n", "gfx1500"}, /* a future GPU */
		{"cpu_cores_count 0\nsimd_count 304\ngfx_target_version 90402\nnum_xcc "
		 "8\n",
		 "gfx942"},
		{"not_gfx_target_version 90402\ngfx_target_version 80003\n", "gfx803"},
	};

	for (size_t i = 0; i < COUNT(nodes); i++) {
		struct kpackx_error why = {0};
		struct kp_target gpu = {0};
		bool found;

		if (kp_gpus_parse(kp_span_str(nodes[i].properties), &gpu, &found, &why))
			fail_msg("%s: %s", nodes[i].properties, why.text);
		assert_int_equal(found, nodes[i].name != NULL);
		if (found)
			assert_string_equal(gpu.processor, nodes[i].name);
		assert_true(gpu.xnack == KP_FEATURE_ANY && gpu.sramecc == KP_FEATURE_ANY);
	}
}

TEST(nonsense_is_named)
{
	static const char *const nodes[][2] = {
		{"", "no gfx_target_version"},
		{"gfx_target_version", "no gfx_target_version"},
		{"gfx_target_version\n90402\n", "no gfx_target_version"},
		{" gfx_target_version 90402\n", "no gfx_target_version"},
		{"gfx_target_version \n", "\"\" is no number"},
		{"gfx_target_version -1\n", "\"-1\" is no number"},
		{"gfx_target_version 90402 \n", "\"90402 \" is no number"},
		{"gfx_target_version 9040200000\n", "is no number"},
		{"gfx_target_version 0x9\n", "is no number"},
		{"gfx_target_version 402\n", "402 is not that of a GPU"},
		{"gfx_target_version 91600\n", "91600 is not that of a GPU"},
		{"gfx_target_version 90016\n", "90016 is not that of a GPU"},
	};

	for (size_t i = 0; i < COUNT(nodes); i++) {
		struct kpackx_error why = {0};
		struct kp_target gpu;
		bool found;

		assert_int_equal(
			kp_gpus_parse(kp_span_str(nodes[i][0]), &gpu, &found, &why),
			KPACK_ERROR_INVALID_FORMAT);
		assert_false(found);
		if (!strstr(why.text, nodes[i][1]))
			fail_msg("\"%s\": %s", nodes[i][0], why.text);
	}
}

static void make_node(const char *dir, const char *properties)
{
	char path[256];
	FILE *f;

	assert_int_equal(mkdir(dir, 0755), 0);
	snprintf(path, sizeof(path), "%s/properties", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(properties, f);
	assert_int_equal(fclose(f), 0);
}

static void check_topology(const char *topology)
{
	static const char *const names[] = {"gfx90a", "gfx1100", "gfx1100"};
	static const unsigned nodes[] = {2, 9, 10}, numbers[] = {1, 5, 6};
	struct kpackx_error why = {0};
	struct kp_gpus gpus;

	if (kp_gpus_read(topology, &gpus, &why))
		fail_msg("%s", why.text);
	assert_int_equal(gpus.count, 3);
	for (size_t i = 0; i < gpus.count; i++) {
		assert_int_equal(gpus.list[i].node, nodes[i]);
		assert_int_equal(gpus.list[i].number, numbers[i]);
		assert_string_equal(gpus.list[i].target.processor, names[i]);
	}
	/* node 3 has invalid properties, 4 has no file, 5 has a FIFO instead */
	assert_int_equal(gpus.faults.counted, 3);
	assert_int_equal(gpus.n_nodes, 7);
	assert_has(gpus.faults.items[0].text, "nodes/3/properties: ");
	kp_gpus_fini(&gpus);
	assert_null(gpus.list);
}

TEST(nodes_are_read_in_order)
{
	assert_int_equal(mkdir("t", 0755), 0);
	assert_int_equal(mkdir("t/nodes", 0755), 0);
	make_node("t/nodes/10", "gfx_target_version 110000\n");
	make_node("t/nodes/9", "gfx_target_version 110000\n");
	make_node("t/nodes/2", "gfx_target_version 90010\n");
	make_node("t/nodes/0", "gfx_target_version 0\n");
	make_node("t/nodes/00", "gfx_target_version 90402\n");
	make_node("t/nodes/x1", "gfx_target_version 90402\n");
	make_node("t/nodes/12345678901", "gfx_target_version 90402\n");
	make_node("t/nodes/3", "gfx_target_version gfx942\n");
	assert_int_equal(mkdir("t/nodes/4", 0755), 0);
	assert_int_equal(mkdir("t/nodes/5", 0755), 0);
	assert_int_equal(mkfifo("t/nodes/5/properties", 0644), 0);
	check_topology("t");
	check_topology("t/nodes");
}

TEST(hidden_nodes_have_no_number)
{
	struct kpackx_error why = {0};
	uid_t user = geteuid();
	struct kp_gpus gpus;

	assert_int_equal(mkdir("hidden", 0755), 0);
	make_node("hidden/0", "gfx_target_version 90402\n");
	make_node("hidden/1", "gfx_target_version 90402\n");
	assert_int_equal(chmod("hidden/0/properties", 0), 0);
	assert_int_equal(chmod(".", 0755), 0);
	if (user == 0) /* root can read them */
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(kp_gpus_read("hidden", &gpus, &why), KPACK_SUCCESS);
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(gpus.count, 1);
	assert_int_equal(gpus.list[0].node, 1);
	assert_int_equal(gpus.list[0].number, 0);
	assert_int_equal(gpus.faults.counted, 0);
	kp_gpus_fini(&gpus);
}

TEST(endless_properties_end)
{
	struct kpackx_error why = {0};
	struct kp_gpus gpus;
	FILE *f;

	assert_int_equal(mkdir("long", 0755), 0);
	make_node("long/0", "");
	f = fopen("long/0/properties", "we");
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), INT64_C(1) << 40), 0);
	fclose(f);
	assert_int_equal(kp_gpus_read("long", &gpus, &why), KPACK_SUCCESS);
	assert_int_equal(gpus.count, 0);
	assert_int_equal(gpus.faults.counted, 1);
	kp_gpus_fini(&gpus);
}

TEST(no_driver_is_reported)
{
	struct kpackx_error why = {0};
	struct kp_gpus gpus;

	assert_int_equal(kp_gpus_read("nowhere", &gpus, &why),
			 KPACK_ERROR_FILE_NOT_FOUND);
	assert_int_equal(gpus.count, 0);
	kp_gpus_fini(&gpus);
	assert_int_equal(mkdir("empty", 0755), 0);
	assert_int_equal(kp_gpus_read("empty", &gpus, &why), KPACK_SUCCESS);
	assert_int_equal(gpus.count, 0);
	kp_gpus_fini(&gpus);
}

SUITE(enter_dir, leave_dir);
