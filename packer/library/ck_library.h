/* SPDX-License-Identifier: MIT */
/* MIOpen's Composable Kernel libraries: a fat host library for each GPU. */
#ifndef PACKER_LIBRARY_MIOPEN_CK_LIBRARY_H
#define PACKER_LIBRARY_MIOPEN_CK_LIBRARY_H

#include "library.h"

struct ck_library_name {
	char arch[KP_TARGET_TEXT_MAX]; /* canonical */
	struct kp_span variant;        /* "gfx1250-strict"; or empty */
};

/* Whether NAME is such a library's: [lib]MIOpenCK<word>_<arch>.so, .so.1 or .dll. */
bool ck_library_name(struct kp_span name, struct ck_library_name *out);

/*
 * Describe the file if it really is a library.  It is stored whole, with its code inside,
 * because MIOpen loads the library of its GPU with dlopen.  If the code is for other GPUs
 * than NAME says, or cannot be read, OUT gets a warning.
 */
kpack_error_t ck_library_check(const struct library_question *q,
			       const struct ck_library_name *name, bool *mine,
			       struct library_object *out, struct kpackx_error *why);

#endif
