/* SPDX-License-Identifier: MIT */
#include "content_hash.h"
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include "operands.h"
#include "core/base/file.h"

bool content_hash_eq(const struct content_hash *a, const struct content_hash *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static kpack_error_t update_hash(const void *data, size_t size, void *arg,
				 struct kpackx_error *why)
{
	(void)why;
	XXH3_128bits_update(arg, data, size);
	return KPACK_SUCCESS;
}

static kpack_error_t read_all(int fd, uint64_t offset, uint64_t size, XXH3_state_t *state,
			      struct kpackx_error *why)
{
	uint8_t buf[65536];
	size_t n = sizeof(buf);

	for (uint64_t at = 0; at < size; at += n) {
		if (n > size - at)
			n = (size_t)(size - at);
		KP_TRY(kp_file_pread(fd, offset + at, buf, n, why));
		XXH3_128bits_update(state, buf, n);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t begin_hash(XXH3_state_t **state, struct kpackx_error *why)
{
	*state = XXH3_createState();
	if (!*state)
		return kp_fail_memory(why, 1, "a hash");
	XXH3_128bits_reset(*state);
	return KPACK_SUCCESS;
}

static void end_hash(XXH3_state_t *state, struct content_hash *out)
{
	XXH128_canonical_t hash;

	XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(state));
	memcpy(out->bytes, hash.digest, sizeof(out->bytes));
	XXH3_freeState(state);
}

kpack_error_t content_hash_file(const char *disk, uint64_t offset, uint64_t size,
				struct content_hash *out, struct kpackx_error *why)
{
	XXH3_state_t *state;
	kpack_error_t err;
	struct stat st;
	int fd;

	KP_TRY(kp_file_open(disk, &fd, &st, why));
	err = begin_hash(&state, why);
	if (!err) {
		err = read_all(fd, offset, size, state, why);
		end_hash(state, out);
	}
	close(fd);
	return err;
}

kpack_error_t content_hash_entry(const struct kpack_archive *a, size_t entry,
				 struct content_hash *out, struct kpackx_error *why)
{
	XXH3_state_t *state;
	kpack_error_t err;
	struct kp_meta meta;

	kp_archive_meta(a, entry, &meta);
	if (meta.has_xxh3) {
		memcpy(out->bytes, meta.xxh3, sizeof(out->bytes));
		return KPACK_SUCCESS;
	}
	KP_TRY(begin_hash(&state, why));
	err = archive_decode(a, entry, update_hash, state, why);
	end_hash(state, out);
	return err;
}
