/* SPDX-License-Identifier: MIT */
/*
 * A marker is found by a pointer without a size, so its memory is read by the kernel, which says
 * where it ends instead of a fault.  The binary that a marker is in is found in /proc/self/maps,
 * whose lines spell some names in several ways.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/bounds.h"
#include "core/base/mountinfo.h"
#include "core/base/span.h"
#include "process.h"

/* No machine has smaller pages, so that a run is readable as a whole or not at all. */
enum { RUN = 4096, RUNS = 32 };

/* Return the bytes from AT to the end of its run, at most LEFT. */
static size_t run_size(const char *at, size_t left)
{
	size_t n = RUN - (uintptr_t)at % RUN;

	return n < left ? n : left;
}

/*
 * Copy many runs in one call, each run as one iovec element: the kernel copies an element
 * whole or not at all.  Returns -1 and errno on failure; EFAULT: nothing is readable.
 */
static ssize_t copy_direct(const char *at, void *buf, size_t size)
{
	struct iovec to = {buf, 0}, from[RUNS];
	unsigned n = 0;

	for (; n < RUNS && to.iov_len < size; n++) {
		const char *start = at + to.iov_len;

		from[n].iov_base = (void *)start;
		from[n].iov_len = run_size(start, size - to.iov_len);
		to.iov_len += from[n].iov_len;
	}
	return process_vm_readv(getpid(), &to, 1, from, n, 0);
}

/* Copy one run through a pipe, for sandboxes that forbid process_vm_readv. */
static ssize_t copy_piped(const char *at, void *buf, size_t size)
{
	ssize_t n;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -1;
	n = write(fds[1], at, run_size(at, size));
	if (n > 0)
		n = read(fds[0], buf, (size_t)n);
	close(fds[0]);
	close(fds[1]);
	return n;
}

kpack_error_t kp_probe(const void *at, void *buf, size_t size, size_t *got,
		       struct kpackx_error *why)
{
	const char *from = at;
	size_t done = 0;

	if (size > UINTPTR_MAX - (uintptr_t)at)
		size = UINTPTR_MAX - (uintptr_t)at;
	while (done < size) {
		ssize_t n = copy_direct(from + done, (char *)buf + done, size - done);

		if (n < 0 && errno != EFAULT)
			n = copy_piped(from + done, (char *)buf + done, size - done);
		if (n < 0 && errno != EFAULT)
			return kp_fail_errno(why, errno, "cannot read memory");
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	*got = done;
	return KPACK_SUCCESS;
}

/* ---- the binary at an address ---- */

#define MAPS "/proc/self/maps"
#define DELETED " (deleted)"
#define NEWLINE "\\012"

struct mapping {
	uint64_t start, end, offset, inode;
	char *name; /* points into the line; "": none */
};

/* Parse a number in BASE that is followed by END. */
static bool take_number(char **at, int base, char end, uint64_t *out)
{
	char *stop;

	*out = strtoull(*at, &stop, base);
	if (stop == *at || *stop != end)
		return false;
	*at = stop + 1;
	return true;
}

/* Parse a line such as "55d0-55d8 r-xp 00002000 fd:01 1234   /usr/lib/libx.so". */
static bool parse_line(char *line, struct mapping *m)
{
	line[strcspn(line, "\n")] = '\0';
	if (!take_number(&line, 16, '-', &m->start) ||
	    !take_number(&line, 16, ' ', &m->end))
		return false;
	line += strcspn(line, " ");
	line += strspn(line, " ");
	if (!take_number(&line, 16, ' ', &m->offset))
		return false;
	line += strcspn(line, " ");
	line += strspn(line, " ");
	if (!take_number(&line, 10, ' ', &m->inode))
		return false;
	m->name = line + strspn(line, " ");
	return true;
}

/* ---- the name of the file ---- */

/* The device is not compared, because for overlays and btrfs stat gives another one. */
static bool is_mapped(const char *name, uint64_t inode)
{
	struct stat st;

	return stat(name, &st) == 0 && st.st_ino == inode;
}

/*
 * The kernel gives a file of an overlay over another overlay the name that it has below
 * the upper one's mount point.  NULL: NAME is not such a name.
 */
static char *name_in_overlay(const char *name, uint64_t inode)
{
	struct kp_mounts mounts;
	struct kp_mount m;
	char *path = NULL;

	kp_mounts_open(&mounts);
	while (!path && kp_mounts_next(&mounts, &m)) {
		if (strcmp(m.type, "overlay") != 0 ||
		    asprintf(&path, "%s%s", m.path, name) < 0)
			path = NULL;
		else if (!is_mapped(path, inode)) {
			free(path);
			path = NULL;
		}
	}
	kp_mounts_close(&mounts);
	return path;
}

/*
 * The first reading of M's name that leads to the mapped file.  If none does, the file is gone,
 * and the last reading is the name that it had.
 */
static char *file_name(const struct mapping *m)
{
	static const struct {
		bool escaped, deleted;
	} spellings[] = {{false, false}, {true, false}, {false, true}, {true, true}};
	size_t n = strlen(m->name), suffix = strlen(DELETED);
	bool deleted = n > suffix && strcmp(m->name + n - suffix, DELETED) == 0;
	char *name = malloc(n + 1), *path, *to;

	for (size_t i = 0; name && i < KP_COUNT(spellings); i++) {
		const char *end = m->name + n;

		to = name;
		if (spellings[i].deleted && deleted)
			end -= suffix;
		for (const char *from = m->name; from < end; to++) {
			bool newline = spellings[i].escaped &&
				       strncmp(from, NEWLINE, strlen(NEWLINE)) == 0;

			*to = newline ? '\n' : *from;
			from += newline ? strlen(NEWLINE) : 1;
		}
		*to = '\0';
		if (is_mapped(name, m->inode))
			return name;
	}
	path = name ? name_in_overlay(m->name, m->inode) : NULL;
	if (!path)
		return name;
	free(name);
	return path;
}

kpack_error_t kp_maps_find(const void *address, char **path, uint64_t *offset,
			   struct kpackx_error *why)
{
	FILE *maps = fopen(MAPS, "re");
	kpack_error_t err = KPACK_SUCCESS;
	uint64_t at = (uintptr_t)address;
	struct mapping m = {0};
	char *line = NULL;
	bool found = false;
	size_t cap = 0;

