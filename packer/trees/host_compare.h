/* SPDX-License-Identifier: MIT */
/*
 * Whether two builds of one binary, for different GPUs, have the same host part.
 *
 * A compiler gives both the same host code, but .hip_fatbin has another size.  So
 * everything after it has other addresses, and code and data that refer to it have other
 * bytes.  Such differences are ignored if they only say how far something moved.
 */
#ifndef PACKER_BINARY_HOST_COMPARE_H
#define PACKER_BINARY_HOST_COMPARE_H

#include "packer/archives/binary.h"

enum host_relation {
	HOST_SAME,     /* either build can replace both */
	HOST_DIFFERS,  /* one build must be chosen */
	HOST_WRAPPERS, /* no choice is possible: the code of one does not fit the other */
};

struct host_verdict {
	enum host_relation relation;
	char text[240]; /* the difference: "section .rodata: 5 bytes, and 6"; or "" */
};

/*
 * Compare A and B, both opened by binary_open: both converted, or both fat.
 *
 * Not compared: the device code, marker, layout and build ID; the values of wrappers'
 * pointers; sections that are not loaded, except .comment; and the hash of the command
 * line that clang puts into names (__hip_cuid_...), which depends on the list of GPUs.
 *
 * INVALID_ARGUMENT: they are not both converted, nor both fat.  INVALID_FORMAT: invalid
 * ELF tables.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t host_compare(const struct binary *a, const struct binary *b,
			   struct host_verdict *out, struct kpackx_error *why);

#endif
