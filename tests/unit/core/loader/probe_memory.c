/* SPDX-License-Identifier: MIT */
#include "core/loader/process.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 65536 };

/* SIZE readable bytes, followed by an unreadable page. */
static uint8_t *guarded(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *bytes = mmap(NULL, SIZE + page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED || mprotect(bytes + SIZE, page, PROT_NONE))
		abort();
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	return bytes;
}

/* Whether kp_probe reads exactly WANT bytes at AT, with the right contents. */
static bool gets(const uint8_t *at, size_t size, size_t want)
{
	static uint8_t buf[2 * SIZE];
	size_t got = SIZE_MAX;

	memset(buf, 0, sizeof(buf));
	return kp_probe(at, buf, size, &got, NULL) == KPACK_SUCCESS && got == want &&
	       memcmp(buf, at, got) == 0;
}

/* As gets, with pages past the end of a file: they are mapped but unreadable. */
static bool gets_file(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("short", MFD_CLOEXEC);
	const uint8_t *bytes;
	bool ok;

	if (fd < 0 || ftruncate(fd, 10))
		return false;
	bytes = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	ok = gets(bytes, 3 * page, page) && gets(bytes + page, page, 0);
	munmap((void *)bytes, 3 * page);
	return ok;
}

static bool gets_all(void)
{
	const uint8_t *bytes = guarded();
	static const size_t left[] = {0, 1, 15, 4095, 4096, 4097, 12288, 40000, SIZE};
	bool ok = gets_file();

	for (size_t i = 0; i < COUNT(left); i++) {
		const uint8_t *at = bytes + SIZE - left[i];

		ok = ok && gets(at, SIZE, left[i]) && gets(at, 2 * SIZE, left[i]) &&
		     gets(at, left[i], left[i]) && gets(at, left[i] / 2, left[i] / 2);
	}
	return ok && gets(bytes, 0, 0);
}

TEST(memory_is_copied_to_where_it_ends)
{
	assert_true(gets_all());
}

/* Make process_vm_readv fail with EPERM from now on, as container runtimes do. */
static bool forbid(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {COUNT(rules), rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(a_sandbox_does_not_matter)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(!forbid() ? 2 : gets_all() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip(); /* the kernel has no seccomp */
	assert_int_equal(WEXITSTATUS(status), 0);
}
