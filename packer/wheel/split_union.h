/* SPDX-License-Identifier: MIT */
/*
 * Join several wheels of one version that were built for different GPUs: common files are
 * kept once, device code is taken from all wheels.
 */
#ifndef PACKER_WHEEL_SPLIT_UNION_H
#define PACKER_WHEEL_SPLIT_UNION_H

#include "split_items.h"

/*
 * Check that the sources are builds of one wheel: with the same distribution, version and
 * tags and, unless one of them is PREFERRED, the same METADATA.  INVALID_ARGUMENT: they
 * are not.
 */
kpack_error_t wheel_union_check(const struct wheel_source *sources, size_t n,
				bool preferred, struct kpackx_error *why);

/*
 * Join LIST, the sorted items of the N SOURCES, so that it has no path twice.  A file for
 * the host must be in each source; a file for GPUs or of a kernel database may be in only
 * some.  Files with the same path must be equal; binaries must have the same host code,
 * and archives are merged.  New files are written into DIR.  PREFER, one of SOURCES or
 * NULL, provides the file where bytes differ.
 * INVALID_ARGUMENT: sources do not match; the error names both.
 */
kpack_error_t wheel_union_join(struct wheel_items *list,
			       const struct wheel_source *sources, size_t n,
			       const struct wheel_source *prefer, const char *dir,
			       struct kpackx_error *why);

#endif
