/* SPDX-License-Identifier: MIT */
/*
 * Before wheels get their names: together they have what the wheels they are made of have,
 * nothing twice and nothing less.
 */
#ifndef PACKER_WHEEL_SPLIT_CHECK_H
#define PACKER_WHEEL_SPLIT_CHECK_H

#include "write.h"

/*
 * Read the FILES that W wrote.  Every member of each of the N SOURCES is in one of them, the
 * same where it was not converted; or was packed.  Each code object that was packed is in one
 * of their archives, with its hash, unless another source's is preferred.  Each other member is an archive, or in a .dist-info.
 * INVALID_FORMAT: it is not so; the text names what is missing.
 */
kpack_error_t wheel_check(const struct wheel_write *w, const struct wheel_files *files,
			  const struct wheel_source *sources, size_t n,
			  struct kpackx_error *why);

#endif
