/* SPDX-License-Identifier: MIT */
/*
 * The host part of a binary that a shard converted.  Its marker names a volume, which is known
 * for sure only when all shards are put together; then it is converted again, from this, to
 * the very bytes that one run would have written.
 */
#ifndef PACKER_SHARD_HOST_H
#define PACKER_SHARD_HOST_H

#include "packer/pack/scan/input.h"

/* Write IN to PATH; unless CODE, with a hole instead of its device code. */
kpack_error_t shard_host_save(struct input *in, bool code, const char *path,
			      struct kpackx_error *why);

/*
 * Convert HOST, which shard_host_save wrote, to TO, like FROM, the same binary converted with
 * another volume of GROUP in its marker.  It has FROM's attributes.
 */
kpack_error_t shard_host_convert(const char *host, const char *from, const char *to,
				 const char *group, unsigned old_volume, unsigned volume,
				 struct kpackx_error *why);

#endif
