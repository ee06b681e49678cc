/* SPDX-License-Identifier: MIT */
#include "kinds.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"

void gpu_kinds_add(struct gpu_kinds *kinds, const struct kp_target *t)
{
	struct gpu_kind *kind;

	for (size_t i = 0; i < kinds->count; i++)
		if (kp_target_eq(&kinds->items[i].target, t))
			return;
	xgrow(&kinds->items, kinds->count, &kinds->cap, sizeof(*kind));
	kind = &kinds->items[kinds->count++];
	*kind = (struct gpu_kind){.target = *t};
	kp_target_format(t, kind->arch);
	kind->subfamily = gpu_subfamily_of(kp_span_str(t->processor));
}

kpack_error_t gpu_kinds_parse(struct gpu_kinds *kinds, const char *list,
			      struct kpackx_error *why)
{
	struct kp_choice chosen = {0};
	kpack_error_t err = kp_choice_add(&chosen, list, why);

	if (!err && chosen.all)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "all: name GPUs");
	for (size_t i = 0; i < chosen.count && !err; i++)
		gpu_kinds_add(kinds, &chosen.gpus[i]);
	kinds->find |= chosen.find;
	kp_choice_fini(&chosen);
	return err;
}

void gpu_kinds_fini(struct gpu_kinds *kinds)
{
	free(kinds->items);
	*kinds = (struct gpu_kinds){0};
}

const char *gpu_kind_generic(const struct gpu_kind *kind)
{
	return kp_processor_generic(kp_span_str(kind->target.processor));
}
