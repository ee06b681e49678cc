/* SPDX-License-Identifier: MIT */
/* The loader's environment variables; kpack.h says what each variable means. */
#ifndef KP_CORE_LOADER_ENVIRONMENT_H
#define KP_CORE_LOADER_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"

/* A list of files and directories. */
struct kp_path_list {
	char *text;  /* what was between colons, each followed by a NUL; may be empty */
	size_t size; /* bytes of TEXT; 0: no path */
};

struct kp_environment {
	struct kp_path_list instead; /* ROCM_KPACK_PATH */
	struct kp_path_list before;  /* ROCM_KPACK_PATH_PREFIX */
	bool disabled;               /* ROCM_KPACK_DISABLE */
	bool strict;                 /* ROCM_KPACK_STRICT */
	bool trace;                  /* ROCM_KPACK_DEBUG */
};

/* Read the variables; in a set-user-ID program they are ignored.  OUT_OF_MEMORY. */
kpack_error_t kp_environment_read(struct kp_environment *out, struct kpackx_error *why);
void kp_environment_fini(struct kp_environment *e); /* accepts a zeroed one */

/*
 * Get the next path from *AT on, which begins as 0, and move *AT past it; the caller frees
 * *OUT.  NULL: there is none.  A member that names no file is joined with the next ones,
 * with the colons between them, if the whole names one.  OUT_OF_MEMORY.
 */
kpack_error_t kp_path_list_next(const struct kp_path_list *list, size_t *at, char **out,
				struct kpackx_error *why);

#endif
