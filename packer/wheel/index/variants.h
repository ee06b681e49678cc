/* SPDX-License-Identifier: MIT */
/* The index's file on the variants of a version (PEP 825): all wheels' variant.json in one. */
#ifndef PACKER_WHEEL_INDEX_VARIANTS_H
#define PACKER_WHEEL_INDEX_VARIANTS_H

#include "wheel.h"

/*
 * WHEELS are those of one version.  *TEXT, the caller's to free, is NULL when none of them is
 * a variant.  INVALID_FORMAT: a variant.json is malformed, has not its wheel's label, or two
 * say different things of one label or of priorities.  NOT_IMPLEMENTED: there are variants,
 * and this was built without jansson.
 */
kpack_error_t index_variants(const struct index_wheel *const *wheels, size_t count,
			     char **text, struct kpackx_error *why);

#endif
