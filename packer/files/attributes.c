/* SPDX-License-Identifier: MIT */
#include "attributes.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "below.h"
#include "core/base/span.h"
#include "packer/cli/xalloc.h"

#define ACL "system.posix_acl_access"

/* Most bytes of a list of names, and of one value, that Linux allows. */
#define XATTR_MAX 65536

/* --- copying ------------------------------------------------------------------------- */

/* Copy the owner.  false: not permitted, or *ERR is set. */
static bool copy_owner(int to, const struct stat *st, kpack_error_t *err,
		       struct kpackx_error *why)
{
	*err = KPACK_SUCCESS;
	if (fchown(to, st->st_uid, st->st_gid) == 0)
		return true;
	if (errno != EPERM) {
		*err = kp_fail_errno(why, errno, "cannot keep its owner");
		return false;
	}
	/* the group alone: a member of it may set it */
	if (fchown(to, (uid_t)-1, st->st_gid) < 0 && errno != EPERM)
		*err = kp_fail_errno(why, errno, "cannot keep its group");
	return false;
}

static kpack_error_t copy_owner_and_mode(int to, const struct stat *st, bool *owned,
					 struct kpackx_error *why)
{
	mode_t mode = st->st_mode & 07777;
	kpack_error_t err;

	*owned = copy_owner(to, st, &err, why);
	if (!*owned)
		mode &= (mode_t) ~(S_ISUID | S_ISGID);
	KP_TRY(err);
	/* remove the ACL that the directory gives to new files */
	if (fremovexattr(to, ACL) < 0 && errno != ENODATA && errno != ENOTSUP)
		return kp_fail_errno(why, errno, "cannot remove an ACL");
	if (fchmod(to, mode) < 0)
		return kp_fail_errno(why, errno, "cannot keep its permissions");
	return KPACK_SUCCESS;
}

static bool is_signature(const char *name)
{
	return strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0;
}

/*
 * Whether an attribute may be lost.  If a label cannot be set, it comes from the policy;
 * capabilities, like set-ID bits, must not go to another owner's file.
 */
static bool may_fail(const char *name, bool owned, int error)
{
	return error == ENOTSUP ||
	       (error == EPERM && !owned && strcmp(name, "security.capability") == 0) ||
	       (error == EPERM && strncmp(name, "trusted.", 8) == 0) ||
	       ((error == EPERM || error == EACCES) &&
		strcmp(name, "security.selinux") == 0);
}

static kpack_error_t copy_xattr(int from, int to, const char *name, bool owned, void *buf,
				struct kpackx_error *why)
{
	ssize_t n = fgetxattr(from, name, buf, XATTR_MAX);

	if (n < 0 && errno == ENODATA)
		return KPACK_SUCCESS; /* removed meanwhile */
	if (n >= 0 && fsetxattr(to, name, buf, (size_t)n, 0) == 0)
		return KPACK_SUCCESS;
	if (may_fail(name, owned, errno))
		return KPACK_SUCCESS;
	return kp_fail_errno(why, errno, "cannot keep its attribute %s", name);
}

static kpack_error_t copy_xattrs(int from, int to, bool owned, char *names, void *buf,
				 struct kpackx_error *why)
{
	ssize_t n = flistxattr(from, names, XATTR_MAX);

	if (n < 0 && errno == ENOTSUP)
		return KPACK_SUCCESS;
	if (n < 0)
		return kp_fail_errno(why, errno, "cannot list its attributes");
	for (const char *name = names; name < names + n; name += strlen(name) + 1)
		if (!is_signature(name))
			KP_TRY(copy_xattr(from, to, name, owned, buf, why));
	return KPACK_SUCCESS;
}

kpack_error_t attributes_copy(int from, int to, const struct stat *st,
			      struct kpackx_error *why)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	char *names, *buf;
	kpack_error_t err;
	bool owned;

	KP_TRY(copy_owner_and_mode(to, st, &owned, why));
	/* after the owner, because changing it removes capabilities */
	names = xmalloc(XATTR_MAX);
	buf = xmalloc(XATTR_MAX);
	err = copy_xattrs(from, to, owned, names, buf, why);
	if (!err && futimens(to, times) < 0)
		err = kp_fail_errno(why, errno, "cannot keep its times");
	free(names);
	free(buf);
	return err;
}

/* --- hashing ------------------------------------------------------------------------- */

static bool is_hashed(const char *name)
{
	return strncmp(name, "user.", 5) == 0 ||
	       strncmp(name, "system.posix_acl_", 17) == 0 ||
	       strcmp(name, "security.capability") == 0;
}

static kpack_error_t hash_xattr(const char *path, const char *name, uint8_t *buf,
				struct kp_hasher *hash, struct kpackx_error *why)
{
	ssize_t n = lgetxattr(path, name, buf, XATTR_MAX);
	uint8_t size[8];

	if (n < 0 && errno == ENODATA)
		return KPACK_SUCCESS; /* removed meanwhile */
	if (n < 0)
		return kp_fail_errno(why, errno, "cannot read its attribute %s", name);
	kp_put_le64(size, (uint64_t)n);
	kp_hasher_add(hash, name, strlen(name) + 1);
	kp_hasher_add(hash, size, sizeof(size));
	kp_hasher_add(hash, buf, (size_t)n);
	return KPACK_SUCCESS;
}

/* Hash the attributes in order of names, because file systems list them in any order. */
static kpack_error_t hash_listed(const char *path, const char *list, size_t size,
				 struct kp_hasher *hash, struct kpackx_error *why)
{
	const char **names = xmalloc(size * sizeof(*names));
	uint8_t *buf = xmalloc(XATTR_MAX);
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0;

	for (const char *name = list; name < list + size; name += strlen(name) + 1)
		if (is_hashed(name))
			names[n++] = name;
	if (n)
		qsort(names, n, sizeof(*names), kp_order_texts);
	for (size_t i = 0; i < n && !err; i++)
		err = hash_xattr(path, names[i], buf, hash, why);
	free(names);
	free(buf);
	return err;
}

kpack_error_t attributes_hash(const char *path, struct kp_hasher *hash,
			      struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct below_dir dir;
	char *list, *proc;
	ssize_t size;

	if (below_dir_open(&dir, path) < 0)
		return below_fail(why, "cannot open its directory");
	proc = xasprintf("/proc/self/fd/%d/%s", dir.fd, dir.name);
	list = xmalloc(XATTR_MAX);
	size = llistxattr(proc, list, XATTR_MAX);
	if (size > 0)
		err = hash_listed(proc, list, (size_t)size, hash, why);
	else if (size < 0 && errno != ENOTSUP)
		err = kp_fail_errno(why, errno, "cannot list its attributes");
	below_dir_close(&dir);
	free(list);
	free(proc);
	return err;
}
