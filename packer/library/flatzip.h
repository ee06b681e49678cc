/* SPDX-License-Identifier: MIT */
/* AOTriton's "flatzip": an ordinary ZIP whose members are stored, without ZIP64. */
#ifndef PACKER_LIBRARY_AOTRITON_FLATZIP_H
#define PACKER_LIBRARY_AOTRITON_FLATZIP_H

#include "core/base/file.h"

/*
 * Find the end record of SOURCE as AOTriton's loader does, in the last 65,558 bytes, and
 * set *MEMBERS to the number of members that it states.  INVALID_FORMAT: no end record,
 * or the central directory is not before it.  IO_ERROR.
 */
kpack_error_t flatzip_read(const struct kp_source *source, unsigned *members,
			   struct kpackx_error *why);

#endif
