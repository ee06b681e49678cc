/* SPDX-License-Identifier: MIT */
#include "rewrite.h"
#include <errno.h>
#include "packer/files/attributes.h"
#include "core/base/text.h"

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool rewrite_is_same(const struct binary *from, const char *path)
{
	struct stat there;

	return below_stat(path, &there) == 0 && same_file(&there, &from->st);
}

static kpack_error_t no_place(const char *path, const char *what,
			      struct kpackx_error *why)
{
	char text[160];

	kp_text_escape(kp_span_str(path), text, sizeof(text));
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: %s; not replaced", text, what);
}

/*
 * Find the file to replace; for a link, the one that it leads to.  A device or the like is
 * never replaced: a user who names /dev/null wants to keep it.
 */
static kpack_error_t find_place(struct rewrite *r, const char *path,
				struct kpackx_error *why)
{
	int error = below_target_open(&r->to, path) < 0 ? errno : 0;
	struct stat link;

	if (r->to.fd < 0 && (!error || error == ENOENT) && below_lstat(path, &link) == 0)
		return no_place(path, "is a link that leads nowhere", why);
	errno = error;
	if (error)
		return kp_fail_prefix(why, below_fail(why, "cannot find where it is"),
				      "%s", path);
	if (r->to.fd < 0)
		return KPACK_SUCCESS;
	r->in_place = same_file(&r->to.st, &r->from->st);
	return S_ISREG(r->to.st.st_mode) && !r->to.is_open
		       ? KPACK_SUCCESS
		       : no_place(path, "is no regular file", why);
}

kpack_error_t rewrite_open(struct rewrite *r, const struct binary *from, const char *path,
			   struct kpackx_error *why)
{
	kpack_error_t err;

	*r = (struct rewrite){.from = from,
			      .to = {.dir = -1, .fd = -1},
			      .out = {.fd = -1, .dir_fd = -1}};
	err = find_place(r, path, why);
	/* no other user can read it before it has its permissions */
	if (!err)
		err = below_target_outfile(&r->to, &r->out, 0600, why);
	if (err)
		rewrite_close(r);
	return err;
}

static bool same_content(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Check that FROM is unchanged, and still has the name that will be replaced. */
static kpack_error_t check_unchanged(const struct rewrite *r, struct kpackx_error *why)
{
	struct stat open_now, named;

	if (fstat(r->from->fd, &open_now) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	if (r->in_place && below_target_named(&r->to, &named) < 0)
		return below_fail(why, "cannot stat");
	if (same_content(&open_now, &r->from->st) &&
	    (!r->in_place || same_file(&named, &open_now)))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
}

/* A replaced file must keep its owner, and leave no other links with the old content. */
static kpack_error_t check_replaced(const struct rewrite *r, struct kpackx_error *why)
{
	const struct stat *st = &r->from->st;
	struct stat now;

	if (st->st_nlink > 1)
		return kp_fail(
			why, KPACK_ERROR_NOT_IMPLEMENTED,
			"has %llu hard links; replacing one would leave the others "
			"as they are",
			(unsigned long long)st->st_nlink);
	if (fstat(r->out.fd, &now) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	if (now.st_uid == st->st_uid && now.st_gid == st->st_gid)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "cannot keep its owner %u:%u",
		       (unsigned)st->st_uid, (unsigned)st->st_gid);
}

kpack_error_t rewrite_publish(struct rewrite *r, struct kpackx_error *why)
{
	KP_TRY(attributes_copy(r->from->fd, r->out.fd, &r->from->st, why));
	if (r->in_place)
		KP_TRY(check_replaced(r, why));
	KP_TRY(check_unchanged(r, why));
	return kp_outfile_publish(&r->out, why);
}

void rewrite_close(struct rewrite *r)
{
	kp_outfile_close(&r->out);
	if (r->from)
		below_target_close(&r->to);
	*r = (struct rewrite){.out = {.fd = -1, .dir_fd = -1}};
}
