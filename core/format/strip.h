/* SPDX-License-Identifier: MIT */
/*
 * A code object without its debugging information, or only with that: the sections,
 * segments, notes and symbols that llvm-strip --strip-debug and llvm-objcopy
 * --only-keep-debug leave, but not their bytes.
 */
#ifndef KP_CORE_FORMAT_STRIP_H
#define KP_CORE_FORMAT_STRIP_H

#include "core/base/errors.h"
#include "core/base/file.h"

enum kp_strip {
	KP_STRIP_DEBUG,      /* without debugging information: it loads as before */
	KP_STRIP_KEEP_DEBUG, /* a file for debuggers, found by the build ID */
};

/* A run of the result. */
struct kp_strip_piece {
	uint64_t to, size;
	uint64_t from;        /* offset in the object, if it has no bytes */
	const uint8_t *bytes; /* or these, owned by the result */
};

struct kp_stripped {
	uint64_t size;
	/* To be written in order, over each other; other bytes are zero. */
	struct kp_strip_piece *pieces;
	size_t n, cap;
	void *work; /* private; NULL: there is no result */
};

/*
 * Decide the result for the code object SRC.  The caller frees OUT, after success, with
 * kp_stripped_fini.  Memory: the headers and the symbol table.
 * NOT_IMPLEMENTED: SRC is no linked 64-bit little-endian ELF of the machine AMDGPU, or has
 * something that linkers do not make; or the result would not be smaller.
 * INVALID_FORMAT: its tables contradict the file or each other.
 */
kpack_error_t kp_strip_plan(const struct kp_source *src, enum kp_strip how,
			    struct kp_stripped *out, struct kpackx_error *why);
void kp_stripped_fini(struct kp_stripped *s);

/* Characters of a build ID in hexadecimal digits, with the NUL. */
#define KP_BUILD_ID_TEXT 65

/*
 * The build ID of the object SRC; "": none, or one that is too short or long to name a
 * file.  INVALID_FORMAT: SRC's notes cannot be read.
 */
kpack_error_t kp_strip_build_id(const struct kp_source *src, char out[KP_BUILD_ID_TEXT],
				struct kpackx_error *why);

/* Write the result for SRC to OUT at AT, where nothing was written yet. */
kpack_error_t kp_stripped_write(const struct kp_stripped *s, const struct kp_source *src,
				struct kp_outfile *out, uint64_t at,
				struct kpackx_error *why);
/* The same to memory, `size` bytes. */
kpack_error_t kp_stripped_read(const struct kp_stripped *s, const struct kp_source *src,
			       uint8_t *out, struct kpackx_error *why);

#endif
