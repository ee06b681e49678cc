/* SPDX-License-Identifier: MIT */
#include "calls.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls that the headers of an older system do not know; the same number everywhere. */
enum {
	OPENAT2 = 437,
	FACCESSAT2 = 439,
	FCHMODAT2 = 452,
	SETXATTRAT = 463,
	GETXATTRAT = 464,
	LISTXATTRAT = 465,
	REMOVEXATTRAT = 466,
};

#define ONE(n, a)                                                                        \
	{                                                                                \
		SYS_##n, #n, {{-1, (a)}}, 1                                              \
	}
#define AT(n, d, a)                                                                      \
	{                                                                                \
		SYS_##n, #n, {{(d), (a)}}, 1                                             \
	}

static const struct call calls[] = {
	AT(openat, 0, 1),
	{OPENAT2, "openat2", {{0, 1}}, 1},
	{SYS_renameat2, "renameat2", {{0, 1}, {2, 3}}, 2},
	{SYS_linkat, "linkat", {{0, 1}, {2, 3}}, 2},
	AT(symlinkat, 1, 2),
	AT(unlinkat, 0, 1),
	AT(mkdirat, 0, 1),
	AT(mknodat, 0, 1),
	AT(fchmodat, 0, 1),
	{FCHMODAT2, "fchmodat2", {{0, 1}}, 1},
	AT(fchownat, 0, 1),
	AT(utimensat, 0, 1),
	AT(readlinkat, 0, 1),
	AT(statx, 0, 1),
	AT(faccessat, 0, 1),
	{FACCESSAT2, "faccessat2", {{0, 1}}, 1},
	{SETXATTRAT, "setxattrat", {{0, 1}}, 1},
	{GETXATTRAT, "getxattrat", {{0, 1}}, 1},
	{LISTXATTRAT, "listxattrat", {{0, 1}}, 1},
	{REMOVEXATTRAT, "removexattrat", {{0, 1}}, 1},
	AT(name_to_handle_at, 0, 1),
	ONE(truncate, 0),
	ONE(chdir, 0),
	ONE(statfs, 0),
	ONE(setxattr, 0),
	ONE(lsetxattr, 0),
	ONE(getxattr, 0),
	ONE(lgetxattr, 0),
	ONE(listxattr, 0),
	ONE(llistxattr, 0),
	ONE(removexattr, 0),
	ONE(lremovexattr, 0),
	AT(inotify_add_watch, -1, 1),
#ifdef SYS_renameat
	{SYS_renameat, "renameat", {{0, 1}, {2, 3}}, 2},
#endif
#ifdef SYS_newfstatat
	AT(newfstatat, 0, 1),
#endif
#ifdef SYS_open /* what newer architectures lack */
	ONE(open, 0),
	ONE(creat, 0),
	{SYS_rename, "rename", {{-1, 0}, {-1, 1}}, 2},
	ONE(unlink, 0),
	ONE(mkdir, 0),
	ONE(rmdir, 0),
	{SYS_link, "link", {{-1, 0}, {-1, 1}}, 2},
	ONE(symlink, 1),
	ONE(chmod, 0),
	ONE(chown, 0),
	ONE(lchown, 0),
	ONE(mknod, 0),
	ONE(readlink, 0),
	ONE(stat, 0),
	ONE(lstat, 0),
	ONE(access, 0),
	ONE(utime, 0),
	ONE(utimes, 0),
	AT(futimesat, 0, 1),
#endif
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* What a kernel of 4.18 does not have. */
static const int newer[] = {OPENAT2,    FACCESSAT2,  FCHMODAT2,    SETXATTRAT,
			    GETXATTRAT, LISTXATTRAT, REMOVEXATTRAT};

/* What waits for the disk, and need not: no test cuts the power. */
static const int flushes[] = {SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync};

/* What changes open files. */
static const int changes[] = {
	SYS_write,           SYS_writev,    SYS_pwrite64, SYS_pwritev, SYS_sendfile,
	SYS_copy_file_range, SYS_ftruncate, SYS_fchmod,   SYS_fchown,  SYS_fsetxattr};

/* --- the filter ---------------------------------------------------------------------- */

#define LOW_WORD (__BYTE_ORDER == __BIG_ENDIAN ? 4 : 0)

struct program {
	struct sock_filter code[2 * CALLS + 64];
	unsigned short size;
};

static void add_answer(struct program *p, int number, uint32_t answer)
{
	p->code[p->size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							  (uint32_t)number, 0, 1);
	p->code[p->size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
}

/* No nameless files, as on many file systems: openat with O_TMPFILE fails.  The load of
 * the call's number is done again after it. */
static void refuse_nameless(struct program *p)
{
	const struct sock_filter code[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2]) + LOW_WORD),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};

	memcpy(p->code + p->size, code, sizeof(code));
	p->size += sizeof(code) / sizeof(code[0]);
}

