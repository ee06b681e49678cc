/* SPDX-License-Identifier: MIT */
/* Large heap blocks in huge pages: a table of 74 MB would else cost 18,000 page faults. */
#ifndef KP_MEMORY_H
#define KP_MEMORY_H

#include <stddef.h>

/* malloc; freed with free.  Pages that are never touched cost nothing. */
void *kp_large_alloc(size_t size);

/* Give back what lies behind SIZE bytes; returns the block, which may have moved. */
void *kp_large_trim(void *block, size_t size);

#endif
