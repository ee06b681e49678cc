/* SPDX-License-Identifier: MIT */
/* The loader's environment variables; kpack.h says what each variable means. */
#ifndef KP_CORE_LOADER_ENVIRONMENT_H
#define KP_CORE_LOADER_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"

/* A list of files and directories. */
struct kp_path_list {
	char *text;  /* the paths, each followed by a NUL */
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

/* Return the path after PATH, or the first one if PATH is NULL; NULL after the last. */
const char *kp_path_list_next(const struct kp_path_list *list, const char *path);

#endif
