/* SPDX-License-Identifier: MIT */
/*
 * Two builds of one binary, for different GPUs: do they have the same host?
 *
 * A compiler gives each of them the same host code, but .hip_fatbin has another size, so
 * that what stands behind it has other addresses, and code and data that refer to it have
 * other bytes.  Such differences are none, as long as they say nothing but how far
 * something moved.
 */
#ifndef PACKER_BINARY_HOST_COMPARE_H
#define PACKER_BINARY_HOST_COMPARE_H

#include "binary.h"

enum host_relation {
	HOST_SAME,     /* either may stand for both */
	HOST_DIFFERS,  /* only one of them can be had */
	HOST_WRAPPERS, /* not even that: the code of one is not the code of the other */
};

struct host_verdict {
	enum host_relation relation;
	char text[240]; /* where they differ: "section .rodata: 5 bytes, and 6"; or "" */
};

/*
 * Compare A and B, both opened by binary_open: both converted, or both fat.
 *
 * Left out: the device code, marker, layout and build ID, the values of wrappers' pointers,
 * what is not loaded but .comment, and the hash of the command line that clang puts into
 * names (__hip_cuid_...), which differs with the list of GPUs.
 *
 * INVALID_ARGUMENT: they are not both of one of these kinds.  INVALID_FORMAT: tables that
 * lie.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t host_compare(const struct binary *a, const struct binary *b,
			   struct host_verdict *out, struct kpackx_error *why);

#endif
