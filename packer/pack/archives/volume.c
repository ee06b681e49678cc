/* SPDX-License-Identifier: MIT */
#include "volume.h"
#include <stdio.h>
#include <stdlib.h>

static const char suffix[] = ".kpack";

char *volume_file_name(const char *group, unsigned number, const char *stem)
{
	char part[16] = "", *file;

	if (number > 1)
		snprintf(part, sizeof(part), ".%u", number);
	return asprintf(&file, "%s%s%s.kpack", group, part, stem) < 0 ? NULL : file;
}

bool volume_split_name(const char *name, const char *group, unsigned *number,
		       struct kp_span *stem)
{
	size_t n = strlen(group), size = strlen(name);
	unsigned long long volume = 1;
	char *end;

	if (size < n + sizeof(suffix) || strncmp(name, group, n) != 0 ||
	    strcmp(name + size - sizeof(suffix) + 1, suffix) != 0)
		return false;
	if (name[n] == '.') {
		if (name[n + 1] < '1' || name[n + 1] > '9')
			return false;
		volume = strtoull(name + n + 1, &end, 10);
		if (volume < 2 || volume > UINT32_MAX)
			return false;
		n = (size_t)(end - name);
	}
	if (name[n] != '_' && name[n] != '-')
		return false;
	*number = (unsigned)volume;
	*stem = (struct kp_span){(const uint8_t *)name + n,
				 size - n - sizeof(suffix) + 1};
	return true;
}

void volume_fini(struct volume *v)
{
	kp_store_fini(&v->store);
	free(v->file);
}
