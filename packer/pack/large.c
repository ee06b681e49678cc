/* SPDX-License-Identifier: MIT */
#include "large.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "core/base/file.h"
#include "packer/cli/xalloc.h"

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
	struct kp_outfile file = kp_spill_outfile(fd);

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

/* A mapped part of a file. */
struct mapping {
	uint8_t *start; /* of a page */
	size_t size;
	uint8_t *bytes; /* of the part */
};

static kpack_error_t map_part(int fd, int protection, uint64_t offset, size_t size,
			      struct mapping *out, struct kpackx_error *why)
{
	size_t before = (size_t)(offset & (uint64_t)(sysconf(_SC_PAGESIZE) - 1));

	out->start = mmap(NULL, before + size, protection, MAP_SHARED, fd,
			  (off_t)(offset - before));
	if (out->start == MAP_FAILED)
		return kp_fail_errno(why, errno, "cannot map a temporary file");
	out->size = before + size;
	out->bytes = out->start + before;
	return KPACK_SUCCESS;
}

/*
 * Gives the pages of two mappings back while another thread uses them: they stay in the
 * files, and come back where they are used again.
 */
struct page_return {
	struct mapping raw, frame;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool end;
};

/* How long pages stay: in this time a compressor reads some MiB. */
enum { PAUSE_NS = 10 * 1000 * 1000 };

static void *return_pages(void *arg)
{
	struct page_return *r = arg;
	struct timespec until;

	pthread_mutex_lock(&r->lock);
	while (!r->end) {
		madvise(r->raw.start, r->raw.size, MADV_DONTNEED);
		madvise(r->frame.start, r->frame.size, MADV_DONTNEED);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PAUSE_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&r->ended, &r->lock, &until);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* zstd makes the frame of data that is in memory in one call only. */
static kpack_error_t encode_mapped(struct page_return *r, struct kp_encoder *encoder,
				   size_t *used, struct kpackx_error *why)
{
	struct kp_span data = {r->raw.bytes,
			       r->raw.size - (size_t)(r->raw.bytes - r->raw.start)};
	pthread_t thread;
	bool started; /* without the thread, more memory is needed */
	kpack_error_t err;

	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->ended, NULL);
	started = pthread_create(&thread, NULL, return_pages, r) == 0;
	err = kp_encode(encoder, data, 0, r->frame.bytes, r->frame.size, used, why);
	pthread_mutex_lock(&r->lock);
	r->end = true;
	pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
	if (started)
		pthread_join(thread, NULL);
	pthread_cond_destroy(&r->ended);
	pthread_mutex_destroy(&r->lock);
	return err;
}

static kpack_error_t encode_file(const struct kp_source *raw, int fd,
				 struct kp_encoder *encoder, size_t *used,
				 struct kpackx_error *why)
{
	size_t size = (size_t)raw->size, cap = kp_encode_bound(size, 0);
	struct page_return r = {0};
	int error = kp_spill_reserve(fd, cap);
	kpack_error_t err;

	if (error)
		return kp_fail_errno(why, error, "cannot make a temporary file");
	KP_TRY(map_part(raw->fd, PROT_READ, raw->offset, size, &r.raw, why));
	err = map_part(fd, PROT_READ | PROT_WRITE, 0, cap, &r.frame, why);
	if (!err) {
		err = encode_mapped(&r, encoder, used, why);
		munmap(r.frame.start, r.frame.size);
	}
	munmap(r.raw.start, r.raw.size);
	return err;
}

kpack_error_t large_encode(struct large *l, struct kp_encoder *encoder,
			   struct kpackx_error *why)
{
	size_t used = 0;

	KP_TRY(open_temporary(&l->frame_fd, why));
	KP_TRY(encode_file(&l->raw, l->frame_fd, encoder, &used, why));
	if (ftruncate(l->frame_fd, (off_t)used) != 0)
		return kp_fail_errno(why, errno, "cannot make a temporary file");
	l->frame = kp_source_fd(l->frame_fd, 0, used);
	return KPACK_SUCCESS;
}

void large_fini(struct large *l)
{
	large_end_raw(l);
	if (l->frame_fd >= 0)
		close(l->frame_fd);
	*l = (struct large){.raw_fd = -1, .frame_fd = -1};
}
