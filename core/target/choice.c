/* SPDX-License-Identifier: MIT */
/*
 * A choice grows in two steps.  The list that the user gave names GPUs, "all" (everything is
 * chosen) or "auto" (whoever asks then finds this machine's GPUs, and adds them).  So the first
 * NAMED members are the user's, whose spelling is checked, and those behind them were found:
 * their names come from the driver, which may know a GPU that these tables do not.
 */
#include "choice.h"

#include <ctype.h>
#include <stdlib.h>

/* Equal GPUs are one: whoever walks over the choice makes something for each of them. */
static kpack_error_t add_gpu(struct kp_choice *s, const struct kp_target *gpu,
			     struct kpackx_error *why)
{
	struct kp_target *more;

	for (size_t i = 0; i < s->count; i++)
		if (kp_target_eq(&s->gpus[i], gpu))
			return KPACK_SUCCESS;
	more = reallocarray(s->gpus, s->count + 1, sizeof(*more));
	if (!more)
		return kp_fail_memory(why, (s->count + 1) * sizeof(*more), "GPUs");
	s->gpus = more;
	more[s->count++] = *gpu;
	return KPACK_SUCCESS;
}

kpack_error_t kp_choice_add(struct kp_choice *s, const char *list,
			    struct kpackx_error *why)
{
	struct kp_target gpu;

	for (;; list++) {
		struct kp_span name = {(const uint8_t *)list, strcspn(list, ",;")};

		s->limited = true;
		if (kp_span_is(name, "all")) {
			s->all = true;
		} else if (kp_span_is(name, "auto")) {
			s->find = true;
		} else {
			KP_TRY(kp_target_parse(name, &gpu, why));
			KP_TRY(add_gpu(s, &gpu, why));
		}
		s->named = s->count;
		list += name.size;
		if (!*list)
			return KPACK_SUCCESS;
	}
}

bool kp_arch_is_cuda(const char *arch)
{
	size_t n = strncmp(arch, "sm_", 3) == 0        ? 3
		   : strncmp(arch, "compute_", 8) == 0 ? 8
						       : 0;

	return n && isdigit((unsigned char)arch[n]);
}

kpack_error_t kp_choice_check(const struct kp_choice *s, enum kp_choice_names names,
			      struct kpackx_error *why)
{
	bool arches = names == KP_CHOICE_ARCHES;

	for (size_t i = 0; i < (arches ? s->named : s->count); i++) {
		const char *name = s->gpus[i].processor;
		bool cuda = kp_arch_is_cuda(name);

		if (s->gpus[i].known ||
		    (arches && (cuda || strcmp(name, KP_ARCH_GENERIC) == 0 ||
				strcmp(name, KP_ARCH_SPIRV) == 0)))
			continue;
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       cuda ? "%s is for CUDA code; this is for AMD GPUs"
				    : "unknown GPU %s",
			       name);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_choice_add_found(struct kp_choice *s, const struct kp_gpus *gpus,
				  struct kpackx_error *why)
{
	for (size_t i = 0; i < gpus->count; i++)
		KP_TRY(add_gpu(s, &gpus->list[i].target, why));
	return KPACK_SUCCESS;
}

bool kp_choice_is_all(const struct kp_choice *s)
{
	return !s->limited || s->all;
}

bool kp_choice_takes(const struct kp_choice *s, size_t gpu, const struct kp_target *code)
{
	return kp_target_neutral(code) ||
	       (s->exact ? kp_target_eq(&s->gpus[gpu], code)
			 : kp_target_loadable(&s->gpus[gpu], code));
}

bool kp_choice_has(const struct kp_choice *s, struct kp_span arch)
{
	struct kp_target code;

	if (kp_choice_is_all(s))
		return true;
	/* only a damaged archive has such an architecture, and nothing can load it */
	if (kp_target_parse(arch, &code, NULL))
		return false;
	if (kp_target_neutral(&code))
		return true;
	for (size_t i = 0; i < s->count; i++)
		if (kp_choice_takes(s, i, &code))
			return true;
	return false;
}

void kp_choice_fini(struct kp_choice *s)
{
	free(s->gpus);
	*s = (struct kp_choice){0};
}
