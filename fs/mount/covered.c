/* SPDX-License-Identifier: MIT */
/* Files of the mount point that a mount would cover, and does not show itself. */
#include "mount.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "core/base/hash.h"
#include "fs/base/log.h"

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

/* Deeper directories have no entries: a path has at most this many components. */
enum { DEPTH_MAX = 128 };

struct covered {
	const struct edition *edition;
	const char *mountpoint;
	struct statx root;   /* look_at_mount's of the mount point */
	char path[PATH_MAX]; /* of the file below the mount point */
};

static bool report_file(const struct covered *c, const char *why)
{
	char text[PATH_MAX + 256];

	snprintf(text, sizeof(text),
		 "the mount would cover %s, %s: install or pack it elsewhere, or insist "
		 "with -o nonempty",
		 c->path, why);
	log_about(LOG_ERR, c->mountpoint, text);
	return false;
}

/* The xxh3 of the file FD of SIZE bytes.  false: it cannot be read. */
static bool hash_file(int fd, uint64_t size, struct kp_hash *out)
{
	struct kp_hasher *h = kp_hasher_new();
	char block[65536];
	ssize_t n = 0;

	while (h && size && (n = read(fd, block, sizeof(block))) > 0) {
		kp_hasher_add(h, block, (size_t)n);
		size -= (uint64_t)n < size ? (uint64_t)n : size;
	}
	if (h)
		*out = kp_hasher_value(h);
	kp_hasher_free(h);
	return h && size == 0;
}

/* Whether the regular file at FILE, opened with O_PATH, has the bytes of the entry WHAT. */
static bool has_bytes(int file, uint64_t size, const struct origin_entry *what)
{
	struct kp_decoding_facts facts =
		kp_archive_decoding_facts(what->origin->archive, what->entry);
	struct kp_hash hash;
	char path[32];
	bool same;
	int fd;

	if (!facts.xxh3)
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	same = fd >= 0 && hash_file(fd, size, &hash) && kp_hash_is(&hash, facts.xxh3);
	if (fd >= 0)
		close(fd);
	return same;
}

/* Check the file at FD, opened with O_PATH. */
static bool check_file(const struct covered *c, int fd, const struct stat *st,
		       const struct tree_node *node)
{
	struct file_content content;
	struct stat packed;
	bool same;

	if (!node || node->is_dir || !S_ISREG(st->st_mode))
		return report_file(c, "which no archive has");
	tree_stat(c->edition->tree, *node, &packed);
	if (packed.st_size != st->st_size)
		return report_file(c, "which has another size than in the archives");
	if (!edition_file(c->edition, node->index, &content))
		return report_file(c, "which cannot be compared: no memory");
	same = !content.bundle && has_bytes(fd, (uint64_t)st->st_size, &content.entry);
	file_content_unref(&content);
	return same || report_file(c, "which has other bytes than in the archives");
}

/*
 * Find out which mount the file FD, opened with O_PATH, is in.  Another user's FUSE server,
 * which may never answer, is asked nothing.
 */
static bool look_at_mount(int fd, struct statx *out)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		     STATX_MNT_ID, out) == 0;
}

static bool same_mount(const struct statx *a, const struct statx *b)
{
	if (a->stx_mask & b->stx_mask & STATX_MNT_ID)
		return a->stx_mnt_id == b->stx_mnt_id;
	return a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

static bool check_dir(struct covered *c, int fd, const struct tree_node *node, int depth);

/* Check the file at FD, opened with O_PATH, which is the node AT, or NULL. */
static bool check_node(struct covered *c, int fd, const struct tree_node *at, int depth)
{
	struct statx mount;
	struct stat st;
	int dir;

	if (!look_at_mount(fd, &mount) || !same_mount(&mount, &c->root) ||
	    fstat(fd, &st) < 0)
		return true;
	if (!S_ISDIR(st.st_mode))
		return check_file(c, fd, &st, at);
	if (depth >= DEPTH_MAX)
		return true;
	dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 || check_dir(c, dir, at && at->is_dir ? at : NULL, depth + 1);
}

/* Check NAME of the directory DIR, which is the node ABOVE, or NULL: not in the mount. */
static bool check_name(struct covered *c, int dir, const char *name,
		       const struct tree_node *above, int depth)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct tree_node node;
	bool has, fine;

	if (fd < 0)
		return true; /* removed meanwhile */
	has = above &&
	      tree_lookup(c->edition->tree, above->index, kp_span_str(name), &node);
	fine = check_node(c, fd, has ? &node : NULL, depth);
	close(fd);
	return fine;
}

/* Check the directory FD, and close it. */
static bool check_dir(struct covered *c, int fd, const struct tree_node *node, int depth)
{
	size_t length = strlen(c->path);
	DIR *list = fdopendir(fd);
	const struct dirent *e;
	bool fine = true;

	if (!list) {
		close(fd);
		return true;
	}
	while (fine && (e = readdir(list))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(c->path + length, sizeof(c->path) - length, "%s%s",
			 length ? "/" : "", e->d_name);
		fine = check_name(c, dirfd(list), e->d_name, node, depth);
	}
	c->path[length] = '\0';
	closedir(list);
	return fine;
}

bool covered_check(int dir, const char *path, const struct edition *e)
{
	struct covered c = {.edition = e, .mountpoint = path};
	struct tree_node root = tree_root(e->tree);
	struct statfs fs;
	int fd;

	if (fstatfs(dir, &fs) < 0 || fs.f_type == FUSE_SUPER_MAGIC ||
	    !look_at_mount(dir, &c.root))
		return true; /* the mount itself fails, if it has to */
	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || check_dir(&c, fd, &root, 0);
}
