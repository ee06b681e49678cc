/* SPDX-License-Identifier: MIT */
/*
 * A whole archive: describe every entry, read it in every way, show it in a view, and
 * make every public call.
 */
#include "core/archive/entry.h"
#include "core/rocm_kpack/kpackx.h"
#include "core/archive/frames.h"
#include "core/view/view.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#define EVERY_CALL_CHECK(condition) assert(condition)
#include "tests/fuzz/table_hash.h"
#include "every_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGE = 1 << 20 };

/* Parts are as the whole, unless only a part, or only the whole, is damaged. */
static void use_parts(const struct kpack_archive *a, size_t entry, const uint8_t *want)
{
	struct kp_entry_info info;
	struct kp_reader *r;
	uint64_t unit;
	uint8_t *buf;

	kp_archive_entry(a, entry, &info);
	if (kp_reader_open(a, entry, KP_READ_PARTS, &r, NULL) != KPACK_SUCCESS)
		return;
	buf = malloc((size_t)info.size + 1);
	assert(buf);
	unit = kp_reader_unit(r);
	for (uint64_t at = 0; at < info.size; at += unit) {
		uint64_t n = info.size - at < unit ? info.size - at : unit;

		if (kp_reader_at(r, at, buf, n, NULL))
			break;
		assert(!want || memcmp(buf, want + at, (size_t)n) == 0);
	}
	kp_reader_close(r);
	free(buf);
}

static bool run_stream(struct kp_reader *s, uint64_t size, uint8_t *buf)
{
	uint64_t ready = 0, before;
	kpack_error_t err;

	do {
		before = ready;
		err = kp_reader_next(s, buf, 1 + size / 3, &ready, NULL);
		assert(ready >= before && ready <= size);
	} while (!err && ready < size);
	return !err;
}

static bool use_stream(const struct kpack_archive *a, size_t entry, uint8_t *buf)
{
	struct kp_entry_info info;
	struct kp_reader *s;
	bool decoded;

	if (kp_reader_open(a, entry, KP_READ_STEPS, &s, NULL))
		return false;
	kp_archive_entry(a, entry, &info);
	decoded = run_stream(s, info.size, buf);
	/* A decoder that is used again finds the same. */
	kp_reader_leave(s);
	if (!kp_reader_reopen(s, a, entry, KP_READ_STEPS, NULL))
		assert(run_stream(s, info.size, buf) == decoded);
	kp_reader_close(s);
	return decoded;
}

/* Whether zstd's streaming decoder decodes the frames to SIZE bytes. */
static bool stream_decodes(const uint8_t *frames, size_t frames_size, uint8_t *buf,
			   size_t size)
{
	ZSTD_DStream *zstd = ZSTD_createDStream();
	ZSTD_inBuffer in = {frames, frames_size, 0};
	ZSTD_outBuffer out = {buf, size, 0};
	size_t left = 0;

	assert(zstd);
	ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, 31);
	while (in.pos < in.size && !ZSTD_isError(left))
		left = ZSTD_decompressStream(zstd, &out, &in);
	ZSTD_freeDStream(zstd);
	return left == 0 && out.pos == size;
}

/*
 * Check that ZSTD_decompress on all frames gives the bytes that stepwise reading gives.
 * ZSTD_decompress refuses empty compressed blocks, which the streaming decoder accepts.
 */
static void use_frames(const struct kpack_archive *a, size_t entry, const uint8_t *want)
{
	struct kp_entry_info info;
	struct kp_source stored;
	uint8_t *frames, *buf;

	kp_archive_entry(a, entry, &info);
	if (strcmp(kp_archive_scheme(a), "none") == 0 ||
	    kp_archive_source(a, info.ordinal, &stored, NULL))
		return;
	frames = malloc((size_t)stored.size + 1);
	buf = malloc((size_t)info.size + 1);
	assert(frames && buf);
	if (!kp_source_read(&stored, 0, frames, (size_t)stored.size, NULL) &&
	    !kp_zstd_decode((struct kp_span){frames, (size_t)stored.size}, buf,
			    (size_t)info.size, NULL))
		assert(!want || memcmp(buf, want, (size_t)info.size) == 0);
	else if (want)
		assert(stream_decodes(frames, (size_t)stored.size, buf,
				      (size_t)info.size));
	free(frames);
	free(buf);
}

