/* SPDX-License-Identifier: MIT */
/*
 * Makes every call that would change a file system, and prints the result of each.
 *
 *   mutate DIR OUTSIDE NAME...
 *
 * Each call is made in DIR with each NAME.  Calls with two names are made with each pair
 * of names, and with OUTSIDE, a file of another file system, as the second name.  Prints
 * one line per call: call, name, and the error's name or "ok".  Does not undo calls that
 * worked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define AT AT_FDCWD
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static int closed(int fd)
{
	return fd < 0 ? -1 : close(fd);
}

/* ---- calls on a name ---- */

static const struct {
	const char *name;
	int flags;
} opens[] = {
	{"O_RDONLY", O_RDONLY},
	{"O_WRONLY", O_WRONLY},
	{"O_RDWR", O_RDWR},
	{"O_ACCMODE", O_ACCMODE},
	{"O_APPEND", O_RDONLY | O_APPEND},
	{"O_WRONLY|O_APPEND", O_WRONLY | O_APPEND},
	{"O_TRUNC", O_RDONLY | O_TRUNC},
	{"O_WRONLY|O_TRUNC", O_WRONLY | O_TRUNC},
	{"O_CREAT", O_RDONLY | O_CREAT},
	{"O_CREAT|O_EXCL", O_RDONLY | O_CREAT | O_EXCL},
	{"O_CREAT|O_WRONLY", O_WRONLY | O_CREAT},
	{"O_CREAT|O_RDWR|O_TRUNC", O_RDWR | O_CREAT | O_TRUNC},
	{"O_CREAT|O_NOFOLLOW", O_WRONLY | O_CREAT | O_NOFOLLOW},
	{"O_DIRECT|O_RDWR", O_RDWR | O_DIRECT},
	{"O_DIRECTORY", O_RDONLY | O_DIRECTORY},
	{"O_DIRECTORY|O_RDWR", O_RDWR | O_DIRECTORY},
	{"O_TMPFILE|O_RDWR", O_RDWR | O_TMPFILE},
	{"O_TMPFILE|O_WRONLY|O_EXCL", O_WRONLY | O_TMPFILE | O_EXCL},
	{"O_PATH", O_PATH},
};

static int do_creat(const char *name)
{
	return closed(creat(name, 0644));
}

static int do_mkdir(const char *name)
{
	return mkdir(name, 0755);
}

static int do_remove_dir(const char *name)
{
	return unlinkat(AT, name, AT_REMOVEDIR);
}

static int do_mkfifo(const char *name)
{
	return mkfifo(name, 0644);
}

static int do_mknod_file(const char *name)
{
	return mknod(name, S_IFREG | 0644, 0);
}

static int do_mknod_null(const char *name)
{
	return mknod(name, S_IFCHR | 0644, makedev(1, 3));
}

static int do_symlink(const char *name)
{
	return symlink("target", name);
}

static int do_bind(const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), result, why;

	if (strlen(name) >= sizeof(to.sun_path)) {
		close(s);
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(to.sun_path, name, strlen(name));
	result = bind(s, (struct sockaddr *)&to, sizeof(to));
	why = errno;
	close(s);
	errno = why;
	return result;
}

static int do_truncate_0(const char *name)
{
	return truncate(name, 0);
}

static int do_truncate_more(const char *name)
{
	return truncate(name, 1 << 30);
}

static int do_truncate_negative(const char *name)
{
	return truncate(name, -1);
}

static int do_chmod(const char *name)
{
	return chmod(name, 0777);
}

static int do_chown(const char *name)
{
	return chown(name, 1, 1);
}

static int do_chown_nobody(const char *name)
{
	return chown(name, (uid_t)-1, (gid_t)-1);
}

static int do_lchown(const char *name)
{
	return lchown(name, 1, 1);
}

static int do_utimens_now(const char *name)
{
	return utimensat(AT, name, NULL, 0);
}

static int do_utimens_set(const char *name)
{
	return utimensat(AT, name, (struct timespec[2]){{1, 0}, {1, 0}}, 0);
}

static int do_utimens_link(const char *name)
{
	return utimensat(AT, name, (struct timespec[2]){{1, 0}, {1, 0}},
			 AT_SYMLINK_NOFOLLOW);
}

/* Neither time changes, so there is nothing to do. */
static int do_utimens_omit(const char *name)
{
	return utimensat(AT, name, (struct timespec[2]){{0, UTIME_OMIT}, {0, UTIME_OMIT}},
			 0);
}

static int do_setxattr(const char *name)
{
	return setxattr(name, "user.kpack", "x", 1, 0);
}

static int do_setxattr_trusted(const char *name)
{
	return lsetxattr(name, "trusted.kpack", "x", 1, XATTR_CREATE);
}

static int do_setxattr_capability(const char *name)
{
	return setxattr(name, "security.capability", "x", 1, 0);
}

static int do_removexattr(const char *name)
{
	return removexattr(name, "user.kpack");
}

