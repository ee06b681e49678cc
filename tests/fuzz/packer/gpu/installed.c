/* SPDX-License-Identifier: MIT */
/* dpkg's list of installed packages, and what a GPU lacks of them. */
#include "packer/gpu/installed.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpu_kinds kinds = {0};
	struct gpu_installed list;

	assert(!gpu_kinds_parse(&kinds, "gfx1100,gfx90a:xnack+", NULL));
	gpu_installed_parse((struct kp_span){data, size}, &list);
	for (size_t i = 0; i < list.count; i++) {
		char *name = gpu_installed_lacks(&list, &list.items[i], &kinds.items[0]);

		/* an output that is put into command lines */
		assert(!strpbrk(list.items[i].name, " \n\t;$`'\"\\"));
		assert(!name || strncmp(name, list.items[i].name,
					strlen(list.items[i].name)) == 0);
		assert(!name || !gpu_installed_serves(&list.items[i], &kinds) ||
		       !list.items[i].base);
		free(name);
	}
	gpu_installed_fini(&list);
	gpu_kinds_fini(&kinds);
	return 0;
}
