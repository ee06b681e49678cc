/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program, this lets its calls fail: either one of them, for tests/sweep/run, or some for
 * as long as a file says, for tests of a mount.
 *
 * One call fails if SWEEP is set:
 *
 *   SWEEP=record      none does; each distinct call site is logged when it is first reached
 *   SWEEP=NAME@SITE   the first call of NAME (such as "openat") at that site fails
 *   SWEEP=NAME#N      the Nth call of NAME fails
 *   SWEEP=short:...   it reads or writes half; SWEEP=again:... it is interrupted
 *   SWEEP=kill:...    the process is killed instead
 *
 * A site is a hash of the innermost frames of the stack that are code of the program itself, so that a
 * call inside a library, such as malloc in jansson, has the place in the program that called the library.
 * In all of these cases, and with SWEEP=none, no package manager is there, because they need longer than kpack.
 * SWEEP_LOG=FILE gets a line "NAME SITE N ADDRESS..." for each site, or for the call that failed; with site 0, the
 * number of all calls.
 *
 * Calls fail as set by the bytes of the file that FAULTS names, which may change at any time:
 *
 *   byte 0  pread of files: 'e' fails, 's' gives half, 'z' returns end of file, 'i' is
 *           interrupted every other time
 *   byte 1  'm': blocks of memory from 16 KiB on are refused
 *   byte 2  't': no thread starts
 *   byte 3  'l': it is an hour later
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#define SHOWN __attribute__((visibility("default")))

/* ---- which call fails ------------------------------------------------------------------ */

/* Frames that are logged, those of them that make a site, and those that are looked through for them. */
#define SITE_FRAMES 6
#define IO_FRAMES 4
#define MEMORY_FRAMES 2
#define STACK_FRAMES 60

enum call {
	CALL_MALLOC,
	CALL_CALLOC,
	CALL_REALLOC,
	CALL_MMAP,
	CALL_THREAD,
	CALL_OPEN,
	CALL_READ,
	CALL_PREAD,
	CALL_WRITE,
	CALL_PWRITE,
	CALL_COPY_RANGE,
	CALL_FSYNC,
	CALL_RENAME,
	CALL_LINK,
	CALL_SYMLINK,
	CALL_UNLINK,
	CALL_MKDIR,
	CALL_TRUNCATE,
	CALL_ALLOCATE,
	CALL_STAT,
	CALL_READLINK,
	CALL_READDIR,
	CALL_FDOPEN,
	CALL_DUP,
	CALL_LOCK,
	CALL_CHMOD,
	CALL_CHOWN,
	CALL_TIMES,
	CALL_SETXATTR,
	CALL_GETXATTR,
	CALLS
};

static const struct {
	const char *name;
	int error;
} calls[CALLS] = {
	[CALL_MALLOC] = {"malloc", ENOMEM},
	[CALL_CALLOC] = {"calloc", ENOMEM},
	[CALL_REALLOC] = {"realloc", ENOMEM},
	[CALL_MMAP] = {"mmap", ENOMEM},
	[CALL_THREAD] = {"pthread_create", EAGAIN},
	[CALL_OPEN] = {"open", EIO},
	[CALL_READ] = {"read", EIO},
	[CALL_PREAD] = {"pread", EIO},
	[CALL_WRITE] = {"write", ENOSPC},
	[CALL_PWRITE] = {"pwrite", ENOSPC},
	[CALL_COPY_RANGE] = {"copy_file_range", ENOSPC},
	[CALL_FSYNC] = {"fsync", EIO},
	[CALL_RENAME] = {"rename", EIO},
	[CALL_LINK] = {"link", EIO},
	[CALL_SYMLINK] = {"symlink", ENOSPC},
	[CALL_UNLINK] = {"unlink", EIO},
	[CALL_MKDIR] = {"mkdir", ENOSPC},
	[CALL_TRUNCATE] = {"ftruncate", ENOSPC},
	[CALL_ALLOCATE] = {"fallocate", ENOSPC},
	[CALL_STAT] = {"stat", EIO},
	[CALL_READLINK] = {"readlink", EIO},
	[CALL_READDIR] = {"readdir", EIO},
	[CALL_FDOPEN] = {"fdopen", ENOMEM},
	[CALL_DUP] = {"dup", EMFILE},
	[CALL_LOCK] = {"flock", ENOLCK},
	[CALL_CHMOD] = {"chmod", EIO},
	[CALL_CHOWN] = {"chown", EIO},
	[CALL_TIMES] = {"utimens", EIO},
	[CALL_SETXATTR] = {"setxattr", ENOSPC},
	[CALL_GETXATTR] = {"getxattr", EIO},
};

