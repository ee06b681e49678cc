/* SPDX-License-Identifier: MIT */
#include "core/base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/hooks.h"
#include "tests/unit/unit.h"
#include "tests/unit/count_names.h"

static char dir[] = "/tmp/kp-file-XXXXXX";
static struct kpackx_error why;

static const char *in_dir(const char *name)
{
	static char path[4][300];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void assert_content(const char *name, const char *text)
{
	char buf[64] = "";
	struct stat st;
	int fd = -1;

	assert_int_equal(kp_file_open(in_dir(name), &fd, &st, &why), KPACK_SUCCESS);
	assert_int_equal(st.st_size, strlen(text));
	assert_int_equal(kp_file_pread(fd, 0, buf, strlen(text), &why), KPACK_SUCCESS);
	assert_string_equal(buf, text);
	close(fd);
}

static kpack_error_t write_file(const char *name, const char *text)
{
	struct kp_outfile out;

	KP_TRY(kp_outfile_open(&out, dir, name, 0644, &why));
	KP_TRY(kp_outfile_pwrite(&out, 0, text, strlen(text), &why));
	return kp_outfile_publish(&out, &why);
}

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/kp-file-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = readdir(d))) {
		if (unlink(in_dir(e->d_name)))
			rmdir(in_dir(e->d_name));
	}
	closedir(d);
	return rmdir(dir);
}

