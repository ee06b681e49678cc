/* SPDX-License-Identifier: MIT */
/*
 * The marker of converted binaries, which is the MessagePack map in .rocm_kpack_ref that
 * names the kernel and the archives; and the 24-byte wrapper whose pointer leads to it.
 *
 *   wrapper: u32 magic ("HIPF" fat, "HIPK" kpack), u32 version 1, u64 pointer, u64 index
 *   marker:  { "kpack_search_paths": [str...], "kernel_name": str }
 *
 * Source: rocm-kpack's runtime and transform.
 */
#ifndef KP_CORE_HOST_MARKER_H
#define KP_CORE_HOST_MARKER_H

#include "core/base/errors.h"
#include "core/base/span.h"

#define KP_WRAPPER_SIZE 24
#define KP_WRAPPER_POINTER 8 /* offset of the pointer */
#define KP_WRAPPER_HIPF UINT32_C(0x48495046)
#define KP_WRAPPER_HIPK UINT32_C(0x4b504948)
#define KP_WRAPPER_VERSION 1

/* The fields of one wrapper. */
struct kp_wrapper {
	uint32_t magic;
	uint32_t version;
	uint64_t pointer; /* as stored; a relocation may say otherwise */
	uint64_t index;   /* reserved1: wrapper index once converted */
};

/* Decode a wrapper; false: it has neither magic, or another version. */
bool kp_wrapper_decode(const uint8_t bytes[KP_WRAPPER_SIZE], struct kp_wrapper *out);

/* A parsed marker.  Owns its strings. */
struct kp_marker {
	char *kernel_name;
	char **search_paths;
	size_t n_search_paths;
	size_t size; /* bytes of the MessagePack map; bytes after it are ignored */
};

/*
 * Parse the map at the start of BYTES, of at most KP_MARKER_MAX bytes.  AMD's rules: the
 * first of equal keys counts, and array members that are not strings are skipped.  OUT is
 * untouched on failure.
 * INVALID_METADATA: not a map; kernel_name is missing or not a string; kpack_search_paths
 * is missing, not an array, or has no string; a NUL inside a string.
 * MSGPACK_PARSE_FAILED: not MessagePack, or cut short.  OUT_OF_MEMORY.
 */
kpack_error_t kp_marker_parse(struct kp_span bytes, struct kp_marker *out,
			      struct kpackx_error *why);
void kp_marker_fini(struct kp_marker *marker);
/* Whether name and search paths, in their order, are equal. */
bool kp_marker_same(const struct kp_marker *a, const struct kp_marker *b);

/*
 * Write the map of MARKER (whose size member is ignored) as AMD does: kpack_search_paths,
 * then kernel_name.  The caller frees *out.
 * INVALID_METADATA: no search path, an empty or too long string, or more than
 * KP_MARKER_MAX bytes in all.  OUT_OF_MEMORY.
 */
kpack_error_t kp_marker_write(const struct kp_marker *marker, uint8_t **out, size_t *size,
			      struct kpackx_error *why);

#endif
