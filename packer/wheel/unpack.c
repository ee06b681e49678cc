/* SPDX-License-Identifier: MIT */
/*
 * A wheel as a directory.  Unpacking compares each member with RECORD while it is written.  A
 * directory with an unpacked wheel is made into a wheel first, so that there is one way to
 * read: only its RECORD, which edits in the directory made wrong, is new.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/order.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "wheel.h"

/* --- unpacking ----------------------------------------------------------------------- */

struct unpacking {
	const struct wheel_in *w;
	const struct wheel_unpack *how;
	/* members, largest first, so that threads end together */
	struct by_size {
		uint64_t size;
		size_t member;
	} * order;
};

/* What a thread keeps, and the member that it writes. */
struct hands {
	struct unpacking *u;
	struct wheel_reader *reader;
	const struct wheel_member *m;
	int fd;
	struct digest hash;   /* of RECORD's kind, if HASHED */
	struct digest sha256; /* if RECORD has another kind, or none, and it is WANTED */
	bool hashed, wanted;
};

/* Get decoded bytes of a member: hash them and write them. */
static kpack_error_t take_bytes(void *arg, struct kp_span data, struct kpackx_error *why)
{
	struct hands *h = arg;

	if (h->hashed)
		digest_add(&h->hash, data);
	if (h->wanted)
		digest_add(&h->sha256, data);
	progress_add(data.size);
	while (data.size) {
		ssize_t n = write(h->fd, data.data, data.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kp_fail_errno(why, errno, "%s", h->m->path);
		data = kp_span_tail(data, (size_t)n);
	}
	return KPACK_SUCCESS;
}

/*
 * Make the member's file and write its bytes, compare their hash with RECORD's, and keep the
 * SHA-256.
 */
static kpack_error_t unpack_member(void *arg, void *state, size_t job, void **result,
				   struct kpackx_error *why)
{
	/* a file that is there is never followed or replaced: see below.h */
	const int flags = O_WRONLY | O_CREAT | O_EXCL;
	struct unpacking *u = arg;
	const struct wheel_unpack *how = u->how;
	struct hands *h = state;
	size_t member = u->order[job].member;
	const struct wheel_member *m = h->m = &u->w->members[member];
	const struct record_line *l =
		how->record ? record_find(how->record, m->path) : NULL;
	enum digest_kind kind = l ? l->kind : DIGEST_NONE;
	KP_AUTO_FREE char *path = xasprintf("%s/%s", how->dir, m->path);
	kpack_error_t err = KPACK_SUCCESS;
	uint8_t digest[DIGEST_MAX];
	KP_AUTO_CLOSE int fd = -1;
	int failed;

	*result = NULL;
	if (m->directory) {
		err = below_mkdirs(path, 0777, why);
		return err ? kp_fail_prefix(why, err, "%s", m->path) : KPACK_SUCCESS;
	}
	/* few files are the first of their directory: try without making it */
	fd = below_open(path, flags, 0600);
	if (fd < 0 && errno == ENOENT) {
		char *slash = strrchr(path, '/');

		*slash = '\0';
		err = below_mkdirs(path, 0777, why);
		*slash = '/';
		fd = err ? -1 : below_open(path, flags, 0600);
	}
	if (fd < 0) {
		if (!err)
			err = below_fail(why, "cannot make the file");
		return kp_fail_prefix(why, err, "%s", m->path);
	}
	h->fd = fd;
	h->hashed = kind != DIGEST_NONE;
	h->wanted = how->digests && kind != DIGEST_SHA256;
	if (h->hashed)
		digest_begin(&h->hash, kind);
	if (h->wanted)
		digest_begin(&h->sha256, DIGEST_SHA256);
	KP_TRY(wheel_reader_read(h->reader, member, take_bytes, h, why));
	if (h->hashed) {
		KP_TRY(digest_end(&h->hash, digest, why));
		if (memcmp(digest, l->digest, digest_size(kind)) != 0)
			return record_refuse(why, m->path,
					     "its hash differs from the listed one");
	}
	if (h->wanted)
		KP_TRY(digest_end(&h->sha256, digest, why));
	if (how->digests)
		memcpy(how->digests[member], digest, sizeof(*how->digests));
	failed = fchmod(fd, m->mode);
	if (!failed) {
		failed = close(fd);
		/* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): closed once */
		fd = -1;
	}
	return failed ? kp_fail_errno(why, errno, "%s", m->path) : KPACK_SUCCESS;
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

	(void)why;
	h->u = arg;
	h->reader = wheel_reader_new(h->u->w);
	*state = h;
	return KPACK_SUCCESS;
}

kpack_error_t wheel_unpack(const struct wheel_in *w, const struct wheel_unpack *how,
			   struct kpackx_error *why)
{
	struct unpacking u = {.w = w, .how = how};
	struct pipeline p = {
		.n_jobs = w->count,
		.threads = how->threads,
		.arg = &u,
		.begin = begin_thread,
		.end = end_thread,
		.work = unpack_member,
	};
	kpack_error_t err = below_mkdirs(how->dir, 0777, why);

	/* as a root: no link below the directory is followed */
	if (!err)
		err = below_root(how->dir, why);
	if (err)
		return err;
	u.order = xmalloc(w->count * sizeof(*u.order));
	for (size_t i = 0; i < w->count; i++)
		u.order[i] = (struct by_size){~w->members[i].size, i};
	kp_sort(u.order, w->count, KP_BY_NUMBER(struct by_size, size),
		KP_BY_NUMBER(struct by_size, member));
	err = pipeline_run(&p, NULL, why);
	free(u.order);
	return err;
}

/* --- packing ------------------------------------------------------------------------- */

kpack_error_t wheel_pack_directory(const char *dir, const char *to, unsigned threads,
				   char **file, struct kpackx_error *why)
{
	struct wheel_out_options how = {
		.dir = to, .name = "directory", .threads = threads};
	struct tree_list *list = tree_list_open(dir);
	KP_AUTO_FREE char *info = NULL;
	KP_AUTO(wheel_out) out = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;

	/* all files but RECORD and its signatures, which would be wrong */
	while (!err && tree_list_next(list, &e)) {
		const char *name = strchr(e.rest, '/');

		if (e.kind == TREE_FAULT)
			err = kp_fail_errno(why, e.error, "%s", e.path);
		if (e.kind != TREE_OTHER)
			continue;
		if (!S_ISREG(e.st.st_mode))
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: a wheel has only files", e.rest);
		else if (name)
			err = dist_info_note(e.rest, &info, why);
		if (!err && !(name && info && kp_path_below(e.rest, info) &&
			      strncmp(name + 1, "RECORD", strlen("RECORD")) == 0))
			err = wheel_out_add_file(&out, e.rest, e.st.st_mode, e.path, why);
	}
	tree_list_close(list);
	if (!err)
		err = dist_info_found(info, why);
	*file = xasprintf("%s/%s", to, how.name);
	return err ? err : wheel_out_write(&out, &how, info, why);
}