static struct {
	bool record;
	bool on; /* a call is to fail */
	bool half, again, kill;
	enum call call;
	uint64_t site; /* where it fails; 0: at call number NTH */
	unsigned long nth;
	bool fired;
	int log;
	uintptr_t low, high, base; /* the program's code */
	unsigned long count[CALLS];
	uint64_t seen[1 << 16]; /* sites that are logged */
} sweep = {.log = -1};

/* Set while this library itself calls. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

struct stack {
	uintptr_t frame[SITE_FRAMES];
	int n, left;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg)
{
	struct stack *s = arg;
	uintptr_t at = _Unwind_GetIP(context);

	if (at >= sweep.low && at < sweep.high)
		s->frame[s->n++] = at - sweep.base;
	return s->n == SITE_FRAMES || --s->left == 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* The site of a call; never 0.  STACK gets its frames. */
static uint64_t site_of(enum call call, struct stack *stack)
{
	uint64_t hash = 14695981039346656037u + call;

	*stack = (struct stack){.left = STACK_FRAMES};
	_Unwind_Backtrace(add_frame, stack);
	for (int i = 0;
	     i < stack->n && i < (call <= CALL_REALLOC ? MEMORY_FRAMES : IO_FRAMES); i++)
		hash = (hash ^ stack->frame[i]) * 1099511628211u;
	return hash | 1;
}

