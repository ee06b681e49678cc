/* SPDX-License-Identifier: MIT */
#include "content_hash.h"
#include <string.h>
#include <unistd.h>
#include "operands.h"
#include "core/base/file.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

static kpack_error_t update_hash(const void *data, size_t size, void *arg,
				 struct kpackx_error *why)
{
	(void)why;
	kp_hasher_add(arg, data, size);
	return KPACK_SUCCESS;
}

static kpack_error_t read_all(int fd, uint64_t offset, uint64_t size,
			      struct kp_hasher *hash, struct kpackx_error *why)
{
	uint8_t buf[65536];
	size_t n = sizeof(buf);

	for (uint64_t at = 0; at < size; at += n) {
		if (n > size - at)
			n = (size_t)(size - at);
		KP_TRY(kp_file_pread(fd, offset + at, buf, n, why));
		kp_hasher_add(hash, buf, n);
	}
	return KPACK_SUCCESS;
}

static struct kp_hasher *begin_hash(void)
{
	struct kp_hasher *hash = kp_hasher_new();

	if (!hash)
		xalloc_fail(0);
	return hash;
}

static void end_hash(struct kp_hasher *hash, struct kp_hash *out)
{
	*out = kp_hasher_value(hash);
	kp_hasher_free(hash);
}

kpack_error_t content_hash_file(const char *disk, uint64_t offset, uint64_t size,
				struct kp_hash *out, struct kpackx_error *why)
{
	struct kp_hasher *hash;
	kpack_error_t err;
	struct stat st;
	int fd;

	KP_TRY(below_file_open(disk, &fd, &st, why));
	hash = begin_hash();
	err = read_all(fd, offset, size, hash, why);
	end_hash(hash, out);
	close(fd);
	return err;
}

kpack_error_t content_hash_entry(const struct kpack_archive *a, size_t entry,
				 struct kp_hash *out, struct kpackx_error *why)
{
	struct kp_hasher *hash;
	kpack_error_t err;
	struct kp_meta meta;

	kp_archive_meta(a, entry, &meta);
	if (meta.has_xxh3) {
		memcpy(out->bytes, meta.xxh3, sizeof(out->bytes));
		return KPACK_SUCCESS;
	}
	hash = begin_hash();
	err = archive_decode(a, entry, update_hash, hash, why);
	end_hash(hash, out);
	return err;
}

static kpack_error_t hash_named(const struct kpack_archive *a, size_t entry,
				struct kp_hash *out, struct kpackx_error *why)
{
	kpack_error_t err = content_hash_entry(a, entry, out, why);

	return err ? kp_fail_prefix(why, err, "%s", kp_archive_path(a)) : KPACK_SUCCESS;
}

kpack_error_t content_hash_same(const struct kpack_archive *a, size_t i,
				const struct kpack_archive *b, size_t k, bool *same,
				struct kpackx_error *why)
{
	struct kp_entry_info x, y;
	struct kp_hash xs, ys;

	kp_archive_entry(a, i, &x);
	kp_archive_entry(b, k, &y);
	*same = x.size == y.size;
	if (!*same)
		return KPACK_SUCCESS;
	KP_TRY(hash_named(a, i, &xs, why));
	KP_TRY(hash_named(b, k, &ys, why));
	*same = kp_hash_is(&xs, ys.bytes);
	return KPACK_SUCCESS;
}
