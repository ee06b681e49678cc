/* SPDX-License-Identifier: MIT */
#include "volume.h"
#include <stdio.h>
#include <stdlib.h>

char *volume_file_name(const char *group, unsigned number, const char *stem)
{
	char part[16] = "", *file;

	if (number > 1)
		snprintf(part, sizeof(part), ".%u", number);
	return asprintf(&file, "%s%s%s.kpack", group, part, stem) < 0 ? NULL : file;
}

void volume_fini(struct volume *v)
{
	kp_store_fini(&v->store);
	free(v->file);
}
