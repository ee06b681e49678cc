/* SPDX-License-Identifier: MIT */
/* A mount whose device is not known is found by its path, and another user's is not it. */
#include "fs/base/mount_point.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static bool may_mount;
static char directory[] = "/tmp/kpack-test-XXXXXX";

/* Mount there for USER; nobody answers.  Returns the connection. */
static int mount_for(unsigned user, const char *source)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char data[128];

	snprintf(data, sizeof(data), "fd=%d,rootmode=%o,user_id=%u,group_id=%u", fd,
		 S_IFDIR, user, user);
	assert_true(fd >= 0);
	assert_int_equal(
		mount(source, directory, "fuse.kpackfs", MS_NOSUID | MS_NODEV, data), 0);
	return fd;
}

TEST(another_users_mount_is_not_taken_for_ours)
{
	struct mount_point m = {.connection = -1, .path = directory};
	int ours, theirs;

	if (!may_mount)
		skip();
	assert_false(mount_point_is(&m));
	theirs = mount_for(1000, "x,user_id=0,group_id=0");
	m.connection = theirs; /* which has not ended */
	assert_false(mount_point_is(&m));
	assert_int_equal(mount_point_unmount(&m, true), UNMOUNT_DONE); /* nothing */
	assert_int_equal(umount2(directory, MNT_DETACH), 0);
	close(theirs);
	ours = m.connection = mount_for(0, "x");
	assert_true(mount_point_is(&m));
	assert_int_equal(mount_point_unmount(&m, true), UNMOUNT_DONE);
	assert_false(mount_point_is(&m));
	assert_int_equal(umount2(directory, MNT_DETACH), -1);
	close(ours);
}

static int begin_suite(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	may_mount = geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0 &&
		    unshare(CLONE_NEWNS) == 0 &&
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return 0;
}

static int end_suite(void **state)
{
	if (may_mount)
		umount2(directory, MNT_DETACH); /* after a failure */
	rmdir(directory);
	return 0;
}

SUITE(begin_suite, end_suite);
