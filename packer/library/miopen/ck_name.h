/* SPDX-License-Identifier: MIT */
/* GPUs at the end of names of Composable Kernel's libraries. */
#ifndef PACKER_LIBRARY_MIOPEN_CK_NAME_H
#define PACKER_LIBRARY_MIOPEN_CK_NAME_H

#include "core/target/target.h"

/*
 * The target ID that TEXT is, in any of the spellings in the field: gfx942, gfx90a-xnack+,
 * gfx90a:xnack-, and those of CMake, gfx90a_xnackp, gfx90a_sramecc__xnack_, gfx11_generic,
 * gfx1250_strict.  *VARIANT: it is a stepping, and OUT its processor.  false: it is none.
 */
bool ck_target(struct kp_span text, char out[KP_TARGET_TEXT_MAX], bool *variant);

#endif
