/* SPDX-License-Identifier: MIT */
/* Where libkpack_hip.so is. */
#ifndef PACKER_HIP_HELPER_H
#define PACKER_HIP_HELPER_H

/*
 * The path of the libkpack_hip.so that was built or installed with this program, on the
 * heap; NULL with errno, which is ENOENT if there is none.
 */
char *helper_find(void);

#endif
