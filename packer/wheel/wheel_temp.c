/* SPDX-License-Identifier: MIT */
#include "wheel_temp.h"
#include <errno.h>
#include <sys/stat.h>
#include "core/base/file.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

kpack_error_t wheel_temp_open(const char *base, struct temp_dir *out,
			      struct kpackx_error *why)
{
	temp_dir_remove_left(base, KP_TEMP_WHEEL, NULL);
	return temp_dir_open(out, base, KP_TEMP_WHEEL, why);
}

kpack_error_t wheel_temp_dir(const struct temp_dir *t, const char *name, char **out,
			     struct kpackx_error *why)
{
	*out = xasprintf("%s/%s", t->path, name);
	if (below_mkdir(*out, 0777) == 0)
		return KPACK_SUCCESS;
	return below_fail(why, "%s: cannot make the directory", *out);
}
