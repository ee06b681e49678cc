/* SPDX-License-Identifier: MIT */
/* The generic target of a GPU. */
#include "core/rocm_kpack/kpackx.h"
#include "core/target/target.h"

static struct kp_span without_triple(struct kp_span s)
{
	static const char triple[] = "amdgcn-amd-amdhsa--";
	size_t n = sizeof(triple) - 1;

	return kp_span_starts(s, triple, n) ? (struct kp_span){s.data + n, s.size - n}
					    : s;
}

/* Change T to the generic processor NAME, which may have fewer features. */
static kpack_error_t make_generic(const char *name, struct kp_target *t)
{
	struct kp_target generic;

	KP_TRY(kp_target_parse(kp_span_str(name), &generic, NULL));
	if (generic.known && generic.known->sramecc)
		generic.sramecc = t->sramecc;
	if (generic.known && generic.known->xnack)
		generic.xnack = t->xnack;
	*t = generic;
	return KPACK_SUCCESS;
}

kpack_error_t kpackx_generic_target(const char *target, char *out, size_t out_size)
{
	char text[KP_TARGET_TEXT_MAX];
	struct kp_target t;
	const char *generic;

	if (!target || !out)
		return KPACK_ERROR_INVALID_ARGUMENT;
	KP_TRY(kp_target_parse(without_triple(kp_span_str(target)), &t, NULL));
	generic = kp_processor_generic(kp_span_str(t.processor));
	if (!generic)
		return KPACK_ERROR_ARCH_NOT_FOUND;
	KP_TRY(make_generic(generic, &t));
	kp_target_format(&t, text);
	if (strlen(text) >= out_size)
		return KPACK_ERROR_INVALID_ARGUMENT;
	memcpy(out, text, strlen(text) + 1);
	return KPACK_SUCCESS;
}
