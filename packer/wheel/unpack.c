/* SPDX-License-Identifier: MIT */
#include "unpack.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "record_check.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

struct unpacking {
	const struct wheel_in *w;
	const struct record *record;
	const struct wheel_unpack *how;
	const struct wheel_member *members;
	size_t count;
	uint32_t *order;      /* members, largest first, so that threads end together */
	pthread_mutex_t lock; /* of progress */
};

/* The state of one thread. */
struct hands {
	struct unpacking *u;
	struct wheel_reader *reader;
	struct digest hash;   /* of RECORD's kind */
	struct digest sha256; /* for a wanted digest that RECORD lacks */
};

/* A member being written; with fd -1 it is only checked. */
struct writing {
	struct hands *hands;
	const struct wheel_member *m;
	int fd;
	bool hashed; /* for RECORD's hash */
	bool digest; /* for a wanted digest */
};

static kpack_error_t write_all(int fd, struct kp_span data, const char *path,
			       struct kpackx_error *why)
{
	while (data.size) {
		ssize_t n = write(fd, data.data, data.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kp_fail_errno(why, errno, "%s", path);
		data = kp_span_tail(data, (size_t)n);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t take_bytes(void *arg, struct kp_span data, struct kpackx_error *why)
{
	struct writing *writing = arg;
	struct unpacking *u = writing->hands->u;

	if (writing->hashed)
		digest_add(&writing->hands->hash, data);
	if (writing->digest)
		digest_add(&writing->hands->sha256, data);
	if (writing->fd >= 0)
		KP_TRY(write_all(writing->fd, data, writing->m->path, why));
	if (u->how->progress) {
		pthread_mutex_lock(&u->lock);
		u->how->progress(u->how->arg, data.size);
		pthread_mutex_unlock(&u->lock);
	}
	return KPACK_SUCCESS;
}

/* Make the directories above PATH, which is below the root. */
static kpack_error_t make_parents(const char *path, struct kpackx_error *why)
{
	char *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	kpack_error_t err = below_mkdirs(parent, 0777, why);

	free(parent);
	return err;
}

/* Make the file PATH, which must not exist, and the directories above it. */
static kpack_error_t create_file(const char *path, int *fd, struct kpackx_error *why)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL;

	*fd = below_open(path, flags, 0600);
	if (*fd < 0 && errno == ENOENT) {
		KP_TRY(make_parents(path, why));
		*fd = below_open(path, flags, 0600);
	}
	return *fd < 0 ? below_fail(why, "cannot make the file") : KPACK_SUCCESS;
}

/* Make member M in the directory DIR; *FD stays -1 for a directory. */
static kpack_error_t create_member(const char *dir, const struct wheel_member *m, int *fd,
				   struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", dir, m->path);
	kpack_error_t err =
		m->directory ? below_mkdirs(path, 0777, why) : create_file(path, fd, why);

	free(path);
	return err ? kp_fail_prefix(why, err, "%s", m->path) : KPACK_SUCCESS;
}

/* Keep the member's SHA-256, from RECORD if that has it. */
static kpack_error_t keep_digest(struct hands *h, size_t member,
				 const struct record_line *l, struct kpackx_error *why)
{
	uint8_t digest[DIGEST_MAX];

	if (!h->u->how->digests)
		return KPACK_SUCCESS;
	if (l && l->kind == DIGEST_SHA256)
		memcpy(digest, l->digest, 32);
	else
		KP_TRY(digest_end(&h->sha256, digest, why));
	memcpy(h->u->how->digests[member], digest, 32);
	return KPACK_SUCCESS;
}

/* Compare the hash of the bytes of the member M with RECORD's. */
static kpack_error_t check_hash(struct hands *h, const struct wheel_member *m,
				const struct record_line *l, struct kpackx_error *why)
{
	uint8_t digest[DIGEST_MAX];

	KP_TRY(digest_end(&h->hash, digest, why));
	if (memcmp(digest, l->digest, digest_size(l->kind)) != 0)
		return record_refuse(why, m->path,
				     "its hash differs from the listed one");
	return KPACK_SUCCESS;
}

static kpack_error_t read_file(struct hands *h, size_t member, int fd,
			       struct kpackx_error *why)
{
	struct unpacking *u = h->u;
	const struct wheel_member *m = &u->members[member];
	const struct record_line *l = record_find(u->record, m->path);
	struct writing writing = {
		.hands = h, .m = m, .fd = fd, .hashed = l && l->kind != DIGEST_NONE};

	writing.digest = u->how->digests && !(l && l->kind == DIGEST_SHA256);
	if (writing.hashed)
		digest_begin(&h->hash, l->kind);
	if (writing.digest)
		digest_begin(&h->sha256, DIGEST_SHA256);
	KP_TRY(wheel_reader_read(h->reader, member, take_bytes, &writing, why));
	if (writing.hashed)
		KP_TRY(check_hash(h, m, l, why));
	KP_TRY(keep_digest(h, member, l, why));
	if (fd >= 0 && fchmod(fd, m->mode))
		return kp_fail_errno(why, errno, "%s", m->path);
	return KPACK_SUCCESS;
}

static kpack_error_t unpack_member(void *arg, void *state, size_t job, void **result,
				   struct kpackx_error *why)
{
	struct unpacking *u = arg;
	size_t member = u->order[job];
	const struct wheel_member *m = &u->members[member];
	kpack_error_t err = KPACK_SUCCESS;
	int fd = -1;

	*result = NULL;
	if (!u->how->wanted || u->how->wanted(u->how->arg, m))
		KP_TRY(create_member(u->how->dir, m, &fd, why));
	if (!m->directory)
		err = read_file(state, member, fd, why);
	if (fd >= 0 && close(fd) && !err)
		err = kp_fail_errno(why, errno, "%s", m->path);
	return err;
}

static void end_thread(void *state)
{
	struct hands *h = state;

	wheel_reader_free(h->reader);
	digest_fini(&h->hash);
	digest_fini(&h->sha256);
	free(h);
}

static kpack_error_t begin_thread(void *arg, void **state, struct kpackx_error *why)
{
	struct hands *h = xcalloc(1, sizeof(*h));
	kpack_error_t err;

	h->u = arg;
	err = wheel_reader_new(h->u->w, &h->reader, why);
	if (err)
		end_thread(h);
	else
		*state = h;
	return err;
}

static int by_size(const void *a, const void *b, void *arg)
{
	const struct wheel_member *members = arg;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (members[x].size != members[y].size)
		return KP_ORDER(members[y].size, members[x].size);
	return KP_ORDER(x, y);
}

static kpack_error_t run_pipeline(struct unpacking *u, struct kpackx_error *why)
{
	struct pipeline p = {
		.n_jobs = u->count,
		.threads = u->how->threads,
		.arg = u,
		.begin = begin_thread,
		.end = end_thread,
		.work = unpack_member,
	};

	if (!p.threads)
		p.threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	u->order = xmalloc(u->count * sizeof(*u->order));
	for (size_t i = 0; i < u->count; i++)
		u->order[i] = (uint32_t)i;
	if (u->count)
		qsort_r(u->order, u->count, sizeof(*u->order), by_size,
			(void *)u->members);
	return pipeline_run(&p, NULL, why);
}

kpack_error_t wheel_unpack(const struct wheel_in *w, const struct record *record,
			   const struct wheel_unpack *how, struct kpackx_error *why)
{
	struct unpacking u = {
		.w = w, .record = record, .how = how, .lock = PTHREAD_MUTEX_INITIALIZER};
	kpack_error_t err;

	/* as a root: no link below the directory is followed */
	KP_TRY(below_root(how->dir, why));
	u.members = wheel_in_members(w, &u.count);
	err = run_pipeline(&u, why);
	free(u.order);
	pthread_mutex_destroy(&u.lock);
	return err;
}
