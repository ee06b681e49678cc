/* SPDX-License-Identifier: MIT */
/* The text of a policy. */
#include "packer/thin/policy.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct policy p = {0};

	if (policy_parse((struct kp_span){data, size}, &p, &why)) {
		assert(why.text[0]);
	} else {
		assert(p.tree && p.tree[0] == '/' && p.arch && p.n_commands);
		for (size_t i = 0; i < p.n_commands; i++) {
			const struct policy_command *c = &p.commands[i];

			assert(c->arch > 0 && c->arch + 1 < c->n_words);
			assert(strcmp(c->words[c->arch], p.arch) == 0);
			assert(strcmp(c->words[c->n_words - 1], p.tree) == 0);
		}
	}
	policy_fini(&p);
	return 0;
}
