/* SPDX-License-Identifier: MIT */
/*
 * The order of an archive's bytes, which is also the order in which they are written, but for
 * the header:
 *
 *   0       zeros until the end: an archive that was never finished has no magic
 *   64      objects, through a buffer, as they are added; in frames, behind a count that is
 *           filled in at the end.  Of a shared archive only its blocks, at the end, since the
 *           dictionary is chosen from all of them and comes first
 *   ...     the table of contents (toc.c), which has the places of the objects
 *   0       the header: last, so that it never states a table that is not there
 *
 * The first write that fails is remembered, and every further call fails: the places that were
 * noted are not where the bytes are.
 */
#include "writer.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/scheme.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "internal.h"

/* --- writing through a buffer ------------------------------------------------------- */

/* Write the buffered bytes. */
static kpack_error_t flush(struct kp_writer *w, struct kpackx_error *why)
{
	if (w->buffered)
		KP_TRY(kp_outfile_pwrite(&w->file, w->buffered_at, w->buffer, w->buffered,
					 why));
	w->buffered_at += w->buffered;
	w->buffered = 0;
	return KPACK_SUCCESS;
}

static kpack_error_t append_source(struct kp_writer *w, const struct kp_source *s,
				   struct kpackx_error *why)
{
	size_t size = (size_t)s->size;

