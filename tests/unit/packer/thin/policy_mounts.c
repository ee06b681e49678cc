/* SPDX-License-Identifier: MIT */
/* The mounts of a tree in the kernel's table, whatever their names are. */
#include "packer/thin/policy_mounts.h"
#include <stdlib.h>
#include <sys/sysmacros.h>
#include "tests/unit/unit.h"

static void read_text(const char *text, const char *tree, struct mount_table *out)
{
	struct kp_mounts mounts = {.file = fmemopen((void *)text, strlen(text), "r")};

	assert_true(mount_table_read(&mounts, tree, out));
	kp_mounts_close(&mounts);
}

TEST(test_table)
{
	static const char text[] =
		"22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
		"30 22 0:40 / /opt/rocm/lib ro - overlay overlay ro,lowerdir=/a:/b\n"
		"31 22 0:41 / /opt/rocm/share/a\\040b ro shared:5 - fuse.kpackfs /opt/x "
		"ro\n"
		"32 22 0:42 / /opt/rocm-2/lib ro - fuse.kpackfs /opt/x ro\n"
		"33 22 0:43 / /opt/rocm/tmp rw - tmpfs tmpfs rw\n"
		"34 22 0:44 /\n"
		"35 - fuse.kpackfs";
	struct mount_table m;

	read_text(text, "/opt/rocm", &m);
	assert_int_equal(m.count, 2);
	assert_true(m.items[0].overlay);
	assert_false(m.items[1].overlay);
	assert_non_null(mount_table_get(&m, "/opt/rocm/lib"));
	assert_non_null(mount_table_get(&m, "/opt/rocm/share/a b"));
	assert_int_equal(m.items[1].device, makedev(0, 41));
	assert_int_equal(mount_table_count(&m, true), 1);
	assert_true(mount_table_covers(&m, "/opt/rocm/lib/x"));
	assert_false(mount_table_covers(&m, "/opt/rocm/lib64/x"));
	mount_table_fini(&m);
	read_text(text, "/", &m);
	assert_int_equal(m.count, 3);
	mount_table_fini(&m);
}
