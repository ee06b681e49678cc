/* SPDX-License-Identifier: MIT */
/* The configuration file of kpack recombine. */
#include "packer/trees/recombine_config.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recombine_config config;
	struct kpackx_error why = {0};

	if (recombine_config_parse((struct kp_span){data, size}, &config, &why)) {
		assert(why.code != KPACK_SUCCESS && why.text[0]);
	} else {
		assert(config.primary && config.primary[0] && config.n_groups > 0);
		for (size_t i = 0; i < config.n_groups; i++)
			assert(config.groups[i].name && config.groups[i].n_arches > 0);
	}
	recombine_config_fini(&config);
	return 0;
}
