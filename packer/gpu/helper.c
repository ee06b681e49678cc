/* SPDX-License-Identifier: MIT */
#include "helper.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

#define NAME "libkpack_hip.so"

/* From the program's directory: as built, and as installed. */
static const char *const places[] = {"", "/../libexec/kpackfs", "/../lib/kpackfs",
				     "/../lib64/kpackfs"};

char *helper_find(void)
{
	char *program = below_real("/proc/self/exe");
	char *found = NULL;
	int error = ENOENT;

	if (!program)
		return NULL;
	*strrchr(program, '/') = '\0';
	for (size_t i = 0; i < KP_COUNT(places) && !found; i++) {
		char *path = xasprintf("%s%s/" NAME, program, places[i]);

		if (below_access(path, R_OK) == 0)
			found = below_real(path);
		if (!found && errno != ENOENT && errno != ENOTDIR && error == ENOENT)
			error = errno;
		free(path);
	}
	free(program);
	if (!found)
		errno = error;
	return found;
}