static bool first_time(uint64_t site)
{
	size_t size = sizeof(sweep.seen) / sizeof(sweep.seen[0]);

	for (size_t i = 0; i < size; i++) {
		uint64_t *slot = &sweep.seen[(site + i) % size], none = 0;

		if (__atomic_compare_exchange_n(slot, &none, site, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return true;
		if (none == site)
			return false;
	}
	return false;
}

static void log_call(enum call call, uint64_t site, unsigned long nth,
		     const struct stack *stack)
{
	char line[64 + 20 * SITE_FRAMES];
	int n = snprintf(line, sizeof(line), "%s %016llx %lu", calls[call].name,
			 (unsigned long long)site, nth);

	for (int i = 0; i < stack->n; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %llx",
			      (unsigned long long)stack->frame[i]);
	line[n++] = '\n';
	syscall(SYS_write, sweep.log, line, n);
}

/* A copy_file_range has failed: so will the next pwrite. */
static _Thread_local bool disk_full;

/* Whether this call fails; errno is then its error. */
static bool fails(enum call call)
{
	int error = errno;
	unsigned long nth;
	struct stack stack;
	uint64_t site;
	bool hit = false;

	if ((!sweep.record && (!sweep.on || sweep.call != call)) || inside || sweep.fired)
		return false;
	inside = true;
	nth = __atomic_add_fetch(&sweep.count[call], 1, __ATOMIC_RELAXED);
	if (sweep.record || sweep.site || nth == sweep.nth) {
		site = site_of(call, &stack);
		/* what is called before main, or after it, is not the program's */
		if (stack.n && sweep.record && first_time(site))
			log_call(call, site, nth, &stack);
		hit = stack.n && !sweep.record && (!sweep.site || sweep.site == site) &&
		      !__atomic_exchange_n(&sweep.fired, true, __ATOMIC_SEQ_CST);
		if (hit)
			log_call(call, site, nth, &stack);
		if (hit && sweep.kill)
			raise(SIGKILL);
		disk_full = hit && call == CALL_COPY_RANGE && !sweep.half && !sweep.again;
	}
	inside = false;
	errno = !hit ? error : sweep.again ? EINTR : calls[call].error;
	return hit;
}

/* The same for a call with SIZE bytes, which become fewer if it is to be short. */
static bool fails_with(enum call call, size_t *size)
{
	bool hit = fails(call);

	if (!hit || !sweep.half)
		return hit;
	*size = (*size + 1) / 2;
	return false;
}

/* The first object is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	sweep.base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			sweep.low = sweep.base + p->p_vaddr;
			sweep.high = sweep.low + p->p_memsz;
		}
	}
	return 1;
}

static void __attribute__((constructor)) begin_sweep(void)
{
	const char *what = getenv("SWEEP"), *log = getenv("SWEEP_LOG");
	const char *mark;
	struct stack stack;

	if (!what)
		return;
	sweep.half = strncmp(what, "short:", 6) == 0;
	sweep.again = strncmp(what, "again:", 6) == 0;
	sweep.kill = strncmp(what, "kill:", 5) == 0;
	what += sweep.half || sweep.again ? 6 : sweep.kill ? 5 : 0;
	mark = strpbrk(what, "@#");
	dl_iterate_phdr(find_program, NULL);
	site_of(CALL_MALLOC, &stack); /* so that it is loaded */
	sweep.log = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	for (int i = 0; mark && i < CALLS; i++)
		if (strlen(calls[i].name) == (size_t)(mark - what) &&
		    strncmp(what, calls[i].name, (size_t)(mark - what)) == 0) {
			sweep.call = (enum call)i;
			sweep.site = *mark == '@' ? strtoull(mark + 1, NULL, 16) : 0;
			sweep.nth = *mark == '#' ? strtoul(mark + 1, NULL, 10) : 0;
			sweep.on = true;
		}
	sweep.record = strcmp(what, "record") == 0;
	/* a program that this one starts is not swept */
	unsetenv("SWEEP");
	unsetenv("LD_PRELOAD");
}

/* Site 0 has the number of all calls. */
static void __attribute__((destructor)) log_totals(void)
{
	for (int i = 0; i < CALLS && sweep.record; i++)
		log_call((enum call)i, 0, sweep.count[i], &(struct stack){0});
}

/* ---- what the file FAULTS says ----------------------------------------------------------- */

static const volatile char *faults = "...";

static void __attribute__((constructor)) map_faults(void)
{
	const char *path = getenv("FAULTS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		faults = map;
	close(fd);
}

/* libfuse exits if it gets no memory for a request, which is not under test. */
static bool refused(size_t size)
{
	bool request = size > 1 << 20 && size <= (1 << 20) + 65536;

	return faults[1] == 'm' && size >= 16384 && !request;
}

/* Files of /proc and /sys have no size, and are exempt. */
static bool is_file(int fd)
{
	struct stat st;

	return syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

/* ---- the calls ----------------------------------------------------------------------------- */

/* The function of that name which this one hides. */
static void *hidden(const char *name)
{
	bool was = inside;
	void *f;

	inside = true;
	f = dlsym(RTLD_NEXT, name);
	inside = was;
	return f;
}

#define HIDDEN(name)                                                                     \
	({                                                                               \
		static __typeof__(&name) real;                                           \
		if (!real)                                                               \
			*(void **)&real = hidden(#name);                                 \
		real;                                                                    \
	})

/* A function that fails as CALL does, with the value FAILED. */
#define FAULTY(call, failed, result, name, params, args)                                 \
	SHOWN result name params                                                         \
	{                                                                                \
		return fails(call) ? (failed) : HIDDEN(name) args;                       \
	}
/* One that reads or writes SIZE bytes. */
#define FAULTY_BYTES(call, name, params, args)                                           \
	SHOWN ssize_t name params                                                        \
	{                                                                                \
		return fails_with(call, &size) ? -1 : HIDDEN(name) args;                 \
	}

/* Sanitizers have a malloc of their own, whose other names are these. */
void *__interceptor_malloc(size_t size) __attribute__((weak));
void *__interceptor_calloc(size_t n, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *block, size_t size) __attribute__((weak));
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

SHOWN void *malloc(size_t size)
{
	if (refused(size) || fails(CALL_MALLOC))
		return no_memory();
	return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

SHOWN void *calloc(size_t n, size_t size)
{
	if (refused(n * size) || fails(CALL_CALLOC))
		return no_memory();
	return __interceptor_calloc ? __interceptor_calloc(n, size)
				    : __libc_calloc(n, size);
}

SHOWN void *realloc(void *block, size_t size)
{
	if (refused(size) || fails(CALL_REALLOC))
		return no_memory();
	return __interceptor_realloc ? __interceptor_realloc(block, size)
				     : __libc_realloc(block, size);
}

/* A sanitizer's would not call malloc. */
SHOWN char *strndup(const char *text, size_t size)
{
	size_t n = strnlen(text, size);
	char *copy = malloc(n + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, n);
	copy[n] = '\0';
	return copy;
}

SHOWN char *strdup(const char *text)
{
	return strndup(text, SIZE_MAX);
}

SHOWN void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	if ((refused(size) && (flags & MAP_ANONYMOUS)) || fails(CALL_MMAP)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, off);
}

SHOWN int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			 void *(*run)(void *), void *arg)
{
	if (faults[2] == 't' || fails(CALL_THREAD))
		return EAGAIN;
	return HIDDEN(pthread_create)(thread, attr, run, arg);
}

SHOWN int posix_spawn(pid_t *pid, const char *path,
		      const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attr, char *const *argv, char *const *env)
{
	if (sweep.base && (strcmp(path, "/usr/bin/dpkg-query") == 0 ||
			   strcmp(path, "/usr/bin/rpm") == 0))
		return ENOENT;
	return HIDDEN(posix_spawn)(pid, path, actions, attr, argv, env);
}

SHOWN int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = HIDDEN(clock_gettime)(clock, now);

	if (result == 0 && faults[3] == 'l')
		now->tv_sec += 3600;
	return result;
}

/* ---- files --------------------------------------------------------------------------------- */

#define MODE(flags)                                                                      \
	({                                                                               \
		mode_t m = 0;                                                            \
		va_list ap;                                                              \
		va_start(ap, flags);                                                     \
		if ((flags) & (O_CREAT | __O_TMPFILE))                                   \
			m = va_arg(ap, mode_t);                                          \
		va_end(ap);                                                              \
		m;                                                                       \
	})

SHOWN int open(const char *path, int flags, ...)
{
	mode_t mode = MODE(flags);

	return fails(CALL_OPEN) ? -1 : HIDDEN(open)(path, flags, mode);
}

SHOWN int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = MODE(flags);

	return fails(CALL_OPEN) ? -1 : HIDDEN(openat)(dir, path, flags, mode);
}

/* What the compiler makes of these calls when it checks sizes. */
int __open64_2(const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t size, off_t off, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t size, size_t room);

SHOWN int __open64_2(const char *path, int flags)
{
	return open(path, flags);
}

SHOWN int __openat64_2(int dir, const char *path, int flags)
{
	return openat(dir, path, flags);
}

FAULTY(CALL_OPEN, NULL, FILE *, fopen, (const char *path, const char *mode), (path, mode))
FAULTY(CALL_OPEN, NULL, DIR *, opendir, (const char *path), (path))
FAULTY(CALL_OPEN, -1, int, memfd_create, (const char *name, unsigned flags),
       (name, flags))
FAULTY(CALL_FDOPEN, NULL, FILE *, fdopen, (int fd, const char *mode), (fd, mode))
FAULTY(CALL_FDOPEN, NULL, DIR *, fdopendir, (int fd), (fd))
FAULTY(CALL_FDOPEN, NULL, FILE *, open_memstream, (char **text, size_t *size),
       (text, size))
FAULTY(CALL_READDIR, NULL, struct dirent *, readdir, (DIR * d), (d))

/* openat2 and others that the C library may lack. */
SHOWN long syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if ((number == SYS_openat2 && fails(CALL_OPEN)) ||
	    (number == SYS_renameat2 && fails(CALL_RENAME)) ||
	    (number == SYS_statx && fails(CALL_STAT)))
		return -1;
	return HIDDEN(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

FAULTY_BYTES(CALL_READ, read, (int fd, void *buf, size_t size), (fd, buf, size))
FAULTY_BYTES(CALL_WRITE, write, (int fd, const void *buf, size_t size), (fd, buf, size))

/* What has no room for copy_file_range has none for those who then copy by themselves. */
SHOWN ssize_t pwrite(int fd, const void *buf, size_t size, off_t off)
{
	if (disk_full) {
		disk_full = false;
		errno = ENOSPC;
		return -1;
	}
	return fails_with(CALL_PWRITE, &size) ? -1 : HIDDEN(pwrite)(fd, buf, size, off);
}

FAULTY_BYTES(CALL_COPY_RANGE, copy_file_range,
	     (int in, off_t *in_off, int out, off_t *out_off, size_t size,
	      unsigned flags),
	     (in, in_off, out, out_off, size, flags))

SHOWN ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	(void)room;
	return read(fd, buf, size);
}

SHOWN ssize_t pread(int fd, void *buf, size_t size, off_t off)
{
	static unsigned n;
	char fault = faults[0];

	if (fails_with(CALL_PREAD, &size))
		return -1;
	if (fault == '.' || !is_file(fd))
		return HIDDEN(pread)(fd, buf, size, off);
	if (fault == 'e') {
		errno = EIO;
		return -1;
	}
	if (fault == 'i' && __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) % 2) {
		errno = EINTR;
		return -1;
	}
	if (fault == 'z')
		return 0;
	if (fault == 's')
		size = (size + 1) / 2;
	return HIDDEN(pread)(fd, buf, size, off);
}