static int do_access_w(const char *name)
{
	return access(name, W_OK);
}

static int do_access_rw(const char *name)
{
	return access(name, R_OK | W_OK);
}

static int do_eaccess_w(const char *name)
{
	return faccessat(AT, name, W_OK, AT_EACCESS);
}

static int do_access_nofollow(const char *name)
{
	return faccessat(AT, name, W_OK, AT_SYMLINK_NOFOLLOW);
}

static int do_access_r(const char *name)
{
	return access(name, R_OK);
}

static int do_access_x(const char *name)
{
	return access(name, X_OK);
}

static int do_readlink(const char *name)
{
	char target[64];

	return readlink(name, target, sizeof(target)) < 0 ? -1 : 0;
}

static const struct {
	const char *name;
	int (*call)(const char *name);
} one_name[] = {
	{"creat", do_creat},
	{"mkdir", do_mkdir},
	{"rmdir", rmdir},
	{"unlink", unlink},
	{"unlinkat AT_REMOVEDIR", do_remove_dir},
	{"remove", remove},
	{"mkfifo", do_mkfifo},
	{"mknod file", do_mknod_file},
	{"mknod null", do_mknod_null},
	{"symlink", do_symlink},
	{"bind", do_bind},
	{"truncate 0", do_truncate_0},
	{"truncate more", do_truncate_more},
	{"truncate negative", do_truncate_negative},
	{"chmod", do_chmod},
	{"chown", do_chown},
	{"chown nobody", do_chown_nobody},
	{"lchown", do_lchown},
	{"utimensat now", do_utimens_now},
	{"utimensat set", do_utimens_set},
	{"utimensat nofollow", do_utimens_link},
	{"utimensat omit", do_utimens_omit},
	{"setxattr user", do_setxattr},
	{"lsetxattr trusted", do_setxattr_trusted},
	{"setxattr capability", do_setxattr_capability},
	{"removexattr", do_removexattr},
	{"access W", do_access_w},
	{"access RW", do_access_rw},
	{"access R", do_access_r},
	{"access X", do_access_x},
	{"faccessat W", do_eaccess_w},
	{"faccessat W nofollow", do_access_nofollow},
	{"readlink", do_readlink},
};

/* ---- calls on a descriptor opened for reading ---- */

static int do_write(int fd)
{
	return write(fd, "x", 1) < 0 ? -1 : 0;
}

static int do_pwrite(int fd)
{
	return pwrite(fd, "x", 1, 0) < 0 ? -1 : 0;
}

static int do_ftruncate(int fd)
{
	return ftruncate(fd, 0);
}

static int do_fallocate(int fd)
{
	return fallocate(fd, 0, 0, 4096);
}

static int do_punch(int fd)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
}

static int do_fchmod(int fd)
{
	return fchmod(fd, 0777);
}

static int do_fchown(int fd)
{
	return fchown(fd, 1, 1);
}

static int do_futimens(int fd)
{
	return futimens(fd, NULL);
}

static int do_fsetxattr(int fd)
{
	return fsetxattr(fd, "user.kpack", "x", 1, 0);
}

static int do_fremovexattr(int fd)
{
	return fremovexattr(fd, "user.kpack");
}

static int do_clone(int fd)
{
	return ioctl(fd, FICLONE, fd);
}

static int do_map(int fd, int protection, int flags)
{
	void *at = mmap(NULL, 1, protection, flags, fd, 0);

	return at == MAP_FAILED ? -1 : munmap(at, 1);
}

static int do_map_shared(int fd)
{
	return do_map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static int do_map_private(int fd)
{
	return do_map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static int do_map_then_write(int fd)
{
	void *at = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? -1 : mprotect(at, 1, PROT_READ | PROT_WRITE);
}

static int do_read(int fd)
{
	char byte;

	return read(fd, &byte, 1) < 0 ? -1 : 0;
}

static int do_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB);
}

static int record_lock(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

	return fcntl(fd, F_SETLK, &lock);
}

static int do_read_lock(int fd)
{
	return record_lock(fd, F_RDLCK);
}

static int do_write_lock(int fd)
{
	return record_lock(fd, F_WRLCK);
}

static int do_append(int fd)
{
	return fcntl(fd, F_SETFL, O_APPEND);
}

static int do_advise(int fd)
{
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return errno ? -1 : 0;
}

static int do_make_dir_at(int fd)
{
	return mkdirat(fd, "new", 0755);
}

static int do_remove_at(int fd)
{
	return unlinkat(fd, "new", 0);
}

static int do_reopen(int fd)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return closed(open(name, O_RDWR));
}

static int do_link_fd(int fd)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return linkat(AT, name, AT, "linked", AT_SYMLINK_FOLLOW);
}

