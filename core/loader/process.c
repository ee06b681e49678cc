/* SPDX-License-Identifier: MIT */
/*
 * A marker is found by a pointer without a size, so its memory is read by the kernel, which says
 * where it ends instead of a fault.  The binary that a marker is in is found in /proc/self/maps,
 * whose lines spell some names in several ways.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/bounds.h"
#include "core/base/file.h"
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

kpack_error_t kp_probe(const void *at, void *buf, size_t size, size_t *got,
		       struct kpackx_error *why)
{
	char *to = buf;
	size_t done = 0;
	ssize_t n;
	int fds[2];

	if (size > UINTPTR_MAX - (uintptr_t)at)
		size = UINTPTR_MAX - (uintptr_t)at;
	for (; done < size; done += (size_t)n) {
		const char *from = (const char *)at + done;
		struct iovec local = {to + done, 0}, remote[RUNS];
		unsigned count = 0;

		/*
		 * Many runs in one call, each as one iovec element: the kernel copies an element
		 * whole or not at all.  EFAULT: nothing is readable.
		 */
		for (; count < RUNS && local.iov_len < size - done; count++) {
			const char *start = from + local.iov_len;

			remote[count].iov_base = (void *)start;
			remote[count].iov_len =
				run_size(start, size - done - local.iov_len);
			local.iov_len += remote[count].iov_len;
		}
		n = process_vm_readv(getpid(), &local, 1, remote, count, 0);
		/* one run through a pipe, for sandboxes that forbid process_vm_readv */
		if (n < 0 && errno != EFAULT && pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0) {
			n = write(fds[1], from, run_size(from, size - done));
			if (n > 0)
				n = read(fds[0], to + done, (size_t)n);
			kp_close_keeping_errno(fds[0]);
			kp_close_keeping_errno(fds[1]);
		}
		if (n < 0 && errno != EFAULT)
			return kp_fail_errno(why, errno, "cannot read memory");
		if (n <= 0)
			break;
	}
	*got = done;
	return KPACK_SUCCESS;
}

/* ---- the binary at an address ---- */

#define MAPS "/proc/self/maps"
#define DELETED " (deleted)"
#define NEWLINE "\\012"

/* The device is not compared, because for overlays and btrfs stat gives another one. */
static bool is_mapped(const char *name, uint64_t inode)
{
	struct stat st;

	return stat(name, &st) == 0 && st.st_ino == inode;
}

kpack_error_t kp_maps_find(const void *address, char **path, uint64_t *offset,
			   struct kpackx_error *why)
{
	/* how a line may spell the file's name */
	static const struct {
		bool escaped, deleted;
	} spellings[] = {{false, false}, {true, false}, {false, true}, {true, true}};
	uint64_t at = (uintptr_t)address, start, end, from, inode;
	const char *stop, *shown = NULL;
	char *line = NULL, *name, *other, *to;
	size_t cap = 0, n, suffix = strlen(DELETED);
	FILE *maps = fopen(MAPS, "re");
	struct kp_mounts mounts;
	struct kp_mount mount;
	int behind;

	if (!maps) {
		kp_fail_errno(why, errno, "cannot open");
		return kp_fail_prefix(why, KPACK_ERROR_PATH_DISCOVERY_FAILED, MAPS);
	}
	/* such as "55d0-55d8 r-xp 00002000 fd:01 1234   /usr/lib/libx.so" */
	while (!shown && getline(&line, &cap, maps) > 0) {
		line[strcspn(line, "\n")] = '\0';
		/* NOLINTNEXTLINE(cert-err34-c): the kernel's numbers fit */
		if (sscanf(line,
			   "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64 " %n",
			   &start, &end, &from, &inode, &behind) == 4 &&
		    at >= start && at < end)
			shown = line + behind;
	}
	fclose(maps);
	if (!shown || *shown != '/') {
		free(line);
		return kp_fail(why, KPACK_ERROR_PATH_DISCOVERY_FAILED,
			       shown ? "no file is mapped at %p"
				     : "nothing is mapped at %p",
			       address);
	}
	*offset = from + (at - start);

	/*
	 * The first reading of the name that leads to the mapped file.  If none does, the file is
	 * gone, and the last reading is the name that it had.
	 */
	n = strlen(shown);
	*path = name = malloc(n + 1);
	for (size_t i = 0; name && i < KP_COUNT(spellings); i++) {
		stop = shown + n;
		if (spellings[i].deleted && n > suffix &&
		    strcmp(stop - suffix, DELETED) == 0)
			stop -= suffix;
		to = name;
		for (const char *s = shown; s < stop; to++) {
			bool newline = spellings[i].escaped &&
				       strncmp(s, NEWLINE, strlen(NEWLINE)) == 0;

			*to = newline ? '\n' : *s;
			s += newline ? strlen(NEWLINE) : 1;
		}
		*to = '\0';
		if (is_mapped(name, inode))
			goto found;
	}
	/* the kernel gives a file of an overlay over another overlay the name that it has below the
	 * upper one's mount point */
	kp_mounts_open(&mounts);
	while (name && kp_mounts_next(&mounts, &mount)) {
		if (strcmp(mount.type, "overlay") != 0 ||
		    asprintf(&other, "%s%s", mount.path, shown) < 0)
			continue;
		if (is_mapped(other, inode)) {
			free(name);
			*path = name = other;
			break;
		}
		free(other);
	}
	kp_mounts_close(&mounts);
found:
	free(line);
	return name ? KPACK_SUCCESS : kp_fail_memory(why, n, "a path");
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
