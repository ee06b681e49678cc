/* SPDX-License-Identifier: MIT */
/*
 * Make something other than a regular file under a name that may exist already: it is
 * made under a temporary name, then renamed.
 */
#ifndef PACKER_FILES_REPLACE_H
#define PACKER_FILES_REPLACE_H

#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/file.h"

struct place {
	int dir_fd;
	const char *name;                 /* inside the path */
	char tmp_name[KP_TEMP_NAME_SIZE]; /* MAKE makes it under this name */
};

/* For MAKE: give the file that is being written at OUT the temporary name, too. */
int place_outfile(const struct place *p, const struct kp_outfile *out);
/* For MAKE: get the lstat of the file that will be replaced. */
int place_lstat(const struct place *p, struct stat *st);

/*
 * Call MAKE, which returns 0, or -1 and errno; after EEXIST it is called again with
 * another name.  Then rename its result to PATH.  DURABLE: also flush the directory.  On
 * failure WHY has the errno.
 */
kpack_error_t place(const char *path, int (*make)(const struct place *p, void *arg),
		    void *arg, bool durable, struct kpackx_error *why);

#endif
