/* SPDX-License-Identifier: MIT */
/*
 * The index's file of a version's variants (PEP 825): it joins the wheels' variant.json.
 */
#ifndef PACKER_WHEEL_INDEX_VARIANTS_H
#define PACKER_WHEEL_INDEX_VARIANTS_H

#include "index_wheel.h"

/*
 * Make the file for WHEELS, the wheels of one version.  The caller frees *TEXT, which is
 * NULL if none of them is a variant.  The variant of a host wheel that AMD's program writes
 * has no meaning for this file, and is left out.  INVALID_FORMAT: a variant.json is malformed or
 * lacks its wheel's label, or two contradict each other about a label or about
 * priorities.
 */
kpack_error_t index_variants(const struct index_wheel *const *wheels, size_t count,
			     char **text, struct kpackx_error *why);

#endif
