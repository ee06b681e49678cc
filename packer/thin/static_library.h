/* SPDX-License-Identifier: MIT */
/*
 * Static libraries whose members are objects with device code (.hip_fatbin), which programs
 * get when they are linked.
 */
#ifndef PACKER_THIN_STATIC_LIBRARY_H
#define PACKER_THIN_STATIC_LIBRARY_H

#include "core/restore/selection.h"

/* Whether FAT, found by kp_fatbin_nest, is a static library. */
bool static_library_is(const struct kp_fatbin *fat);

/* Whether IMAGE of the library is in a member's section, from which it can be removed. */
bool static_library_has(const struct kp_fatbin *fat, size_t image);

/* How a library is written. */
struct static_library {
	const struct kp_fatbin *fat;
	const struct kp_selection *selection; /* GONE is for the images of FAT */
	/* Open a nameless file for the contents of a section. */
	kpack_error_t (*scratch)(void *arg, struct kp_outfile *out,
				 struct kpackx_error *why);
	void *arg;
};

/*
 * Write the library to OUT, which is empty; OUT NULL: only count.  *SIZE becomes its size.
 * Members keep their headers and order, and the index of symbols stays right.
 * Errors of kp_selection_write, kp_relocatable_refill and kp_ar_rewrite, which name the
 * member.
 */
kpack_error_t static_library_write(const struct static_library *library,
				   struct kp_outfile *out, uint64_t *size,
				   struct kpackx_error *why);

/* Whether static_library_write would change something. */
kpack_error_t static_library_changes(const struct static_library *library, bool *changes,
				     struct kpackx_error *why);

#endif