	if (!maps) {
		kp_fail_errno(why, errno, "cannot open");
		return kp_fail_prefix(why, KPACK_ERROR_PATH_DISCOVERY_FAILED, MAPS);
	}
	while (!found && getline(&line, &cap, maps) > 0)
		found = parse_line(line, &m) && at >= m.start && at < m.end;
	if (!found || m.name[0] != '/')
		err = kp_fail(why, KPACK_ERROR_PATH_DISCOVERY_FAILED,
			      found ? "no file is mapped at %p"
				    : "nothing is mapped at %p",
			      address);
	else if (!(*path = file_name(&m)))
		err = kp_fail_memory(why, strlen(m.name), "a path");
	else
		*offset = m.offset + (at - m.start);
	free(line);
	fclose(maps);
	return err;
}

/* ---- the marker ---- */

/* Parse the marker in the readable bytes of [AT, AT + SIZE); *CUT: more may follow. */
static kpack_error_t parse_marker(const void *at, uint8_t *buf, size_t size, bool *cut,
				  struct kp_marker *out, struct kpackx_error *why)
{
	size_t got;

	*cut = false;
	KP_TRY(kp_probe(at, buf, size, &got, why));
	if (got == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "marker: no readable memory at %p", at);
	*cut = got == size;
	return kp_marker_parse((struct kp_span){buf, got}, out, why);
}

/*
 * Its size is unknown, and reading past its end may have to wait for the disk, so at first
 * only the usual size of markers is read.
 */
kpack_error_t kp_marker_read_at(const void *at, struct kp_marker *out,
				struct kpackx_error *why)
{
	uint8_t few[1024], *buf;
	struct kpackx_error reason = {0};
	bool cut;
	kpack_error_t err = parse_marker(at, few, sizeof(few), &cut, out, &reason);

	if (err && cut) {
		buf = malloc(KP_MARKER_MAX);
		if (!buf)
			return kp_fail_memory(why, KP_MARKER_MAX, "a marker");
		err = parse_marker(at, buf, KP_MARKER_MAX, &cut, out, &reason);
		free(buf);
	}
	/* here only the marker can be invalid MessagePack, so report it as metadata */
	if (err == KPACK_ERROR_MSGPACK_PARSE_FAILED)
		err = KPACK_ERROR_INVALID_METADATA;
	return err ? kp_fail(why, err, "%s", reason.text) : KPACK_SUCCESS;
}
