/* SPDX-License-Identifier: MIT */
/*
 * Check output wheels before they get their names: together they must have everything
 * that the sources have, and nothing twice.
 */
#ifndef PACKER_WHEEL_SPLIT_CHECK_H
#define PACKER_WHEEL_SPLIT_CHECK_H

#include "split_write.h"

/*
 * Read the FILES that W wrote.  Every member of each of the N SOURCES must be in one of
 * them, with the same bytes unless it was converted; or it was packed.  Each packed code
 * object must be in one of their archives with its hash, unless another source is
 * preferred.  Any other member must be an archive or in a .dist-info.
 * INVALID_FORMAT: the check fails; the error names the member.
 */
kpack_error_t wheel_check(const struct wheel_write *w, const struct wheel_files *files,
			  const struct wheel_source *sources, size_t n,
			  struct kpackx_error *why);

#endif
