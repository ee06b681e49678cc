/* SPDX-License-Identifier: MIT */
/*
 * Mounts of kpackfs that show bundles (-o bundles) of the same archives: a bundle is then
 * mapped from there, which decodes an object when it is first read, once for all programs.
 */
#include "hip.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mountinfo.h"
#include "core/base/text.h"
#include "core/format/bundle.h"

/*
 * Open the regular file PATH, if it is in a mount of DEVICE.  The owner of a directory above
 * the mount can move that directory away, and put another in its place; what is mounted on
 * it hides the mount, too.
 */
static int open_mounted(const char *path, dev_t device, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 &&
	    (fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || st->st_dev != device)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static FILE *open_control(const struct kp_mount *mount, const char *name)
{
	FILE *file = NULL;
	struct stat st;
	char *path;
	int fd;

	if (asprintf(&path, "%s/.kpackfs/%s", mount->path, name) < 0)
		return NULL;
	fd = open_mounted(path, mount->device, &st);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (fd >= 0 && !file)
		close(fd);
	free(path);
	return file;
}

/* With conflicts, an entry of another archive could be in place of ours. */
static bool has_conflicts(const struct kp_mount *mount)
{
	FILE *file = open_control(mount, "status");
	char line[4096];
	bool none = false;

	while (file && !none && fgets(line, sizeof(line), file))
		none = strcmp(line, "  conflicts  none\n") == 0;
	if (file)
		fclose(file);
	return !none;
}

/* The mount of B is known to list F. */
static bool is_mounted(const struct binary *b, const struct kp_lookup_file *f)
{
	for (size_t i = 0; i < b->n_mounted; i++)
		if (b->mounted[i] == f)
			return true;
	return false;
}

/* Whether PATH still leads to the file that was opened as F. */
static bool is_current(const char *path, const struct kp_lookup_file *f)
{
	const struct stat *was = kp_archive_stat(kp_cached_archive(f->held));
	struct stat st;

	return stat(path, &st) == 0 && was->st_dev == st.st_dev &&
	       was->st_ino == st.st_ino && was->st_size == st.st_size &&
	       was->st_mtim.tv_sec == st.st_mtim.tv_sec &&
	       was->st_mtim.tv_nsec == st.st_mtim.tv_nsec;
}

/*
 * Whether MOUNT lists the archives of P, as they were opened.  The file at an archive's path may be
 * another one than the mount has opened, because a mount may not notice that an archive was
 * replaced.
 */
static bool lists_parts(const struct kp_mount *mount, const struct parts *p)
{
	FILE *file = open_control(mount, "archives");
	char *line = NULL, end[100];
	bool all = file != NULL;
	size_t cap = 0, m;
	ssize_t n;

	for (size_t i = 0; i < p->count && all; i++) {
		const struct kp_lookup_file *f = p->list[i].file;
		const struct stat *st = kp_archive_stat(kp_cached_archive(f->held));

		m = (size_t)snprintf(end, sizeof(end), "\t%lld\t%llu\t%lld.%09ld\n",
				     (long long)st->st_size,
				     (unsigned long long)st->st_ino,
				     (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
		rewind(file);
		all = false;
		while (!all && (n = getline(&line, &cap, file)) > 0) {
			if ((size_t)n < m || memcmp(line + n - m, end, m) != 0)
				continue;
			line[strcspn(line, "\t")] = '\0';
			kp_text_unescape(line);
			all = is_current(line, f);
		}
	}
	free(line);
	if (file)
		fclose(file);
	return all;
}

/* ---- the bundle ---- */

/* The longest header that is looked at, and how much of it is read first. */
enum { HEADER_MAX = 16384, HEADER_SHORT = 1024 };

/* Whether the HEADER of a bundle has a row for PART, as far as it was read. */
static bool header_has(struct kp_span header, const struct part *part)
{
	const uint8_t *at = header.data + KP_BUNDLE_HEADER_MIN;
	size_t left = header.size - KP_BUNDLE_HEADER_MIN;
	struct kp_entry_id id;

	for (uint64_t n = kp_le64(at - 8); n > 0 && left >= KP_BUNDLE_ROW_SIZE; n--) {
		uint64_t length = kp_le64(at + 16);

		if (length > left - KP_BUNDLE_ROW_SIZE)
			return false;
		if (kp_entry_id_parse(
			    (struct kp_span){at + KP_BUNDLE_ROW_SIZE, (size_t)length},
			    &id) &&
		    kp_span_is(id.target, part->arch) && kp_le64(at + 8) == part->size)
			return true;
		at += KP_BUNDLE_ROW_SIZE + length;
		left -= KP_BUNDLE_ROW_SIZE + (size_t)length;
	}
	return false;
}

static bool header_has_all(struct kp_span header, const struct parts *p)
{
	if (header.size < KP_BUNDLE_HEADER_MIN || !kp_bundle_probe(header))
		return false;
	for (size_t i = 0; i < p->count; i++)
		if (!header_has(header, &p->list[i]))
			return false;
	return true;
}

static bool has_all_parts(int fd, const struct parts *p)
{
	uint8_t buf[HEADER_MAX];
	ssize_t n = pread(fd, buf, HEADER_SHORT, 0);

	if (n > 0 && header_has_all((struct kp_span){buf, (size_t)n}, p))
		return true;
	if (n == HEADER_SHORT)
		n = pread(fd, buf, sizeof(buf), 0);
	return n > 0 && header_has_all((struct kp_span){buf, (size_t)n}, p);
}

static char *bundle_path(const char *mount, const struct binary *b, uint32_t index)
{
	char *path;

	if (asprintf(&path, "%s/hipfb/%s/%" PRIu32 ".hipfb", mount, b->facts.kernel_name,
		     index) < 0)
		return NULL;
	return path;
}

/* Whether MOUNT has the bundle INDEX of B with P: it may have no bundles, or other GPUs'. */
static bool has_bundle(const struct kp_mount *mount, const struct binary *b,
		       uint32_t index, const struct parts *p)
{
	char *path = bundle_path(mount->path, b, index);
	struct stat st;
	int fd = path ? open_mounted(path, mount->device, &st) : -1;
	bool has = fd >= 0 && has_all_parts(fd, p);

	if (fd >= 0)
		close(fd);
	free(path);
	return has;
}

bool mounts_map(struct binary *b, const struct parts *p, uint32_t index, void **at,
		size_t *size)
{
	struct kp_mount mount = {.device = b->mount_device};
	struct kp_line line = {.used = 0};
	struct kp_mounts mounts = {0};
	bool mapped = false;
	struct stat st;
	size_t known = 0;
	uid_t user;
	char *path;
	int fd;

	if (p->count == 0 || !kp_path_ok(kp_span_str(b->facts.kernel_name)))
		return false;
	/* the mount for the binary, whose daemon runs as root or as this process's user */
	if (!b->mount_sought && !kp_is_secure())
		kp_mounts_open(&mounts);
	b->mount_sought = true;
	while (!b->mount && kp_mounts_next(&mounts, &mount))
		if (strcmp(mount.type, "fuse.kpackfs") == 0 &&
		    kp_mount_fuse_user(&mount, &user) &&
		    (user == 0 || user == geteuid()) && has_bundle(&mount, b, index, p) &&
		    !has_conflicts(&mount) && lists_parts(&mount, p)) {
			b->mount = strdup(mount.path);
			b->mount_device = mount.device;
		}
	kp_mounts_close(&mounts);

	/* it lists the archives, as is known or as it says now */
	while (known < p->count && is_mounted(b, p->list[known].file))
		known++;
	mount = (struct kp_mount){.path = b->mount, .device = b->mount_device};
	if (!b->mount || (known < p->count && !lists_parts(&mount, p)))
		return false;
	path = bundle_path(b->mount, b, index);
	fd = path ? open_mounted(path, b->mount_device, &st) : -1;
	if (fd >= 0 && has_all_parts(fd, p)) {
		*size = (size_t)st.st_size;
		*at = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
		mapped = *at != MAP_FAILED;
	}
	if (fd >= 0)
		close(fd);
	/* if the path of each archive leads to the opened file, no mount has a later one */
	for (size_t i = 0; i < p->count && mapped; i++)
		if ((i == 0 || p->list[i].file != p->list[i - 1].file) &&
		    !is_current(p->list[i].file->path, p->list[i].file)) {
			munmap(*at, *size);
			mapped = false;
		}
	if (mapped) {
		kp_line_add_name(&line, p->key);
		kp_line_add(&line, ": mapped from ");
		kp_line_add_name(&line, path);
		say_line(SAY_ALL, &line);
	}
	for (size_t i = 0; i < p->count && mapped; i++)
		if (!is_mounted(b, p->list[i].file) && b->n_mounted < BINARY_MOUNTED_MAX)
			b->mounted[b->n_mounted++] = p->list[i].file;
	free(path);
	return mapped;
}
