/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <unistd.h>
#include "origin.h"

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_bytes(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && same_time(a->st_mtim, b->st_mtim);
}

static bool same_file_now(struct origin *o)
{
	const struct stat *was = kp_archive_stat(o->archive);
	struct stat now;

	if (fstat(kp_archive_fd(o->archive), &now) || !same_bytes(was, &now))
		return false;
	if (same_time(was->st_ctim, now.st_ctim) ||
	    atomic_load(&o->verified) ==
		    now.st_ctim.tv_sec * INT64_C(1000000000) + now.st_ctim.tv_nsec)
		return true;
	/* The file was renamed or unlinked, or a program wrote to it and restored the
	 * mtime. */
	if (!kp_archive_same_toc(o->archive))
		return false;
	atomic_store(&o->verified,
		     now.st_ctim.tv_sec * INT64_C(1000000000) + now.st_ctim.tv_nsec);
	return true;
}

bool origin_intact(struct origin *o)
{
	if (atomic_load(&o->changed))
		return false;
	if (same_file_now(o))
		return true;
	atomic_store(&o->changed, true);
	return false;
}

kpack_error_t origin_new(int fd, const char *path, struct origin **out,
			 struct kpackx_error *why)
{
	static atomic_uint serials;
	struct origin *o = calloc(1, sizeof(*o));
	kpack_error_t err;

	if (!o) {
		close(fd);
		return kp_fail_memory(why, sizeof(*o), "an archive");
	}
	o->refs = 1;
	o->serial = atomic_fetch_add(&serials, 1) + 1;
	err = kp_archive_open_fd(fd, path, &o->archive, why);
	if (!err && !origin_intact(o))
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, "is being written to");
	if (err) {
		origin_unref(o);
		return err;
	}
	kp_archive_compact(o->archive);
	*out = o;
	return KPACK_SUCCESS;
}

struct origin *origin_ref(struct origin *o)
{
	atomic_fetch_add(&o->refs, 1);
	return o;
}

void origin_unref(struct origin *o)
{
	if (!o || atomic_fetch_sub(&o->refs, 1) > 1)
		return;
	kp_archive_close(o->archive);
	free(o);
}
