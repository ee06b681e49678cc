/* SPDX-License-Identifier: MIT */
/* dpkg's list of installed packages, and what a GPU lacks of them. */
#include "packer/gpu/installed.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_choice gpus = {0};
	struct gpu_installed list;

	assert(!kp_choice_add(&gpus, "gfx1100,gfx90a:xnack+", NULL));
	gpu_installed_parse((struct kp_span){data, size}, &list);
	for (size_t i = 0; i < list.count; i++) {
		char *name = gpu_installed_lacks(&list, &list.items[i], &gpus.gpus[0]);

		/* an output that is put into command lines */
		assert(!strpbrk(list.items[i].name, " \n\t;$`'\"\\"));
		assert(!name || strncmp(name, list.items[i].name,
					strlen(list.items[i].name)) == 0);
		assert(!name || !gpu_installed_serves(&list.items[i], &gpus) ||
		       !list.items[i].base);
		free(name);
	}
	gpu_installed_fini(&list);
	kp_choice_fini(&gpus);
	return 0;
}