TEST(memory_is_read_within_its_bounds, make_dir, remove_dir)
{
	struct kp_source s = kp_source_memory("abcdef", 6), sub;
	char buf[8];

	assert_true(kp_source_sub(&s, 2, 3, &sub));
	assert_int_equal(kp_source_read(&sub, 1, buf, 2, &why), KPACK_SUCCESS);
	assert_memory_equal(buf, "de", 2);
	assert_int_equal(kp_source_read(&sub, 2, buf, 2, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(kp_source_read(&sub, 3, NULL, 0, &why), KPACK_SUCCESS);
	assert_int_equal(kp_source_read(&sub, UINT64_MAX, buf, 2, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_false(kp_source_sub(&s, 7, 0, &sub));
	assert_false(kp_source_sub(&s, 1, UINT64_MAX, &sub));
}

TEST(a_file_is_read_within_its_run, make_dir, remove_dir)
{
	struct kp_source s, sub;
	uint8_t *whole;
	struct stat st;
	char buf[8];
	int fd;

	assert_int_equal(write_file("f", "0123456789"), KPACK_SUCCESS);
	assert_int_equal(kp_file_open(in_dir("f"), &fd, &st, &why), KPACK_SUCCESS);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	s = kp_source_fd(fd, 2, 6);
	assert_true(kp_source_sub(&s, 1, 4, &sub));
	assert_int_equal(kp_source_read(&sub, 0, buf, 4, &why), KPACK_SUCCESS);
	assert_memory_equal(buf, "3456", 4);
	assert_int_equal(kp_source_read(&sub, 1, buf, 4, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(kp_source_load(&s, 6, "a run", &whole, &why), KPACK_SUCCESS);
	assert_string_equal((char *)whole, "234567");
	free(whole);
	assert_int_equal(kp_source_load(&s, 5, "a run", &whole, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_string_equal(why.text, "a run: 6 bytes, at most 5");
	assert_null(whole);
	/* the run extends past the end: the file has become shorter */
	s = kp_source_fd(fd, 2, 100);
	assert_int_equal(kp_source_load(&s, 100, "a run", &whole, &why),
			 KPACK_ERROR_IO_ERROR);
	assert_null(whole);
	assert_int_equal(kp_source_read(&s, 4, buf, 8, &why), KPACK_ERROR_IO_ERROR);
	assert_has(why.text, "ends at 10");
	s = kp_source_fd(fd, UINT64_MAX, UINT64_MAX);
	assert_int_equal(kp_source_read(&s, 4, buf, 8, &why), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(kp_file_pread(fd, UINT64_MAX, buf, 8, &why),
			 KPACK_ERROR_IO_ERROR);
	close(fd);
}

static struct {
	off_t at, len;
} asked[8];
static unsigned n_asked;

static int note_fadvise(int fd, off_t at, off_t len, int advice)
{
	assert_int_equal(fd, 77);
	assert_int_equal(advice, POSIX_FADV_WILLNEED);
	assert_true(n_asked < 8);
	asked[n_asked].at = at;
	asked[n_asked++].len = len;
	return 0;
}

/* Read SOURCE in steps; each ask must begin where the last one ended. */
static void expect_all(const struct kp_source *s, uint64_t step, unsigned asks)
{
	uint64_t end = 0;

	n_asked = 0;
	hook_fadvise = note_fadvise;
	for (uint64_t at = 0; at < s->size; at += step) {
		kp_source_expect(s, at, &end);
		assert_true(end >= (at + step < s->size ? at + step : s->size));
		assert_true(end <= at + (3 << 19));
	}
	kp_source_expect(s, s->size, &end);
	assert_int_equal(n_asked, asks);
	for (unsigned i = 1; i < asks; i++)
		assert_int_equal(asked[i].at, asked[i - 1].at + asked[i - 1].len);
	assert_int_equal(asked[0].at, s->offset);
	assert_int_equal(asked[asks - 1].at + asked[asks - 1].len, s->offset + s->size);
}

TEST(a_run_is_read_ahead_once, make_dir, remove_dir)
{
	struct kp_source s = kp_source_fd(77, 12345, (3 << 20) + 7);
	uint64_t end = 0;

	expect_all(&s, 64 << 10, 4);
	expect_all(&s, 256 << 10, 4);
	expect_all(&s, 100001, 4);
	s.size = (64 << 10) + 1;
	expect_all(&s, 1 << 10, 1);
	/* in one step: there is nothing to ask for */
	n_asked = 0;
	s.size = 64 << 10;
	kp_source_expect(&s, 0, &end);
	assert_int_equal(end, 0);
	/* the reader jumped: what lies between is not asked for */
	s.size = 8 << 20;
	kp_source_expect(&s, 5 << 20, &end);
	assert_int_equal(end, 6 << 20);
	assert_int_equal(n_asked, 1);
	assert_int_equal(asked[0].at, 12345 + (5 << 20));
	/* behind the end; memory; behind the greatest offset of a file */
	kp_source_expect(&s, UINT64_MAX, &end);
	end = 0;
	s = kp_source_memory(&s, 1 << 20);
	kp_source_expect(&s, 0, &end);
	s = kp_source_fd(77, UINT64_MAX - 5, 1 << 20);
	kp_source_expect(&s, 0, &end);
	s = kp_source_fd(77, INT64_MAX - 5, 1 << 20);
	end = 0;
	kp_source_expect(&s, 0, &end);
	assert_int_equal(n_asked, 1);
}

/* A new file is published, an existing one is kept; returns 0 on success. */
static int write_kept(void)
{
	struct kp_outfile out;
	kpack_error_t err;

	for (int round = 0; round < 2; round++) {
		if (kp_outfile_open(&out, dir, "a", 0644, &why) ||
		    kp_outfile_pwrite(&out, 0, round ? "new" : "old", 3, &why))
			return 10;
		out.keep = out.lazy = true;
		err = kp_outfile_publish(&out, &why);
		kp_outfile_close(&out);
		if (err != (round ? KPACK_ERROR_IO_ERROR : KPACK_SUCCESS))
			return 11;
	}
	return why.sys_errno != EEXIST || count_names(dir) != 1 ? 12 : 0;
}

/* From now on this process sees a file system without O_TMPFILE. */
static void forbid_tmpfile(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TMPFILE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TMPFILE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {COUNT(code), code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
	assert_int_equal(open(dir, O_TMPFILE | O_RDWR, 0600), -1);
}

/* Returns 0 on success; runs in a child process. */
static int write_without_tmpfile(void)
{
	struct kp_outfile out;
	size_t len;

	forbid_tmpfile();
	if (kp_outfile_open(&out, dir, "a.kpack", 0640, &why) || !out.tmp_name)
		return 1;
	len = strlen(out.tmp_name);
	if (out.tmp_name[0] != '.' || strcmp(out.tmp_name + len - 6, ".kpack") == 0)
		return 2;
	if (count_names(dir) != 1 || access(in_dir(out.tmp_name), F_OK))
		return 3;
	kp_outfile_close(&out);
	if (count_names(dir) != 0)
		return 4;
	if (write_kept() || unlink(in_dir("a")))
		return 5;
	return write_file("a.kpack", "text") ? 6 : 0;
}

TEST(a_hidden_name_does_where_o_tmpfile_does_not, make_dir, remove_dir)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(write_without_tmpfile());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_content("a.kpack", "text");
	assert_int_equal(count_names(dir), 1);
}