SHOWN ssize_t __pread64_chk(int fd, void *buf, size_t size, off_t off, size_t room)
{
	(void)room;
	return pread(fd, buf, size, off);
}

FAULTY(CALL_FSYNC, -1, int, fsync, (int fd), (fd))
FAULTY(CALL_FSYNC, -1, int, fdatasync, (int fd), (fd))
FAULTY(CALL_FSYNC, -1, int, syncfs, (int fd), (fd))
FAULTY(CALL_RENAME, -1, int, rename, (const char *from, const char *to), (from, to))
FAULTY(CALL_RENAME, -1, int, renameat, (int a, const char *from, int b, const char *to),
       (a, from, b, to))
FAULTY(CALL_RENAME, -1, int, renameat2,
       (int a, const char *from, int b, const char *to, unsigned flags),
       (a, from, b, to, flags))
FAULTY(CALL_LINK, -1, int, link, (const char *from, const char *to), (from, to))
FAULTY(CALL_LINK, -1, int, linkat,
       (int a, const char *from, int b, const char *to, int flags),
       (a, from, b, to, flags))
FAULTY(CALL_SYMLINK, -1, int, symlink, (const char *text, const char *path), (text, path))
FAULTY(CALL_SYMLINK, -1, int, symlinkat, (const char *text, int dir, const char *path),
       (text, dir, path))
