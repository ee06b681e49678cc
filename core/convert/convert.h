/* SPDX-License-Identifier: MIT */
/*
 * Fat binary -> host-only binary, and back.
 *
 * Converting takes .hip_fatbin out of the file (the section stays, NOBITS, at its
 * address), maps a marker in a read-only segment of its own, and makes every wrapper
 * point there: magic HIPF -> HIPK, reserved1 = wrapper index.  No virtual address
 * changes.  What restoring needs stands in .rocm_kpack_layout, which is not loaded.
 *
 * All calls read the input at FD, which may be renamed over later but must not
 * change, and write to an outfile the caller has opened and will publish; on
 * failure its content is worthless.  Bytes that stay go from file to file
 * without passing through memory where the system can do that.
 *
 * Errors of all: NOT_IMPLEMENTED when the file cannot be changed safely, with the
 * reason in words; INVALID_FORMAT when it lies about itself; IO_ERROR; OUT_OF_MEMORY.
 */
#ifndef KP_CORE_CONVERT_CONVERT_H
#define KP_CORE_CONVERT_CONVERT_H

#include "core/binary/fatbin.h"
#include "core/base/file.h"
#include "core/binary/marker.h"

/* Names of the two sections. */
#define KP_MARKER_SECTION ".rocm_kpack_ref"
#define KP_LAYOUT_SECTION ".rocm_kpack_layout"

struct kp_convert_options {
	struct kp_span marker; /* content of .rocm_kpack_ref (kp_marker_write) */
	struct kp_span
		layout; /* content of .rocm_kpack_layout; size 0: no such section */
	bool keep_device_code; /* leave .hip_fatbin as it is; wrappers lead to the marker */
};

/*
 * May FAT be converted (and keep its device code)?  Success, or NOT_IMPLEMENTED with the
 * reason: not kind ELF, a machine or an ELF type we do not change, no wrapper, some
 * wrappers converted, a layout of segments that would have to move.
 */
kpack_error_t kp_convert_check(int fd, uint64_t size, const struct kp_fatbin *fat,
			       bool keep_device_code, struct kpackx_error *why);

/* Write the converted form of FAT (kind ELF, open at FD with SIZE bytes) to OUT. */
kpack_error_t kp_convert(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_convert_options *options, struct kp_outfile *out,
			 struct kpackx_error *why);

/* Where a converted file's marker and layout are: bytes [offset, offset + size) of it. */
struct kp_converted {
	uint64_t marker_offset, marker_size;
	uint64_t layout_offset, layout_size; /* size 0: there is none */
	bool has_device_code;                /* kept by --keep-device-code */
};

/*
 * Find them.  NOT_IMPLEMENTED: FAT is not converted.  INVALID_FORMAT: wrappers are HIPK but there
 * is no marker, or one leads elsewhere.
 */
kpack_error_t kp_converted_find(int fd, uint64_t size, const struct kp_fatbin *fat,
				struct kp_converted *out, struct kpackx_error *why);

/* Write a converted file again with another marker, larger or smaller. */
kpack_error_t kp_convert_set(int fd, uint64_t size, const struct kp_fatbin *fat,
			     struct kp_span marker, struct kp_outfile *out,
			     struct kpackx_error *why);

/*
 * Write a converted file again so that the program headers are where Linux before
 * 5.18 looks for them (AT_PHDR = first segment's address - its offset + e_phoff), which
 * strip and its like undo.  *CHANGED false: they are, nothing was written.
 */
kpack_error_t kp_convert_normalise(int fd, uint64_t size, const struct kp_fatbin *fat,
				   struct kp_outfile *out, bool *changed,
				   struct kpackx_error *why);

/* What .hip_fatbin shall hold again. */
struct kp_restore_options {
	uint64_t size; /* bytes; may be larger than the section was */
	const uint64_t
		*offsets; /* per wrapper: where in the section its container begins */
	/* Write SIZE bytes to OUT at OFFSET. */
	kpack_error_t (*write)(void *arg, struct kp_outfile *out, uint64_t offset,
			       struct kpackx_error *why);
	void *arg;
};

/*
 * Undo: .hip_fatbin has bytes again, wrappers are HIPF and lead into it, marker and layout
 * are gone.  Where SIZE is more than the section had, it moves behind everything else.
 */
kpack_error_t kp_restore(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_restore_options *options, struct kp_outfile *out,
			 struct kpackx_error *why);

#endif
