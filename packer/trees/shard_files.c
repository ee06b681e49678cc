/* SPDX-License-Identifier: MIT */
#include "shard_files.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/attributes.h"
#include "packer/files/below.h"
#include "core/base/file.h"

/* Bytes of a file that are read at a time. */
#define PIECE (1 << 20)

static char *join_path(const char *dir, const char *path)
{
	return xasprintf(*path ? "%s/%s" : "%s", dir, path);
}

/* --- looking ------------------------------------------------------------------------- */

static kpack_error_t add_file(int fd, uint64_t size, struct kp_hasher *hash,
			      struct kpackx_error *why)
{
	uint8_t *piece = xmalloc(PIECE);
	kpack_error_t err = KPACK_SUCCESS;

	for (uint64_t at = 0; at < size && !err;) {
		size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;

		err = kp_file_pread(fd, at, piece, n, why);
		if (!err)
			kp_hasher_add(hash, piece, n);
		at += n;
	}
	free(piece);
	return err;
}

static struct kp_hasher *begin_hash(void)
{
	struct kp_hasher *hash = kp_hasher_new();

	if (!hash)
		xalloc_fail(0);
	return hash;
}

/* Frees HASH. */
static void take_hash(struct kp_hasher *hash, uint8_t out[16])
{
	struct kp_hash value = kp_hasher_value(hash);

	memcpy(out, value.bytes, sizeof(value.bytes));
	kp_hasher_free(hash);
}

/* SEEN: what it was a moment ago. */
static kpack_error_t hash_file(const char *path, const struct stat *seen, uint8_t out[16],
			       struct kpackx_error *why)
{
	struct kp_hasher *hash;
	const struct file_identity was = file_identity_of(seen);
	kpack_error_t err;
	struct stat st;
	int fd;

	KP_TRY(below_file_open_nofollow(path, &fd, &st, why));
	if (!file_identity_is(&was, &st)) {
		close(fd);
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	}
	hash = begin_hash();
	err = add_file(fd, was.size, hash, why);
	take_hash(hash, out);
	close(fd);
	return err;
}

static kpack_error_t hash_target(const char *path, uint8_t out[16],
				 struct kpackx_error *why)
{
	char target[PATH_MAX];
	ssize_t size = below_readlink(path, target, sizeof(target));
	struct kp_hash hash;

	if (size < 0)
		return below_fail(why, "cannot read the link");
	hash = kp_hash_of(target, (size_t)size);
	memcpy(out, hash.bytes, sizeof(hash.bytes));
	return KPACK_SUCCESS;
}

static kpack_error_t hash_attributes(const char *path, uint8_t out[16],
				     struct kpackx_error *why)
{
	struct kp_hasher *hash = begin_hash();
	kpack_error_t err = attributes_hash(path, hash, why);

	take_hash(hash, out);
	return err;
}

/* Take from ST what counts for an item of its kind. */
static void take_stat(const struct stat *st, struct shard_item *item)
{
	enum shard_kind kind = item->kind;

	if (kind == SHARD_LINK)
		return;
	if (kind == SHARD_FILE || kind == SHARD_OWN || kind == SHARD_SYMLINK)
		item->size = (uint64_t)st->st_size;
	if (kind == SHARD_SPECIAL)
		item->size = st->st_rdev;
	if (kind == SHARD_OWN)
		return;
	item->mode = st->st_mode;
	item->seconds = (uint64_t)st->st_mtim.tv_sec;
	item->nanoseconds = (uint64_t)st->st_mtim.tv_nsec;
}

/* Take what counts of the item's attributes and content; ST: its stat. */
static kpack_error_t look_inside(const char *path, const struct stat *st,
				 struct shard_item *item, struct kpackx_error *why)
{
	if (item->kind == SHARD_FILE || item->kind == SHARD_DIRECTORY)
		KP_TRY(hash_attributes(path, item->attributes, why));
	if (item->kind == SHARD_FILE || item->kind == SHARD_OWN)
		return hash_file(path, st, item->hash, why);
	return item->kind == SHARD_SYMLINK ? hash_target(path, item->hash, why)
					   : KPACK_SUCCESS;
}

static kpack_error_t look_at_file(const char *path, struct shard_item *item,
				  struct kpackx_error *why)
{
	struct stat st;

	if (below_lstat(path, &st) < 0)
		return below_fail(why, "cannot stat");
	take_stat(&st, item);
	return look_inside(path, &st, item, why);
}

kpack_error_t shard_files_look(const char *dir, const char *path, struct shard_item *item,
			       struct kpackx_error *why)
{
	char *full = join_path(dir, path);
	kpack_error_t err = look_at_file(full, item, why);

	if (err)
		kp_fail_prefix(why, err, "%s", full);
	free(full);
	return err;
}

/* --- checking ------------------------------------------------------------------------ */

static bool is_type(const struct shard_item *item, const struct stat *st)
{
	switch (item->kind) {
	case SHARD_FILE:
	case SHARD_LINK:
	case SHARD_OWN:
		return S_ISREG(st->st_mode) || item->kind == SHARD_LINK;
	case SHARD_SYMLINK:
		return S_ISLNK(st->st_mode);
	case SHARD_DIRECTORY:
		return S_ISDIR(st->st_mode);
	default:
		return (st->st_mode & S_IFMT) == (item->mode & S_IFMT);
	}
}

/*
 * Returns what differs, or NULL.  A directory's mode and times may differ, because other
 * programs may change it; the join sets what the record says.
 */
static const char *compare_stats(const struct shard_item *item,
				 const struct shard_item *now)
{
	if (now->size != item->size)
		return "its size differs";
	if (item->kind == SHARD_DIRECTORY)
		return NULL;
	if (now->mode != item->mode)
		return "its mode differs, as when it was copied without";
	if (now->seconds != item->seconds || now->nanoseconds != item->nanoseconds)
		return "its time of modification differs, as when it was copied without";
	return NULL;
}

static kpack_error_t check_file(const char *path, struct shard_item *item,
				struct kpackx_error *why)
{
	struct shard_item now = {.kind = item->kind};
	const char *differs;
	struct stat st;

	if (below_lstat(path, &st) < 0)
		return below_fail(why, "cannot stat");
	item->seen = file_identity_of(&st);
	if (!is_type(item, &st))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "is not what the shard wrote: its type differs");
	take_stat(&st, &now);
	differs = compare_stats(item, &now);
	if (!differs) {
		KP_TRY(look_inside(path, &st, &now, why));
		if (memcmp(now.hash, item->hash, sizeof(now.hash)) != 0)
			differs = "its content differs";
		else if (memcmp(now.attributes, item->attributes,
				sizeof(now.attributes)) != 0)
			differs = "its ACL or extended attributes differ, as when it was "
				  "copied without";
	}
	return differs ? kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				 "is not what the shard wrote: %s", differs)
		       : KPACK_SUCCESS;
}

kpack_error_t shard_files_check(const char *dir, struct shard_item *item,
				struct kpackx_error *why)
{
	kpack_error_t err;
	char *full;

	if (item->kind == SHARD_ABSENT)
		return KPACK_SUCCESS;
	full = join_path(dir, item->path);
	err = check_file(full, item, why);
	if (err)
		kp_fail_prefix(why, err, "%s", full);
	free(full);
	return err;
}
