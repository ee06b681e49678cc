/* SPDX-License-Identifier: MIT */
/*
 * Several wheels of one version, built for different GPUs, as one: what they have in common
 * once, what is for GPUs from all.
 */
#ifndef PACKER_WHEEL_SPLIT_UNION_H
#define PACKER_WHEEL_SPLIT_UNION_H

#include "items.h"

/*
 * Are they builds of one wheel: the same distribution, version, tags and overlay, and, unless
 * one is to be PREFERRED, METADATA?  INVALID_ARGUMENT: they are not.
 */
kpack_error_t wheel_union_check(const struct wheel_source *sources, size_t n,
				bool preferred, struct kpackx_error *why);

/*
 * Join LIST, sorted, of the N SOURCES, so that no path is there twice.  Files for the host are
 * in each source and the same; those for GPUs and of databases are in any, and the same;
 * binaries have one host; archives are merged.  What comes out anew is written into DIR.
 * PREFER, one of SOURCES or NULL, has the file that counts where bytes differ.
 * INVALID_ARGUMENT: sources do not fit; the text names both.
 */
kpack_error_t wheel_union_join(struct wheel_items *list,
			       const struct wheel_source *sources, size_t n,
			       const struct wheel_source *prefer, const char *dir,
			       struct kpackx_error *why);

#endif
