/* SPDX-License-Identifier: MIT */
/*
 * Something that is no regular file being written under a name that may be taken: made
 * under a temporary name, then renamed.
 */
#ifndef PACKER_FILES_REPLACE_H
#define PACKER_FILES_REPLACE_H

#include "core/base/errors.h"
#include "core/base/file.h"

struct place {
	int dir_fd;
	const char *name;                 /* inside the path */
	char tmp_name[KP_TEMP_NAME_SIZE]; /* under which make is to make it */
};

/*
 * Call MAKE, which returns 0, or -1 and errno; EEXIST makes it be called again with another
 * name.  Then what was made takes PATH's place.  DURABLE: and the directory is
 * flushed.  The errno that it failed with is in WHY.
 */
kpack_error_t place(const char *path, int (*make)(const struct place *p, void *arg),
		    void *arg, bool durable, struct kpackx_error *why);

#endif