static const struct {
	const char *name;
	int (*call)(int fd);
} descriptor[] = {
	{"write", do_write},
	{"pwrite", do_pwrite},
	{"ftruncate", do_ftruncate},
	{"fallocate", do_fallocate},
	{"fallocate hole", do_punch},
	{"fchmod", do_fchmod},
	{"fchown", do_fchown},
	{"futimens", do_futimens},
	{"fsetxattr", do_fsetxattr},
	{"fremovexattr", do_fremovexattr},
	{"FICLONE", do_clone},
	{"mmap shared", do_map_shared},
	{"mmap private", do_map_private},
	{"mprotect", do_map_then_write},
	{"read", do_read},
	{"flock", do_lock},
	{"F_RDLCK", do_read_lock},
	{"F_WRLCK", do_write_lock},
	{"F_SETFL", do_append},
	{"posix_fadvise", do_advise},
	{"fsync", fsync},
	{"fdatasync", fdatasync},
	{"syncfs", syncfs},
	{"mkdirat", do_make_dir_at},
	{"unlinkat", do_remove_at},
	{"reopen O_RDWR", do_reopen},
	{"linkat", do_link_fd},
};

/* ---- calls on two names ---- */

static int rename_with(const char *from, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, AT, from, AT, to, flags);
}

static int do_rename_keep(const char *from, const char *to)
{
	return rename_with(from, to, RENAME_NOREPLACE);
}

static int do_exchange(const char *from, const char *to)
{
	return rename_with(from, to, RENAME_EXCHANGE);
}

static int do_whiteout(const char *from, const char *to)
{
	return rename_with(from, to, RENAME_WHITEOUT);
}

/* Opens both names for reading; a name that cannot be opened fails the call. */
static int between(const char *from, const char *to, int (*call)(int from, int to))
{
	int in = open(from, O_RDONLY), out = in < 0 ? -1 : open(to, O_RDONLY);
	int result = out < 0 ? -1 : call(in, out), why = errno;

	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	errno = why;
	return result;
}

static int copy_range(int from, int to)
{
	off_t in = 0, out = 0;

	return copy_file_range(from, &in, to, &out, 1, 0) < 0 ? -1 : 0;
}

static int send_file(int from, int to)
{
	off_t in = 0;

	return sendfile(to, from, &in, 1) < 0 ? -1 : 0;
}

static int clone_file(int from, int to)
{
	return ioctl(to, FICLONE, from);
}

static int do_copy(const char *from, const char *to)
{
	return between(from, to, copy_range);
}

static int do_send(const char *from, const char *to)
{
	return between(from, to, send_file);
}

static int do_clone_into(const char *from, const char *to)
{
	return between(from, to, clone_file);
}

static const struct {
	const char *name;
	int (*call)(const char *from, const char *to);
} two_names[] = {
	{"rename", rename},
	{"rename NOREPLACE", do_rename_keep},
	{"rename EXCHANGE", do_exchange},
	{"rename WHITEOUT", do_whiteout},
	{"link", link},
	{"copy_file_range", do_copy},
	{"sendfile", do_send},
	{"FICLONE", do_clone_into},
};

/* ---- all calls ---- */

static const char *shown(const char *name)
{
	return strlen(name) > NAME_MAX ? "(long)" : *name == '/' ? "(outside)" : name;
}

static void print_result(const char *call, const char *name, const char *partner,
			 int result)
{
	const char *error = result < 0 ? strerrorname_np(errno) : "ok";

	printf("%s\t%s%s%s\t%s\n", call, shown(name), *partner ? " " : "", shown(partner),
	       error);
}

static void try_opens(const char *name)
{
	char call[64];

	for (size_t i = 0; i < COUNT(opens); i++) {
		snprintf(call, sizeof(call), "open %s", opens[i].name);
		print_result(call, name, "", closed(open(name, opens[i].flags, 0644)));
	}
}

static void try_descriptor(const char *name)
{
	for (size_t i = 0; i < COUNT(descriptor); i++) {
		int fd = open(name, O_RDONLY | O_NONBLOCK);

		if (fd < 0)
			return;
		print_result(descriptor[i].name, name, "", descriptor[i].call(fd));
		close(fd);
	}
}

static void try_pair(const char *from, const char *to)
{
	for (size_t i = 0; i < COUNT(two_names); i++)
		print_result(two_names[i].name, from, to, two_names[i].call(from, to));
}

static void try_name(const char *name)
{
	try_opens(name);
	for (size_t i = 0; i < COUNT(one_name); i++)
		print_result(one_name[i].name, name, "", one_name[i].call(name));
	try_descriptor(name);
}

int main(int argc, char **argv)
{
	if (argc < 4 || chdir(argv[1])) {
		fprintf(stderr, "usage: mutate DIR OUTSIDE NAME...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++)
		try_name(argv[i]);
	for (int i = 3; i < argc; i++) {
		try_pair(argv[i], argv[2]);
		try_pair(argv[2], argv[i]);
		for (int k = 3; k < argc; k++)
			try_pair(argv[i], argv[k]);
	}
	return fflush(stdout) ? 1 : 0;
}
