/* SPDX-License-Identifier: MIT */
/* The debugging information that kpack thin removes, in files that debuggers find. */
#ifndef PACKER_THIN_DEBUG_FILES_H
#define PACKER_THIN_DEBUG_FILES_H

#include <pthread.h>
#include "core/base/file.h"

struct debug_files {
	const char *dir; /* files are DIR/.build-id/XX/REST.debug; NULL: none are made */
	pthread_mutex_t lock; /* guards everything below */
	size_t n_files;       /* that were written or existed */
};

/* The code objects of one file. */
struct debug_objects {
	struct debug_files *files;
	size_t n_nameless; /* those without a build ID, which keep what they have */
};

kpack_error_t debug_files_open(struct debug_files *d, const char *dir,
			       struct kpackx_error *why);

/*
 * For kp_selection, with struct debug_objects as ARG: write the debugging information of
 * OBJECT, which loses it.  An object without a build ID keeps it.
 */
kpack_error_t debug_files_add(void *arg, const struct kp_source *object, bool written,
			      bool *keep, struct kpackx_error *why);

#endif
