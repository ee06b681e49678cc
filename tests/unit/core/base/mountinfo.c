/* SPDX-License-Identifier: MIT */
/* Lines of /proc/self/mountinfo, as the kernel writes them and as it does not. */
#include "core/base/mountinfo.h"
#include <string.h>
#include <sys/sysmacros.h>
#include "tests/unit/unit.h"

TEST(every_field_is_found)
{
	const struct {
		const char *line;
		struct kp_mount m;
		long user; /* -1: not stated */
	} mounts[] = {
		{"22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n",
		 {22, makedev(8, 1), "/", "/", "ext4", "/dev/sda1",
		  "rw,errors=remount-ro"},
		 -1},
		{"31 22 0:41 /a\\134x2db /opt/a\\040b\\012c rw,nosuid shared:5 master:2 "
		 "- "
		 "fuse.kpackfs x,user_id=7,\\040- ro,user_id=1000,group_id=100",
		 {31, makedev(0, 41), "/a\\x2db", "/opt/a b\nc", "fuse.kpackfs",
		  "x,user_id=7,\\040-", "ro,user_id=1000,group_id=100"},
		 1000},
		/* no source; only FUSE states a user; the last field may have spaces */
		{"1 1 0:1048575 / /m rw - fuse  rw,user_id=0",
		 {1, makedev(0, 1048575), "/", "/m", "fuse", "", "rw,user_id=0"},
		 0},
		{"1 1 0:5 / /m rw - tmpfs fuse rw,user_id=0 - fuse a rw",
		 {1, makedev(0, 5), "/", "/m", "tmpfs", "fuse",
		  "rw,user_id=0 - fuse a rw"},
		 -1},
		{"2147483647 1 0:5 / /m rw - fuse x rw",
		 {2147483647, makedev(0, 5), "/", "/m", "fuse", "x", "rw"},
		 -1},
	};

	for (size_t i = 0; i < COUNT(mounts); i++) {
		const struct kp_mount *want = &mounts[i].m;
		struct kp_mount m;
		char line[256];
		uid_t user;

		strcpy(line, mounts[i].line);
		assert_true(kp_mount_parse(line, &m));
		assert_int_equal(m.id, want->id);
		assert_true(m.device == want->device);
		assert_string_equal(m.root, want->root);
		assert_string_equal(m.path, want->path);
		assert_string_equal(m.type, want->type);
		assert_string_equal(m.source, want->source);
		assert_string_equal(m.options, want->options);
		assert_int_equal(kp_mount_fuse_user(&m, &user), mounts[i].user >= 0);
		if (mounts[i].user >= 0)
			assert_int_equal(user, mounts[i].user);
	}
}

TEST(other_lines_are_refused)
{
	static const char *const lines[] = {
		"",
		"\n",
		" ",
		"-",
		" - ",
		"1 - fuse x rw",
		"1 1 0:5 / /m rw",
		"1 1 0:5 / /m rw shared:1",
		"1 1 0:5 / /m - fuse x rw",
		"1 1 0:5 / /m rw - fuse",
		"1 1 0:5 / /m rw - fuse x",
		" 1 1 0:5 / /m rw - fuse x rw",
		"x 1 0:5 / /m rw - fuse x rw",
		"-1 1 0:5 / /m rw - fuse x rw",
		"1x 1 0:5 / /m rw - fuse x rw",
		"2147483648 1 0:5 / /m rw - fuse x rw",
		"99999999999999999999 1 0:5 / /m rw - fuse x rw",
		"1 1 0 / /m rw - fuse x rw",
		"1 1 0: / /m rw - fuse x rw",
		"1 1 :5 / /m rw - fuse x rw",
		"1 1 0:5:1 / /m rw - fuse x rw",
		"1 1 0:-5 / /m rw - fuse x rw",
		"1 1 4294967296:5 / /m rw - fuse x rw",
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		struct kp_mount m;
		char line[256];

		strcpy(line, lines[i]);
		if (kp_mount_parse(line, &m))
			fail_msg("accepted: \"%s\"", lines[i]);
	}
}
