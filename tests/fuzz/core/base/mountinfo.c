/* SPDX-License-Identifier: MIT */
/* Any line as one of /proc/self/mountinfo: all texts end inside it. */
#include "core/base/mountinfo.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	struct kp_mount m;
	uid_t user;

	assert(line);
	memcpy(line, data, size);
	line[size] = '\0';
	if (kp_mount_parse(line, &m)) {
		const char *texts[] = {m.root, m.path, m.type, m.source, m.options};

		assert(m.id >= 0);
		for (int i = 0; i < 5; i++)
			assert(texts[i] > line &&
			       texts[i] + strlen(texts[i]) <= line + size);
		if (kp_mount_fuse_user(&m, &user))
			assert(strncmp(m.type, "fuse", 4) == 0);
	}
	free(line);
	return 0;
}