static void use_entry(const struct kpack_archive *a, size_t entry)
{
	struct kp_entry_info info;
	uint8_t *data, *streamed;
	struct kp_meta meta;
	bool read;
	size_t found;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	(void)kp_archive_meta_raw(a, entry);
	assert(kp_archive_find(a, info.key, info.arch, &found) && found == entry);
	if (info.size >= LARGE)
		return;
	data = malloc((size_t)info.size + 1);
	streamed = malloc((size_t)info.size + 1);
	assert(data && streamed);
	read = kp_entry_read(a, entry, data, NULL) == KPACK_SUCCESS;
	assert(use_stream(a, entry, streamed) == read);
	assert(!read || memcmp(data, streamed, (size_t)info.size) == 0);
	use_frames(a, entry, read ? data : NULL);
	use_parts(a, entry, read ? data : NULL);
	free(data);
	free(streamed);
}

static void use_bundle(const struct kp_view *v, uint32_t file)
{
	struct kp_view_bundle b;
	uint64_t end;

	if (!kp_view_bundle(v, file, &b))
		return;
	assert(b.count && b.size <= INT64_MAX);
	assert(kp_le64(b.header.data + 24) == b.count + 1);
	end = b.header.size;
	for (uint32_t i = 0; i < b.count; i++) {
		struct kp_entry_info info;
		size_t entry;
		struct kpack_archive *a = kp_view_entry(v, b.parts[i].file, &entry);

		assert(b.parts[i].offset >= end && b.parts[i].offset % 4096 == 0);
		kp_archive_entry(a, entry, &info);
		assert(info.size && info.size <= b.size - b.parts[i].offset);
		end = b.parts[i].offset + info.size;
	}
	assert(end == b.size);
}

/*
 * Show the archive under two names: all paths of the second clash, with the same content.
 */
static void use_view(struct kpack_archive *a, bool bundles)
{
	const struct kp_view_options options = {.bundles = bundles};
	struct kpack_archive *twice[] = {a, a};
	struct kp_view *v;
	size_t kept, entry;

	assert(kp_view_new(twice, 2, &options, &v, NULL) == KPACK_SUCCESS);
	for (uint32_t d = 0; d < kp_view_dir_count(v); d++) {
		const struct kp_view_dir *dir = kp_view_dir(v, d);

		assert(d == 0 || dir->parent < d);
		for (uint32_t i = 0; i < dir->count; i++) {
			struct kp_view_name n = kp_view_name(v, dir->first + i);
			uint32_t found;

			assert(n.text.size && n.text.size <= 255 &&
			       !memchr(n.text.data, '/', n.text.size) &&
			       !memchr(n.text.data, 0, n.text.size));
			assert(!kp_span_is(n.text, ".") && !kp_span_is(n.text, ".."));
			assert(kp_view_lookup(v, d, n.text, &found) &&
			       found == dir->first + i);
			if (n.kind == KP_VIEW_DIR)
				continue;
			assert(kp_view_entry(v, n.index, &entry) == a);
			use_bundle(v, n.index);
		}
	}
	(void)kp_view_conflicts(v, &kept, NULL);
	kp_view_free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;
	uint8_t *copy = malloc(size + 1);
	char path[32];

	assert(copy);
	if (size)
		memcpy(copy, data, size);
	if (size >= 16 && kp_le64(copy + 8) < size)
		mend_table_hash(copy + kp_le64(copy + 8),
				size - (size_t)kp_le64(copy + 8));
	assert(fd >= 0 && write(fd, copy, size) == (ssize_t)size);
	free(copy);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kpackx_open(path, &a, &why) != KPACK_SUCCESS) {
		assert(!a && why.code != KPACK_SUCCESS && why.text[0]);
		close(fd);
		return 0;
	}
	for (size_t i = 0; i < kp_archive_entry_count(a); i++)
		use_entry(a, i);
	every_call(a);
	use_view(a, false);
	use_view(a, true);
	kp_archive_close(a);
	close(fd);
	return 0;
}
