/* SPDX-License-Identifier: MIT */
/* The text of a policy. */
#include "packer/thin/policy.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct policy p = {0};

	if (policy_parse((struct kp_span){data, size}, &p, &why)) {
		assert(why.text[0]);
	} else {
		assert(p.tree && p.tree[0] == '/' && p.arch);
		assert(p.action != POLICY_THIN || p.mount == POLICY_NO_MOUNT);
	}
	policy_fini(&p);
	return 0;
}
