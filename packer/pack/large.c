/* SPDX-License-Identifier: MIT */
/*
 * An object of many bytes is copied to a temporary file while it is hashed.  zstd makes the frame
 * of data that is in memory in one call only, so both files are mapped; meanwhile a thread gives
 * their pages back, again and again: they stay in the files, and come back where they are used.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "core/writer/encode.h"
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/file.h"
#include "packer/cli/xalloc.h"
#include "store.h"

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

kpack_error_t large_begin(const struct kp_source *source, bool private, struct large *out,
			  struct kp_hash *hash, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *buf = xmalloc(PIECE);
	struct kp_hasher *hasher;
	struct kp_outfile file;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n;

	*out = (struct large){.raw = *source, .raw_fd = -1, .frame_fd = -1};
	if (!private) {
		KP_TRY(open_temporary(&out->raw_fd, why));
		out->raw = kp_source_fd(out->raw_fd, 0, source->size);
		file = kp_spill_outfile(out->raw_fd);
	}
	hasher = kp_hasher_new();
	if (!hasher)
		xalloc_fail(0);
	for (uint64_t at = 0; at < source->size && !err; at += n) {
		n = source->size - at < PIECE ? (size_t)(source->size - at) : PIECE;
		err = kp_source_read(source, at, buf, n, why);
		if (!err)
			kp_hasher_add(hasher, buf, n);
		if (!err && !private)
			err = kp_outfile_pwrite(&file, at, buf, n, why);
	}
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

/* A mapped part of a file, which may begin anywhere; mappings begin at pages. */
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

/* Gives the pages of two mappings back while another thread uses them. */
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

kpack_error_t large_encode(struct large *l, struct kp_encoder *encoder,
			   struct kpackx_error *why)
{
	size_t size = (size_t)l->raw.size, cap = kp_encode_bound(size, 0), used = 0;
	struct page_return r = {.lock = PTHREAD_MUTEX_INITIALIZER,
				.ended = PTHREAD_COND_INITIALIZER};
	pthread_t thread;
	bool started; /* without the thread, more memory is needed */
	kpack_error_t err;
	int error;

	KP_TRY(open_temporary(&l->frame_fd, why));
	/* a disk that becomes full under a mapping would end the process by SIGBUS */
	error = kp_spill_reserve(l->frame_fd, cap);
	if (error)
		return kp_fail_errno(why, error, "cannot make a temporary file");
	KP_TRY(map_part(l->raw.fd, PROT_READ, l->raw.offset, size, &r.raw, why));
	err = map_part(l->frame_fd, PROT_READ | PROT_WRITE, 0, cap, &r.frame, why);
	if (!err) {
		started = pthread_create(&thread, NULL, return_pages, &r) == 0;
		err = kp_encode(encoder, (struct kp_span){r.raw.bytes, size}, 0,
				r.frame.bytes, r.frame.size, &used, why);
		pthread_mutex_lock(&r.lock);
		r.end = true;
		pthread_cond_signal(&r.ended);
		pthread_mutex_unlock(&r.lock);
		if (started)
			pthread_join(thread, NULL);
		munmap(r.frame.start, r.frame.size);
	}
	munmap(r.raw.start, r.raw.size);
	if (!err && ftruncate(l->frame_fd, (off_t)used) != 0)
		err = kp_fail_errno(why, errno, "cannot make a temporary file");
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