FAULTY(CALL_UNLINK, -1, int, unlink, (const char *path), (path))
FAULTY(CALL_UNLINK, -1, int, unlinkat, (int dir, const char *path, int flags),
       (dir, path, flags))
FAULTY(CALL_UNLINK, -1, int, rmdir, (const char *path), (path))
FAULTY(CALL_MKDIR, -1, int, mkdir, (const char *path, mode_t mode), (path, mode))
FAULTY(CALL_MKDIR, -1, int, mkdirat, (int dir, const char *path, mode_t mode),
       (dir, path, mode))
FAULTY(CALL_TRUNCATE, -1, int, ftruncate, (int fd, off_t size), (fd, size))
FAULTY(CALL_ALLOCATE, -1, int, fallocate, (int fd, int mode, off_t off, off_t size),
       (fd, mode, off, size))
FAULTY(CALL_ALLOCATE, ENOSPC, int, posix_fallocate, (int fd, off_t off, off_t size),
       (fd, off, size))
FAULTY(CALL_STAT, -1, int, stat, (const char *path, struct stat *st), (path, st))
FAULTY(CALL_STAT, -1, int, lstat, (const char *path, struct stat *st), (path, st))
FAULTY(CALL_STAT, -1, int, fstat, (int fd, struct stat *st), (fd, st))
FAULTY(CALL_STAT, -1, int, fstatat,
       (int dir, const char *path, struct stat *st, int flags), (dir, path, st, flags))
