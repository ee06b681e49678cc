/* SPDX-License-Identifier: MIT */
#include "copy_or_leave.h"
#include <errno.h>
#include "packer/base/xalloc.h"

static bool may_be_left(const struct stat *seen, int error)
{
	return !S_ISREG(seen->st_mode) && !S_ISLNK(seen->st_mode) &&
	       (error == EPERM || error == EOPNOTSUPP);
}

kpack_error_t copy_or_leave(const char *from, const struct stat *seen, const char *to,
			    char **left, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	kpack_error_t err = copy_seen(from, seen, to, &fault);

	*left = NULL;
	if (err && may_be_left(seen, fault.sys_errno)) {
		*left = xstrdup(fault.text);
		return KPACK_SUCCESS;
	}
	if (err && why)
		*why = fault;
	return err;
}
