/* SPDX-License-Identifier: MIT */
#include "tree_name.h"
#include <string.h>
#include "core/target/target.h"

size_t tree_component_size(const char *name)
{
	size_t size = strlen(name), generic = strlen("_" KP_ARCH_GENERIC), last = 0;

	if (size > generic && strcmp(name + size - generic, "_" KP_ARCH_GENERIC) == 0)
		return size - generic;
	for (size_t i = 1; i + 4 < size; i++)
		if (strncmp(name + i, "_gfx", 4) == 0 && name[i + 4] >= '0' &&
		    name[i + 4] <= '9')
			last = i;
	return last;
}
