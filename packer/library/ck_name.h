/* SPDX-License-Identifier: MIT */
/* Target IDs at the end of the names of Composable Kernel libraries. */
#ifndef PACKER_LIBRARY_MIOPEN_CK_NAME_H
#define PACKER_LIBRARY_MIOPEN_CK_NAME_H

#include "core/target/target.h"

/*
 * Read TEXT as a target ID in any spelling in use: gfx942, gfx90a-xnack+, gfx90a:xnack-,
 * and CMake's spellings gfx90a_xnackp, gfx90a_sramecc__xnack_, gfx11_generic,
 * gfx1250_strict.  *VARIANT: TEXT names a stepping, and OUT is its processor.  false: not
 * a target ID.
 */
bool ck_target(struct kp_span text, char out[KP_TARGET_TEXT_MAX], bool *variant);

#endif