FAULTY(CALL_STAT, -1, int, statx,
       (int dir, const char *path, int flags, unsigned mask, struct statx *st),
       (dir, path, flags, mask, st))
FAULTY(CALL_READLINK, -1, ssize_t, readlink, (const char *path, char *buf, size_t size),
       (path, buf, size))
FAULTY(CALL_READLINK, -1, ssize_t, readlinkat,
       (int dir, const char *path, char *buf, size_t size), (dir, path, buf, size))

SHOWN ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
	(void)room;
	return readlink(path, buf, size);
}

SHOWN ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t size,
			       size_t room)
{
	(void)room;
	return readlinkat(dir, path, buf, size);
}

FAULTY(CALL_DUP, -1, int, dup, (int fd), (fd))
FAULTY(CALL_DUP, -1, int, dup2, (int fd, int to), (fd, to))
FAULTY(CALL_DUP, -1, int, dup3, (int fd, int to, int flags), (fd, to, flags))
FAULTY(CALL_DUP, -1, int, pipe2, (int fds[2], int flags), (fds, flags))

SHOWN int fcntl(int fd, int what, ...)
{
	va_list ap;
	long arg;

	va_start(ap, what);
	arg = va_arg(ap, long);
	va_end(ap);
	if (what == F_DUPFD_CLOEXEC && fails(CALL_DUP))
		return -1;
	if ((what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK ||
	     what == F_OFD_SETLKW) &&
	    fails(CALL_LOCK))
		return -1;
	return HIDDEN(fcntl)(fd, what, arg);
}

FAULTY(CALL_LOCK, -1, int, flock, (int fd, int how), (fd, how))
FAULTY(CALL_CHMOD, -1, int, chmod, (const char *path, mode_t mode), (path, mode))
FAULTY(CALL_CHMOD, -1, int, fchmod, (int fd, mode_t mode), (fd, mode))
FAULTY(CALL_CHOWN, -1, int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group))
FAULTY(CALL_CHOWN, -1, int, fchownat,
       (int dir, const char *path, uid_t user, gid_t group, int flags),
       (dir, path, user, group, flags))
FAULTY(CALL_TIMES, -1, int, futimens, (int fd, const struct timespec t[2]), (fd, t))
FAULTY(CALL_TIMES, -1, int, utimensat,
       (int dir, const char *path, const struct timespec t[2], int flags),
       (dir, path, t, flags))
FAULTY(CALL_SETXATTR, -1, int, fsetxattr,
       (int fd, const char *name, const void *value, size_t size, int flags),
       (fd, name, value, size, flags))
FAULTY(CALL_SETXATTR, -1, int, setxattr,
       (const char *path, const char *name, const void *value, size_t size, int flags),
       (path, name, value, size, flags))
FAULTY(CALL_GETXATTR, -1, ssize_t, fgetxattr,
       (int fd, const char *name, void *value, size_t size), (fd, name, value, size))
FAULTY(CALL_GETXATTR, -1, ssize_t, getxattr,
       (const char *path, const char *name, void *value, size_t size),
       (path, name, value, size))
FAULTY(CALL_GETXATTR, -1, ssize_t, lgetxattr,
       (const char *path, const char *name, void *value, size_t size),
       (path, name, value, size))
FAULTY(CALL_GETXATTR, -1, ssize_t, listxattr, (const char *path, char *list, size_t size),
       (path, list, size))
FAULTY(CALL_GETXATTR, -1, ssize_t, llistxattr,
       (const char *path, char *list, size_t size), (path, list, size))
FAULTY(CALL_GETXATTR, -1, ssize_t, flistxattr, (int fd, char *list, size_t size),
       (fd, list, size))
