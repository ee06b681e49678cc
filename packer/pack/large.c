/* SPDX-License-Identifier: MIT */
#include "large.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/base/spill.h"
#include "packer/base/xalloc.h"

/* Smaller objects are packed faster in memory, of which they need little. */
static const uint64_t LARGE_MIN = 32 << 20;

enum { PIECE = 256 << 10 };

bool large_is(uint64_t size)
{
	return size >= LARGE_MIN && kp_spills(size);
}

static kpack_error_t open_temporary(int *fd, struct kpackx_error *why)
{
	*fd = kp_spill_open();
	if (*fd < 0)
		return kp_fail_errno(why, errno, "cannot make a temporary file");
	return KPACK_SUCCESS;
}

static kpack_error_t write_temporary(int fd, uint64_t at, struct kp_span piece,
				     struct kpackx_error *why)
{
	struct kp_outfile file = {.fd = fd, .dir_fd = -1, .shown = "temporary file"};

	return kp_outfile_pwrite(&file, at, piece.data, piece.size, why);
}

/* --- the object's bytes -------------------------------------------------------------- */

/* Add the bytes of SOURCE to HASH, and write them to FD unless it is -1. */
static kpack_error_t read_object(const struct kp_source *source, int fd,
				 struct kp_hasher *hash, struct kpackx_error *why)
{
	uint8_t *buf = xmalloc(PIECE);
	kpack_error_t err = KPACK_SUCCESS;
	size_t n;

	for (uint64_t at = 0; at < source->size && !err; at += n) {
		n = source->size - at < PIECE ? (size_t)(source->size - at) : PIECE;
		err = kp_source_read(source, at, buf, n, why);
		if (!err)
			kp_hasher_add(hash, buf, n);
		if (!err && fd >= 0)
			err = write_temporary(fd, at, (struct kp_span){buf, n}, why);
	}
	free(buf);
	return err;
}

kpack_error_t large_begin(const struct kp_source *source, bool private, struct large *out,
			  struct kp_hash *hash, struct kpackx_error *why)
{
	struct kp_hasher *hasher;
	kpack_error_t err;

	*out = (struct large){.raw = *source, .raw_fd = -1, .frame_fd = -1};
	if (!private) {
		KP_TRY(open_temporary(&out->raw_fd, why));
		out->raw = kp_source_fd(out->raw_fd, 0, source->size);
	}
	hasher = kp_hasher_new();
	if (!hasher)
		xalloc_fail(0);
	err = read_object(source, out->raw_fd, hasher, why);
	*hash = kp_hasher_value(hasher);
	kp_hasher_free(hasher);
	return err;
}

void large_end_raw(struct large *l)
{
	if (l->raw_fd >= 0)
		close(l->raw_fd);
	l->raw_fd = -1;
	l->raw = (struct kp_source){.fd = -1};
}

/* --- the frame ----------------------------------------------------------------------- */

/* The object's mapped bytes, and the file for the frame. */
struct frame_writer {
	uint8_t *map;
	size_t before; /* bytes of the map before the object: a file is mapped from a page */
	size_t page;
	int fd;
};

/* Write PIECE, and unmap what was read: what is needed again is mapped again. */
static kpack_error_t take_piece(void *arg, uint64_t at, struct kp_span piece,
				uint64_t done, struct kpackx_error *why)
{
	const struct frame_writer *w = arg;
	size_t read = (w->before + (size_t)done) & ~(w->page - 1);

	if (read)
		madvise(w->map, read, MADV_DONTNEED);
	return write_temporary(w->fd, at, piece, why);
}

kpack_error_t large_encode(struct large *l, struct kp_encoder *encoder,
			   struct kpackx_error *why)
{
	struct frame_writer w = {.page = (size_t)sysconf(_SC_PAGESIZE)};
	size_t size = (size_t)l->raw.size;
	uint64_t used = 0;
	kpack_error_t err;

	KP_TRY(open_temporary(&l->frame_fd, why));
	w.fd = l->frame_fd;
	w.before = (size_t)(l->raw.offset & (w.page - 1));
	w.map = mmap(NULL, w.before + size, PROT_READ, MAP_SHARED, l->raw.fd,
		     (off_t)(l->raw.offset - w.before));
	if (w.map == MAP_FAILED)
		return kp_fail_errno(why, errno, "cannot map a temporary file");
	err = kp_encode_pieces(encoder, (struct kp_span){w.map + w.before, size},
			       take_piece, &w, &used, why);
	munmap(w.map, w.before + size);
	l->frame = kp_source_fd(l->frame_fd, 0, used);
	return err;
}

void large_fini(struct large *l)
{
	large_end_raw(l);
	if (l->frame_fd >= 0)
		close(l->frame_fd);
	*l = (struct large){.raw_fd = -1, .frame_fd = -1};
}
