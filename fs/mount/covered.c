/* SPDX-License-Identifier: MIT */
/*
 * What a mount would cover, and does not show itself: files of the mount point, and another
 * kpackfs, which people forget, and whose archives would stay open below.
 */
#include "mount.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
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

/* Whether the regular file at FILE, opened with O_PATH, has the bytes of the entry WHAT. */
static bool has_bytes(int file, uint64_t size, const struct origin_entry *what)
{
	struct kp_decoding_facts facts =
		kp_archive_decoding_facts(what->origin->archive, what->entry);
	char name[KP_FD_NAME_SIZE], block[65536];
	struct kp_hasher *h;
	struct kp_hash hash;
	ssize_t n = 0;
	bool same;

	if (!facts.xxh3)
		return true;
	KP_AUTO_CLOSE int fd =
		open(kp_fd_name(file, name), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	h = kp_hasher_new();
	while (h && size && (n = read(fd, block, sizeof(block))) > 0) {
		kp_hasher_add(h, block, (size_t)n);
		size -= (uint64_t)n < size ? (uint64_t)n : size;
	}
	if (h)
		hash = kp_hasher_value(h);
	same = h && size == 0 && kp_hash_is(&hash, facts.xxh3);
	kp_hasher_free(h);
	return same;
}

/* Check the file at FD, opened with O_PATH, which is NODE, or NULL: not in the mount. */
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

/* Whether the file FD, opened with O_PATH, is in the mount that is looked at. */
static bool is_inside(const struct covered *c, int fd)
{
	const struct statx *root = &c->root;
	struct statx st;

	if (!look_at_mount(fd, &st))
		return false;
	if (st.stx_mask & root->stx_mask & STATX_MNT_ID)
		return st.stx_mnt_id == root->stx_mnt_id;
	return st.stx_dev_major == root->stx_dev_major &&
	       st.stx_dev_minor == root->stx_dev_minor;
}

/*
 * Check what is in the directory at DIR, opened with O_PATH, which is NODE, or NULL: not in
 * the mount.
 */
static bool check_dir(struct covered *c, int dir, const struct tree_node *node, int depth)
{
	int list_fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
	size_t length = strlen(c->path);
	const struct dirent *e;
	bool fine = true;

	if (!list) {
		kp_close_keeping_errno(list_fd);
		return true;
	}
	while (fine && (e = readdir(list))) {
		KP_AUTO_CLOSE int fd = -1;
		struct tree_node below;
		struct stat st;
		bool has;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		fd = openat(list_fd, e->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || !is_inside(c, fd) || fstat(fd, &st) < 0)
			continue; /* removed meanwhile, or another file system */
		snprintf(c->path + length, sizeof(c->path) - length, "%s%s",
			 length ? "/" : "", e->d_name);
		has = node && tree_lookup(c->edition->tree, node->index,
					  kp_span_str(e->d_name), &below);
		if (!S_ISDIR(st.st_mode))
			fine = check_file(c, fd, &st, has ? &below : NULL);
		else if (depth < DEPTH_MAX)
			fine = check_dir(c, fd, has && below.is_dir ? &below : NULL,
					 depth + 1);
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

	if (fstatfs(dir, &fs) < 0 || !look_at_mount(dir, &c.root))
		return true; /* the mount itself fails, if it has to */
	if (fs.f_type == FUSE_SUPER_MAGIC) {
		if (faccessat(dir, KP_CONTROL_NAME "/status", F_OK, 0) < 0)
			return true;
		log_about(LOG_ERR, path,
			  "a kpackfs is mounted here already: unmount it first "
			  "(fusermount3 -u, as root umount), or as root cover it with -o "
			  "nonempty");
		return false;
	}
	return check_dir(&c, dir, &root, 0);
}
