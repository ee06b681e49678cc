/* SPDX-License-Identifier: MIT */
/* MIOpen's libraries of Composable Kernel: a fat host library for each GPU. */
#ifndef PACKER_LIBRARY_MIOPEN_CK_LIBRARY_H
#define PACKER_LIBRARY_MIOPEN_CK_LIBRARY_H

#include "packer/library/library.h"

struct ck_library_name {
	char arch[KP_TARGET_TEXT_MAX]; /* canonical */
	struct kp_span variant;        /* "gfx1250-strict"; or empty */
};

/* Is NAME one: [lib]MIOpenCK<word>_<arch>.so, .so.1 or .dll? */
bool ck_library_name(struct kp_span name, struct ck_library_name *out);

/*
 * Describe the file, when it really is a library.  It stays whole, its code inside: MIOpen loads
 * the one of its GPU with dlopen.  That the code is for other GPUs than NAME says, or that it
 * cannot be read, is a warning.
 */
kpack_error_t ck_library_check(const struct library_question *q,
			       const struct ck_library_name *name, bool *mine,
			       struct library_object *out, struct kpackx_error *why);

#endif
