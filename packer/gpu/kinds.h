/* SPDX-License-Identifier: MIT */
/* Kinds of GPUs: those of this machine, or chosen ones. */
#ifndef PACKER_GPU_KINDS_H
#define PACKER_GPU_KINDS_H

#include "hierarchy.h"
#include "core/target/choice.h"

struct gpu_kind {
	struct kp_target target;
	char arch[KP_TARGET_TEXT_MAX];
	const struct gpu_subfamily *subfamily; /* NULL: unknown */
};

struct gpu_kinds {
	struct gpu_kind *items; /* all different, in the order of their nodes */
	size_t count, cap;
	bool find; /* by gpu_kinds_parse: the GPUs of this machine are to be added */
};

/* Add T unless it already exists. */
void gpu_kinds_add(struct gpu_kinds *kinds, const struct kp_target *t);

/* Add the targets of LIST, which may have "auto" (kp_choice_add).  INVALID_ARGUMENT. */
kpack_error_t gpu_kinds_parse(struct gpu_kinds *kinds, const char *list,
			      struct kpackx_error *why);
void gpu_kinds_fini(struct gpu_kinds *kinds);

/* The generic target that covers KIND, or NULL. */
const char *gpu_kind_generic(const struct gpu_kind *kind);

#endif
