/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "core/base/file.h"
#include "core/base/lock.h"
#include "frames.h"
#include "shared_internal.h"
#include "block_pool.h"

typedef unsigned long long ull;

static kpack_error_t check_layout(const struct kp_shared_layout *l, uint64_t file_size,
				  struct kpackx_error *why)
{
	if (l->block_size < KP_SHARED_BLOCK_MIN || l->block_size > KP_SHARED_BLOCK_MAX ||
	    l->block_size & (l->block_size - 1))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"zstd_shared: block_size %llu is no power of 2 from %llu to "
			"%llu",
			(ull)l->block_size, (ull)KP_SHARED_BLOCK_MIN,
			(ull)KP_SHARED_BLOCK_MAX);
	if (l->dictionary_size > KP_SHARED_DICTIONARY_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: dictionary_size %llu, limit %llu",
			       (ull)l->dictionary_size, (ull)KP_SHARED_DICTIONARY_MAX);
	if (!kp_range_ok(file_size, l->offset, l->size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: %llu bytes at %llu in a file of %llu",
			       (ull)l->size, (ull)l->offset, (ull)file_size);
	if (l->objects.size > KP_SHARED_TABLE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: objects: %zu bytes, limit %llu",
			       l->objects.size, (ull)KP_SHARED_TABLE_MAX);
	return KPACK_SUCCESS;
}

static kpack_error_t check_count(const struct kp_shared_layout *l,
				 struct kpackx_error *why)
{
	uint64_t whole = l->unique_size / l->block_size;
	uint64_t want =
		whole + (l->unique_size % l->block_size != 0) + (l->dictionary_size != 0);

	/* a frame has more than 8 bytes, so their number has fewer than 32 bits */
	if (l->frames.size % 4 || l->frames.size / 4 != want ||
	    l->frames.size / 4 >= UINT32_MAX / 2)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: frames: %zu bytes for %llu frames",
			       l->frames.size, (ull)want);
	return KPACK_SUCCESS;
}

/* Whether a frame of SIZE bytes may have STORED bytes. */
static bool frame_ok(uint64_t stored, uint64_t size)
{
	return kp_zstd_plausible(stored, size) && stored <= size + size / 128 + 1024;
}

static kpack_error_t take_frames(struct kp_shared *s, const struct kp_shared_layout *l,
				 struct kpackx_error *why)
{
	uint64_t at = l->offset;

	KP_TRY(check_count(l, why));
	s->n_frames = (uint32_t)(l->frames.size / 4);
	s->offsets = malloc(((size_t)s->n_frames + 1) * sizeof(*s->offsets));
	if (!s->offsets)
		return kp_fail_memory(why, l->frames.size, "a table of frames");
	for (uint32_t i = 0; i < s->n_frames; i++) {
		uint32_t stored = kp_le32(l->frames.data + 4 * (size_t)i);

		if (!frame_ok(stored, kp_shared_frame_size(s, i)))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "zstd_shared: frame %u has %u bytes for %llu", i,
				       stored, (ull)kp_shared_frame_size(s, i));
		s->offsets[i] = at;
		at += stored;
	}
	s->offsets[s->n_frames] = at;
	if (at - l->offset != l->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: frames add up to %llu bytes of %llu",
			       (ull)(at - l->offset), (ull)l->size);
	if (!l->hashes.data)
		return KPACK_SUCCESS;
	if (l->hashes.size != 8 * (size_t)s->n_frames)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: %zu bytes of frame_hashes for %u frames",
			       l->hashes.size, s->n_frames);
	s->hashes = malloc(l->hashes.size + 1);
	if (!s->hashes)
		return kp_fail_memory(why, l->hashes.size, "a table of frames");
	for (uint32_t i = 0; i < s->n_frames; i++)
		s->hashes[i] = kp_le64(l->hashes.data + 8 * (size_t)i);
	return KPACK_SUCCESS;
}

kpack_error_t kp_shared_open(int fd, uint64_t file_size,
			     const struct kp_shared_layout *layout,
			     struct kp_shared **out, struct kpackx_error *why)
{
	struct kp_shared *s;
	kpack_error_t err;

	KP_TRY(kp_locks_check(why));
	KP_TRY(check_layout(layout, file_size, why));
	s = calloc(1, sizeof(*s));
	if (!s)
		return kp_fail_memory(why, sizeof(*s), "blocks");
	s->fd = fd;
	s->block_size = layout->block_size;
	s->unique_size = layout->unique_size;
	s->dictionary_size = layout->dictionary_size;
	err = take_frames(s, layout, why);
	if (!err)
		err = kp_shared_parse_objects(s, layout->objects, why);
	if (err)
		kp_shared_close(s);
	else
		*out = s;
	return err;
}

void kp_shared_close(struct kp_shared *s)
{
	if (!s)
		return;
	kp_pool_forget(s);
	free(s->offsets);
	free(s->hashes);
	free(s->objects);
	free(s->extents);
	free(s);
}

bool kp_shared_has_hashes(const struct kp_shared *s)
{
	return s->hashes != NULL;
}

uint32_t kp_shared_count(const struct kp_shared *s)
{
	return s->n_objects;
}

uint64_t kp_shared_object_size(const struct kp_shared *s, uint32_t object)
{
	return s->objects[object].size;
}

uint64_t kp_shared_object_stored(const struct kp_shared *s, uint32_t object)
{
	return s->objects[object].stored;
}

uint64_t kp_shared_block_size(const struct kp_shared *s)
{
	return s->block_size;
}

uint64_t kp_shared_unique_size(const struct kp_shared *s)
{
	return s->unique_size;
}

uint64_t kp_shared_dictionary_size(const struct kp_shared *s)
{
	return s->dictionary_size;
}

uint32_t kp_shared_first_block(const struct kp_shared *s)
{
	return s->dictionary_size ? 1 : 0;
}

struct kp_shared_frame kp_shared_frame(const struct kp_shared *s, uint32_t frame)
{
	return (struct kp_shared_frame){
		.offset = s->offsets[frame],
		.stored = s->offsets[frame + 1] - s->offsets[frame],
		.size = kp_shared_frame_size(s, frame),
	};
}

size_t kp_shared_extent_count(const struct kp_shared *s, uint32_t object)
{
	return s->objects[object + 1].first - s->objects[object].first;
}

void kp_shared_extent(const struct kp_shared *s, uint32_t object, size_t extent,
		      uint64_t *pos, uint64_t *size)
{
	const struct kp_shared_object *o = &s->objects[object];
	const struct kp_extent *e = &s->extents[o->first + extent];

	*pos = e->pos;
	*size = (o->first + extent + 1 < o[1].first ? e[1].at : o->size) - e->at;
}

uint32_t kp_shared_block_count(const struct kp_shared *s)
{
	return s->n_frames - kp_shared_first_block(s);
}

uint64_t kp_shared_memory(const struct kp_shared *s)
{
	return s->dictionary_size + 2 * s->block_size;
}
