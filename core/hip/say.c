/* SPDX-License-Identifier: MIT */
#include "say.h"
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PREFIX "kpack_hip: "

static enum say_level printed_level = SAY_MISSING;

void say_read_level(void)
{
	const char *value = secure_getenv("KPACK_HIP_DEBUG");

	if (value && *value)
		printed_level = strcmp(value, "0") == 0 ? SAY_NOTHING : SAY_ALL;
}

bool say_wants(enum say_level level)
{
	return level <= printed_level;
}

void say_line(enum say_level level, const struct kp_line *line)
{
	struct iovec parts[] = {
		{PREFIX, sizeof(PREFIX) - 1},
		{(void *)line->text, line->used},
		{"\n", 1},
	};

	/* a closed stderr is not an error */
	if (say_wants(level) && writev(STDERR_FILENO, parts, 3) < 0)
		return;
}
