/* SPDX-License-Identifier: MIT */
/*
 * Fat binary -> host-only binary, and back.
 *
 * Converting removes .hip_fatbin from the file (the section stays, NOBITS, at its
 * address), maps a marker in a read-only segment of its own, or, if the file would become
 * longer, in the place of .hip_fatbin, and makes every wrapper point to the marker: magic
 * HIPF -> HIPK, reserved1 = wrapper index.  No virtual address changes.  Bytes that no
 * section and no program header names keep their offset.  The file becomes longer only if
 * it keeps its device code.  The section .rocm_kpack_layout, which is not loaded, stores the facts that
 * restoring needs.
 *
 * In a PE these are .hip_fat, and .kpackrf and .kpackrc, which are behind all sections; the device
 * code's section stays in memory, as zeros.
 *
 * All calls read the input at FD, which may be replaced by a rename but must not change,
 * and write to an outfile that the caller has opened and will publish; on failure its
 * contents are unusable.  Unchanged bytes are copied from file to file without passing
 * through memory if the system supports it.
 *
 * Errors of all calls: NOT_IMPLEMENTED: the file cannot be changed safely, with the
 * reason as text; INVALID_FORMAT: its tables contradict each other; IO_ERROR;
 * OUT_OF_MEMORY.
 */
#ifndef KP_CORE_HOST_CONVERT_H
#define KP_CORE_HOST_CONVERT_H

#include "host_fatbin.h"

/*
 * Make the content of .rocm_kpack_layout for a planned file that will have the N MOVES, which
 * are ascending in FROM and have no bytes in common.  Called for each plan, because the size of
 * the result, which is borrowed until the next call, may change the plan.
 */
typedef kpack_error_t kp_convert_recipe_fn(void *arg, const struct kp_move *moves,
					   size_t n, struct kp_span *out,
					   struct kpackx_error *why);

struct kp_convert_options {
	struct kp_span marker;        /* content of .rocm_kpack_ref (kp_marker_write) */
	kp_convert_recipe_fn *recipe; /* NULL: no section .rocm_kpack_layout */
	void *recipe_arg;
	bool keep_device_code; /* keep .hip_fatbin; wrappers point to the marker */
	bool drop_signature;   /* of a PE, which is refused otherwise */
};

/*
 * Succeed if FAT can be converted with OPTIONS, whose marker and recipe are not needed yet.
 * NOT_IMPLEMENTED, with the reason: not kind HOST; an unsupported machine or ELF type; no
 * wrapper; some wrappers already converted; segments would have to move in memory; the
 * file would become longer.
 */
kpack_error_t kp_convert_check(int fd, uint64_t size, const struct kp_fatbin *fat,
			       const struct kp_convert_options *options,
			       struct kpackx_error *why);

/* Write the converted form of FAT (kind HOST, open at FD with SIZE bytes) to OUT. */
kpack_error_t kp_convert(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_convert_options *options, struct kp_outfile *out,
			 struct kpackx_error *why);

/*
 * Rewrite a converted file with another marker, which may have another size; OPTIONS without
 * `recipe` leave .rocm_kpack_layout as it is.
 */
kpack_error_t kp_convert_set(int fd, uint64_t size, const struct kp_fatbin *fat,
			     const struct kp_convert_options *options,
			     struct kp_outfile *out, struct kpackx_error *why);

/*
 * Whether the ELF file at FD, converted or not, is a program, which the kernel starts; and
 * whether its program headers are where the ELF header in memory says, which is where
 * Linux before 5.18 looks for those of programs.
 */
kpack_error_t kp_convert_headers(int fd, uint64_t size, bool *program, bool *right,
				 struct kpackx_error *why);

/*
 * Rewrite a converted file so that the program headers are where the ELF header in memory
 * says (first segment's address - its offset + e_phoff); strip and similar tools can move
 * them elsewhere.  *CHANGED becomes false, and nothing is written, if the
 * headers already exist.
 */
kpack_error_t kp_convert_normalise(int fd, uint64_t size, const struct kp_fatbin *fat,
				   struct kp_outfile *out, bool *changed,
				   struct kpackx_error *why);

/* Write the contents of .hip_fatbin to OUT at OFFSET. */
typedef kpack_error_t kp_convert_fill_fn(void *arg, struct kp_outfile *out,
					 uint64_t offset, struct kpackx_error *why);

/* The contents to put into .hip_fatbin. */
struct kp_restore_options {
	uint64_t size;           /* bytes; kp_restore: as many as there were */
	const uint64_t *offsets; /* per wrapper: offset of its container in the section */
	kp_convert_fill_fn *write; /* SIZE bytes */
	void *arg;
	bool drop_signature; /* as in struct kp_convert_options */
};

/*
 * Undo a conversion: fill .hip_fatbin, make the wrappers HIPF and point them into it, and
 * remove the marker and the layout.  NOT_IMPLEMENTED also: something else has taken the
 * section's addresses.
 */
kpack_error_t kp_restore(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_restore_options *options, struct kp_outfile *out,
			 struct kpackx_error *why);

/*
 * Replace the contents of .hip_fatbin of FAT (kind HOST) by fewer bytes: the section
 * becomes smaller, and the file with it: it gets *AFTER bytes.  The wrappers stay HIPF and
 * point to OPTIONS' offsets.  Everything else keeps its address.  OUT NULL: only find *AFTER,
 * or why it cannot be done.
 * NOT_IMPLEMENTED also: OPTIONS has more bytes than the section; a pointer other than the
 * wrappers' leads into the section.
 */
kpack_error_t kp_refill(int fd, uint64_t size, const struct kp_fatbin *fat,
			const struct kp_restore_options *options, struct kp_outfile *out,
			uint64_t *after, struct kpackx_error *why);

/*
 * Objects that are linked later (.o, members of static libraries) with less device code:
 * relocatable.c.
 */

struct kp_relocatable_fill {
	uint64_t offset; /* of the section with the device code, in the object */
	uint64_t size;   /* the bytes that it has, and... */
	uint64_t rest;   /* ... that it gets */
	/* The containers in the section: where they begin, and where they will begin. */
	const uint64_t *from, *to; /* both ascending */
	size_t n;
};

/* The changed object. */
struct kp_relocatable {
	uint64_t before; /* bytes of the object before the section, and after it */
	uint64_t after;
	uint8_t *bytes; /* both, one after the other, changed; owned */
	uint64_t size;  /* of the new object; zeros follow the section's contents */
};

/*
 * Replace the contents of a section of the 64-bit little-endian relocatable object SRC by
 * fewer bytes.  Sections after it move up, as far as alignments allow, and symbols
 * and relocations that lead to a container follow it.
 * NOT_IMPLEMENTED: something leads into the middle of a container; another section shares
 * bytes with the section; the host's part of the object has more than 256 MiB; nothing
 * would be saved.  INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_relocatable_refill(const struct kp_source *src,
				    const struct kp_relocatable_fill *fill,
				    struct kp_relocatable *out, struct kpackx_error *why);
void kp_relocatable_fini(struct kp_relocatable *r);

#endif
