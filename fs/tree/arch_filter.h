/* SPDX-License-Identifier: MIT */
/*
 * The selection of a mount (core/target/choice.h), with messages in the log.
 */
#ifndef FS_TREE_ARCH_FILTER_H
#define FS_TREE_ARCH_FILTER_H

#include "core/target/choice.h"

struct kpack_archive;

/* Add LIST (kp_choice_add).  false: LIST is wrong, or no memory; logged. */
bool arches_add(struct kp_choice *s, const char *list);

/*
 * If "auto" was added and "all" was not, add the GPUs of TOPOLOGY (see kp_gpus_read).
 * Logs a warning when it has no GPU, and for each part that makes no sense.  false: no
 * memory.
 */
bool arches_find(struct kp_choice *s, const char *topology);

/*
 * Log a warning for each named target ID for which no archive has a file: it may be a
 * typing error.  Target IDs that suit every GPU are not checked.
 */
void arches_warn(const struct kp_choice *s, struct kpack_archive *const *archives,
		 size_t count);

/* The target IDs, with SEPARATORs, or "all"; NULL: there is none, or no memory. */
char *arches_line_new(const struct kp_choice *s, const char *separator);

#endif
