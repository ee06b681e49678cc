/* SPDX-License-Identifier: MIT */
/*
 * What wheels need of optional libraries: libzip for the container, libcrypto for the hashes
 * in RECORD, zlib to compress ahead of libzip.  Without one of them only wheels_built is there.
 */
#ifndef PACKER_WHEEL_ZIP_BUILT_H
#define PACKER_WHEEL_ZIP_BUILT_H

#include <stdbool.h>

#define WHEELS_BUILT (KP_WITH_ZIP && KP_WITH_OPENSSL && KP_WITH_ZLIB)

/* Can wheels be worked on?  If not, says so ("not built: ..."); the exit status is 2. */
bool wheels_built(const char *command);

#endif