	if (s->size > KP_WRITER_BUFFER - w->buffered)
		KP_TRY(flush(w, why));
	if (s->size > KP_WRITER_BUFFER) {
		/* a file inside the kernel, if the file systems support that */
		KP_TRY(s->fd < 0 ? kp_outfile_pwrite(&w->file, w->end, s->mem, size, why)
				 : kp_outfile_copy(&w->file, w->end, s->fd, s->offset,
						   s->size, why));
		w->buffered_at += s->size;
	} else if (size) {
		if (s->fd < 0)
			memcpy(w->buffer + w->buffered, s->mem, size);
		else
			KP_TRY(kp_file_pread(s->fd, s->offset, w->buffer + w->buffered,
					     size, why));
		w->buffered += size;
	}
	w->end += s->size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_check(const struct kp_writer *w, struct kpackx_error *why)
{
	if (w->failed)
		return kp_fail(why, w->failed, "archive: an earlier write failed");
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_append_source(struct kp_writer *w, const struct kp_source *s,
				      struct kpackx_error *why)
{
	KP_TRY(kp_writer_check(w, why));
	w->failed = append_source(w, s, why);
	return w->failed;
}

kpack_error_t kp_writer_append(struct kp_writer *w, const void *data, size_t size,
			       struct kpackx_error *why)
{
	struct kp_source s = kp_source_memory(data, size);

	return kp_writer_append_source(w, &s, why);
}

/* --- opening ------------------------------------------------------------------------ */

/* Begin the archive in FILE, which the writer takes over. */
static kpack_error_t open_writer(const struct kp_outfile *file,
				 const struct kp_writer_options *options,
				 struct kp_writer **out, struct kpackx_error *why)
{
	static const uint8_t zeros[KP_WRITER_BLOB + 4];
	struct kp_writer *w = calloc(1, sizeof(*w));
	struct kp_outfile unused = *file;
	kpack_error_t err = KPACK_SUCCESS;

	if (!w) {
		kp_outfile_close(&unused);
		return kp_fail_memory(why, sizeof(*w), "an archive");
	}
	w->file = *file;
	w->scheme = options->scheme;
	w->level = options->level;
	w->jobs = options->jobs;
	w->effort = options->effort;
	w->more = options->more;
	w->n_more = options->n_more;
	w->group = strdup(options->group);
	w->family = options->family ? strdup(options->family) : NULL;
	w->buffer = malloc(KP_WRITER_BUFFER);
	if (!w->group || (options->family && !w->family) || !w->buffer)
		err = kp_fail_memory(why, KP_WRITER_BUFFER, "an archive");
	w->file.keep = options->keep;
	w->file.lazy = options->lazy || options->unnamed;
	if (options->unnamed)
		kp_outfile_unname(&w->file);
	if (!err && w->scheme == KP_COMPRESSION_ZSTD_SHARED)
		err = kp_share_new(w->file.dir_fd, &w->share, why);
	if (!err) /* the header, and the count before the frames */
		err = kp_writer_append(w, zeros,
				       w->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL
					       ? KP_WRITER_BLOB + 4
					       : KP_WRITER_BLOB,
				       why);
	if (err)
		kp_writer_close(w);
	else
		*out = w;
	return err;
}

kpack_error_t kp_writer_open(const char *dir, const char *name,
			     const struct kp_writer_options *options,
			     struct kp_writer **out, struct kpackx_error *why)
{
	struct kp_outfile file;

	KP_TRY(kp_outfile_open(&file, dir, name, 0666, why));
	return open_writer(&file, options, out, why);
}

kpack_error_t kp_writer_open_at(int dir_fd, const char *name,
				const struct kp_writer_options *options,
				struct kp_writer **out, struct kpackx_error *why)
{
	struct kp_outfile file;

	KP_TRY(kp_outfile_open_at(&file, dir_fd, name, 0666, why));
	return open_writer(&file, options, out, why);
}

void kp_writer_close(struct kp_writer *w)
{
	if (!w)
		return;
	kp_outfile_close(&w->file);
	for (size_t i = 0; i < w->entries.n; i++)
		free(w->entries.items[i].key);
	for (size_t i = 0; i < w->entries.strings.n; i++)
		free((void *)w->entries.strings.texts[i].data);
	kp_string_table_fini(&w->entries.strings);
	free(w->entries.items);
	free(w->entries.slots.slots);
	kp_share_free(w->share);
	free(w->copied.blocks);
	free(w->offsets);
	free(w->sizes);
	free(w->pieces);
	kp_hasher_free(w->hasher);
	free(w->buffer);
	free(w->group);
	free(w->family);
	free(w);
}

/* --- objects ------------------------------------------------------------------------ */

uint64_t kp_writer_blob_size(const struct kp_writer *w)
{
	if (w->blob_end)
		return w->blob_end - KP_WRITER_BLOB;
	return w->share ? w->share->unique.size : w->end - KP_WRITER_BLOB;
}

uint32_t kp_writer_frame_count(const struct kp_writer *w)
{
	return w->n_frames;
}

size_t kp_writer_entry_count(const struct kp_writer *w)
{
	return w->entries.n;
}

kpack_error_t kp_writer_place(struct kp_writer *w, uint64_t size,
			      struct kpackx_error *why)
{
	bool frames = w->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL;
	uint32_t most = frames     ? KP_FRAMES_MAX
			: w->share ? KP_SHARED_OBJECTS_MAX
				   : UINT32_MAX;

	if (w->n_frames >= most)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: more than %u %s", most,
			       frames ? "frames" : "objects");
	if (frames &&
	    (size > UINT32_MAX || kp_writer_blob_size(w) + 4 + size > KP_ZSTD_BLOB_MAX))
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"archive: blob of %llu bytes would pass 4 GiB with %llu more",
			(unsigned long long)kp_writer_blob_size(w),
			(unsigned long long)size);
	KP_TRY(kp_room(&w->offsets, w->n_frames, &w->offsets_cap, "frame offsets", why));
	KP_TRY(kp_room(&w->sizes, w->n_frames, &w->sizes_cap, "frame offsets", why));
	w->offsets[w->n_frames] = w->end + (frames ? 4 : 0);
	w->sizes[w->n_frames] = size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_hash(struct kp_writer *w, const struct kp_source *stored,
			     struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *room = NULL;

	if (stored->fd >= 0 && !(room = malloc(KP_PIECE)))
		return kp_fail_memory(why, KP_PIECE, "hashing");
	for (uint64_t at = 0; at < stored->size; at += KP_PIECE) {
		uint64_t left = stored->size - at;
		size_t n = left < KP_PIECE ? (size_t)left : KP_PIECE;

		KP_TRY(kp_room(&w->pieces, w->n_pieces, &w->pieces_cap, "hashes", why));
		if (room)
			KP_TRY(kp_source_read(stored, at, room, n, why));
		w->pieces[w->n_pieces++] =
			kp_hash64(room ? room : stored->mem + at, n, 0);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_add_source(struct kp_writer *w, const struct kp_source *stored,
				   uint32_t *ordinal, struct kpackx_error *why)
{
	struct kp_span data = {stored->mem, (size_t)stored->size};
	uint8_t word[4];

	KP_TRY(kp_writer_place(w, stored->size, why));
	if (w->share) {
		if (data.size > KP_OBJECT_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "archive: an object of %zu bytes, limit %llu",
				       data.size, (unsigned long long)KP_OBJECT_MAX);
		KP_TRY(kp_writer_check(w, why));
		w->failed = kp_share_add(w->share, data, why);
	} else {
		if (w->scheme != KPACK_COMPRESSION_NOOP) {
			kp_put_le32(word, (uint32_t)stored->size);
			KP_TRY(kp_writer_append(w, word, sizeof(word), why));
		}
		KP_TRY(kp_writer_append_source(w, stored, why));
		w->failed = kp_writer_hash(w, stored, why);
	}
	if (!w->failed)
		*ordinal = w->n_frames++;
	return w->failed;
}

kpack_error_t kp_writer_add_stored(struct kp_writer *w, struct kp_span stored,
				   uint32_t *ordinal, struct kpackx_error *why)
{
	struct kp_source source = kp_source_memory(stored.data, stored.size);

	return kp_writer_add_source(w, &source, ordinal, why);
}

kpack_error_t kp_writer_read_stored(struct kp_writer *w, uint32_t ordinal, void *buf,
				    struct kpackx_error *why)
{
	if (w->share)
		return kp_share_read(w->share, ordinal, buf, why);
	KP_TRY(flush(w, why));
	return kp_file_pread(w->file.fd, w->offsets[ordinal], buf,
			     (size_t)w->sizes[ordinal], why);
}

kpack_error_t kp_writer_stored_source(struct kp_writer *w, uint32_t ordinal,
				      struct kp_source *out, struct kpackx_error *why)
{
	KP_TRY(flush(w, why));
	*out = kp_source_fd(w->file.fd, w->offsets[ordinal], w->sizes[ordinal]);
	return KPACK_SUCCESS;
}

/* --- the end ------------------------------------------------------------------------ */

/* Write all that follows the objects; BLOCKS is of a shared archive, or zeroed. */
static kpack_error_t write_end(struct kp_writer *w, struct kp_blocks *blocks,
			       struct kpackx_error *why)
{
	/* nanoseconds that finding repeated content takes for two bytes of objects */
	enum { SEARCH = 5 };
	uint8_t header[16] = "KPAK", word[4];
	uint64_t toc_offset, two = w->effort * UINT64_C(2), ns = 0;

	if (w->share) {
		if (w->effort)
			ns = 1 + (two > SEARCH ? two - SEARCH : 0) * (w->share->size / 2);
		KP_TRY(kp_share_flush(w->share, why));
		KP_TRY(kp_writer_pack_blocks(w, ns, blocks, why));
	}
	toc_offset = w->blob_end = w->end;
	KP_TRY(kp_writer_pack_toc(w, blocks, why));
	if (w->end - toc_offset > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: table of contents of %llu bytes, limit %llu",
			       (unsigned long long)(w->end - toc_offset),
			       (unsigned long long)KP_TOC_SIZE_MAX);
	KP_TRY(flush(w, why));
	kp_put_le32(header + 4, w->share ? 2 : 1);
	kp_put_le64(header + 8, toc_offset);
	KP_TRY(kp_outfile_pwrite(&w->file, 0, header, sizeof(header), why));
	if (w->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL) {
		kp_put_le32(word, w->n_frames);
		KP_TRY(kp_outfile_pwrite(&w->file, KP_WRITER_BLOB, word, sizeof(word),
					 why));
	}
	return w->file.lazy ? KPACK_SUCCESS : kp_outfile_sync(&w->file, why);
}

kpack_error_t kp_writer_finish(struct kp_writer *w, struct kpackx_error *why)
{
	struct kp_blocks blocks = {0};

	if (w->finished)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: finished already");
	KP_TRY(kp_writer_check(w, why));
	kp_sort(w->entries.items, w->entries.n, KP_BY_TEXT(struct kp_listed, key),
		KP_BY_TEXT(struct kp_listed, arch));
	w->failed = write_end(w, &blocks, why);
	free(blocks.sizes);
	free(blocks.hashes);
	w->finished = !w->failed;
	free(w->buffer); /* many finished archives may wait for publishing */
	w->buffer = NULL;
	return w->failed;
}

kpack_error_t kp_writer_reopen(const struct kp_writer *w, const char *name,
			       struct kpack_archive **out, struct kpackx_error *why)
{
	int fd = fcntl(w->file.fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return kp_fail_errno(why, errno, "%s: cannot open", name);
	return kp_archive_open_fd(fd, name, out, why);
}

kpack_error_t kp_writer_publish(struct kp_writer *w, struct kpackx_error *why)
{
	if (!w->finished)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: not finished");
	return kp_outfile_publish(&w->file, why);
}

struct kp_writer_blocks kp_writer_blocks(const struct kp_writer *w)
{
	uint64_t size = w->share ? w->share->unique.size : 0;

	return (struct kp_writer_blocks){
		.copied = w->copied.n,
		.stored = w->copied.stored,
		.encoded = size / KP_SHARE_BLOCK + (size % KP_SHARE_BLOCK != 0) -
			   w->copied.n,
	};
}
