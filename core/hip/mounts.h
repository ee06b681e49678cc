/* SPDX-License-Identifier: MIT */
/*
 * Mounts of kpackfs that show bundles (-o bundles) of the same archives: a bundle is then
 * mapped from there, which decodes an object when it is first read, once for all programs.
 */
#ifndef KP_HIP_MOUNTS_H
#define KP_HIP_MOUNTS_H

#include "parts.h"

/*
 * Map the bundle of wrapper INDEX of B that has every part of P.  Only mounts of root's or
 * of this process's user are used, that list the parts' very archives and no conflicts.
 * false: there is none.
 */
bool mounts_map(struct binary *b, const struct parts *p, uint32_t index, void **at,
		size_t *size);

#endif
