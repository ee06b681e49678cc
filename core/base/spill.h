/* SPDX-License-Identifier: MIT */
/*
 * Decoded bytes on disk instead of in memory: files without a name, which the file system
 * frees when they are closed.  Nobody else can open them, so they never become shorter,
 * and may be mapped.
 */
#ifndef KP_CORE_BASE_SPILL_H
#define KP_CORE_BASE_SPILL_H

#include <stdbool.h>
#include <stdint.h>
#include "file.h"

/* Runs of fewer bytes are held in memory. */
#define KP_SPILL_MIN (UINT64_C(4) << 20)

/*
 * Let the program spill into the directory open at DIR, which stays open; -1: spill
 * nothing, as initially.  To be called while no other thread decodes.
 */
void kp_spill_into(int dir);

/* Whether SIZE bytes are to be spilled. */
bool kp_spills(uint64_t size);

/* Make a file to spill into; -1: not possible, so the bytes belong into memory. */
int kp_spill_open(void);
/* FD, such a file, to write to; the caller closes it. */
struct kp_outfile kp_spill_outfile(int fd);

/*
 * Give FD, such a file, SIZE bytes for which there is room, before it is mapped: the access
 * to a mapped byte without room ends the program.  0, or errno.
 */
int kp_spill_reserve(int fd, uint64_t size);

#endif
