/* SPDX-License-Identifier: MIT */
/*
 * The code that a list of GPUs chooses, wherever a user gives one: --arch of the programs,
 * --gpu-targets, -o arch= of a mount.
 *
 * A GPU chooses all code that it can load (kp_target_fit), also code that it would load
 * only if there were nothing better: one binary may have a better object for some of its
 * sources only.  An exact selection chooses only the target IDs of the list.
 * Files that suit every GPU are always chosen.  CUDA's targets (sm_90, compute_90) choose
 * only themselves, and an unknown name is a GPU with no generic target.
 */
#ifndef KP_CORE_TARGET_CHOICE_H
#define KP_CORE_TARGET_CHOICE_H

#include "kfd.h"

/* Zeros: everything is chosen. */
struct kp_choice {
	struct kp_target *gpus; /* no two are equal */
	size_t count;
	size_t named; /* the first of GPUS: given by name; the rest were found */
	bool limited; /* something was added */
	bool all;     /* "all" was added, which overrides everything else */
	bool find;    /* "auto" was added: the GPUs of this machine are to be found */
	bool exact;
};

/*
 * Add LIST: target IDs, "auto" and "all", separated by commas or semicolons.
 * INVALID_ARGUMENT; OUT_OF_MEMORY.
 */
kpack_error_t kp_choice_add(struct kp_choice *s, const char *list,
			    struct kpackx_error *why);

/* What a list may name, besides the AMD GPUs of target.h's table. */
enum kp_choice_names {
	KP_CHOICE_GPUS, /* nothing */
	/* other architectures of entries: CUDA's, SPIR-V, "generic"; GPUs that were found */
	KP_CHOICE_ARCHES,
};

/* Whether ARCH is an architecture of CUDA code: sm_90, compute_90. */
bool kp_arch_is_cuda(const char *arch);

/* INVALID_ARGUMENT, "unknown GPU NAME": S has a name that is none of NAMES. */
kpack_error_t kp_choice_check(const struct kp_choice *s, enum kp_choice_names names,
			      struct kpackx_error *why);

/* Add the GPUs that were found.  OUT_OF_MEMORY. */
kpack_error_t kp_choice_add_found(struct kp_choice *s, const struct kp_gpus *gpus,
				  struct kpackx_error *why);

/* Whether S chooses everything. */
bool kp_choice_is_all(const struct kp_choice *s);

/* Whether the GPU number GPU of S chooses code for CODE. */
bool kp_choice_takes(const struct kp_choice *s, size_t gpu, const struct kp_target *code);

/* Whether S chooses the architecture ARCH.  What is no target ID is never chosen. */
bool kp_choice_has(const struct kp_choice *s, struct kp_span arch);

void kp_choice_fini(struct kp_choice *s);

#endif