static void write_program(struct program *p, bool old, bool all)
{
	p->size = 0;
	p->code[p->size++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; old && i < sizeof(newer) / sizeof(newer[0]); i++)
		add_answer(p, newer[i], SECCOMP_RET_ERRNO | ENOSYS);
	if (old)
		refuse_nameless(p);
	for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++)
		add_answer(p, flushes[i], SECCOMP_RET_ERRNO);
	for (size_t i = 0; all && i < sizeof(changes) / sizeof(changes[0]); i++)
		add_answer(p, changes[i], SECCOMP_RET_USER_NOTIF);
	for (size_t i = 0; i < CALLS; i++)
		add_answer(p, calls[i].number, SECCOMP_RET_USER_NOTIF);
	p->code[p->size++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

int calls_install(bool old, bool all)
{
	struct program p;
	struct sock_fprog prog;

	write_program(&p, old, all);
	prog = (struct sock_fprog){.len = p.size, .filter = p.code};
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

/* --- paths --------------------------------------------------------------------------- */

static const struct call *find_call(int number)
{
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

/* A text of the process, or "" if there is none. */
static void read_text(unsigned pid, uint64_t at, char out[PATH_MAX])
{
	char name[64];
	ssize_t n = -1;
	int fd;

	snprintf(name, sizeof(name), "/proc/%u/mem", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && at)
		n = pread(fd, out, PATH_MAX - 1, (off_t)at);
	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
}

static bool read_link(const char *name, char out[PATH_MAX])
{
	ssize_t n = readlink(name, out, PATH_MAX - 1);

	out[n > 0 ? n : 0] = '\0';
	return out[0] == '/';
}

/* The directory that a path is relative to. */
static bool read_dir(unsigned pid, int dir, char out[PATH_MAX])
{
	char name[64];

	if (dir == AT_FDCWD)
		snprintf(name, sizeof(name), "/proc/%u/cwd", pid);
	else
		snprintf(name, sizeof(name), "/proc/%u/fd/%d", pid, dir);
	return read_link(name, out);
}

/* In PATH, which is absolute, no ".", "..", or double slashes stay. */
static void tidy_path(char *path)
{
	char *to = path, *next;

	for (char *from = path; from; from = next) {
		size_t n;

		while (*from == '/')
			from++;
		next = strchr(from, '/');
		n = next ? (size_t)(next - from) : strlen(from);
		if (n == 0 || (n == 1 && *from == '.'))
			continue;
		if (n == 2 && from[0] == '.' && from[1] == '.') {
			while (to > path && *--to != '/')
				;
			continue;
		}
		*to++ = '/';
		memmove(to, from, n);
		to += n;
	}
	*to = '\0';
}

/* The part of TEXT after PREFIX, or NULL. */
static const char *after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* "/proc/self/fd/N/rest" is "rest" below the open directory; alone it names no path. */
static bool read_proc(unsigned pid, const char *text, char out[PATH_MAX])
{
	const char *number = after(text, "/proc/self/fd/");
	char dir[PATH_MAX], *rest;
	int fd;

	if (!number)
		number = after(text, "/proc/thread-self/fd/");
	if (!number)
		return false;
	fd = (int)strtol(number, &rest, 10);
	if (*rest != '/' || !read_dir(pid, fd, dir) ||
	    snprintf(out, PATH_MAX, "%s%s", dir, rest) >= PATH_MAX)
		out[0] = '\0';
	return true;
}

static void read_path(const struct seccomp_notif *s, int dir, int arg, char out[PATH_MAX])
{
	char text[PATH_MAX], base[PATH_MAX];

	read_text(s->pid, s->data.args[arg], text);
	out[0] = '\0';
	if (text[0] == '/') {
		if (!read_proc(s->pid, text, out))
			strcpy(out, text);
	} else if (text[0] &&
		   read_dir(s->pid, dir < 0 ? AT_FDCWD : (int)s->data.args[dir], base) &&
		   snprintf(out, PATH_MAX, "%s/%s", base, text) >= PATH_MAX) {
		out[0] = '\0';
	}
	if (out[0])
		tidy_path(out);
}

bool calls_read(const struct seccomp_notif *s, const char *dir, struct named *out)
{
	size_t n = strlen(dir);
	bool any = false;

	*out = (struct named){.call = find_call(s->data.nr)};
	if (!out->call)
		return false;
	out->count = (size_t)out->call->names_count;
	for (size_t i = 0; i < out->count; i++) {
		read_path(s, out->call->names[i].dir, out->call->names[i].path,
			  out->path[i]);
		out->ours[i] =
			strncmp(out->path[i], dir, n) == 0 && out->path[i][n] == '/';
		any |= out->ours[i];
	}
	return any;
}
