/* SPDX-License-Identifier: MIT */
/*
 * The optional libraries that wheels need: libzip for the container, libcrypto for the
 * hashes in RECORD, zlib to compress ahead of libzip.  If one is missing, only
 * wheels_built is built.
 */
#ifndef PACKER_WHEEL_ZIP_BUILT_H
#define PACKER_WHEEL_ZIP_BUILT_H

#include <stdbool.h>

#define WHEELS_BUILT (KP_WITH_ZIP && KP_WITH_OPENSSL && KP_WITH_ZLIB)

/*
 * True if wheels are supported; else reports "not built: ...", and the exit status is 2.
 */
bool wheels_built(const char *command);

#endif
