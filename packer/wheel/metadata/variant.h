/* SPDX-License-Identifier: MIT */
/*
 * Wheel variants (PEP 825, a draft): how a target is spelled in labels and values, which have
 * only [0-9a-z_.], and the files that say which wheel is for which GPU.
 *
 * The spelling can be taken back: ":" is ".", a feature's "+" is "_on" and its "-" is "_off",
 * any other "-" is "_".  gfx90a:sramecc+:xnack- is gfx90a.sramecc_on.xnack_off, and
 * gfx9-4-generic is gfx9_4_generic.
 */
#ifndef PACKER_WHEEL_METADATA_VARIANT_H
#define PACKER_WHEEL_METADATA_VARIANT_H

#include "core/base/errors.h"
#include "core/target/target.h"

/* Each of two signs becomes up to four characters. */
#define VARIANT_TEXT_MAX (KP_TARGET_TEXT_MAX + 8)

/* false: ARCH has characters that could not be taken back (capitals, "_", "."). */
bool variant_escape(const char *arch, char out[VARIANT_TEXT_MAX]);
/* false: VALUE is no such spelling. */
bool variant_unescape(const char *value, char out[KP_TARGET_TEXT_MAX]);

/* May TEXT be a label?  "null" is reserved. */
bool variant_label_ok(const char *text);

/* One variant: its label, and the targets whose GPUs it is for, escaped. */
struct variant {
	const char *label;
	const char *const *values;
	size_t n_values;
};

/*
 * The text of variant.json of a wheel, for one variant, and of the index's file, for all of a
 * version.  The caller frees *OUT.  NOT_IMPLEMENTED: built without jansson.
 */
kpack_error_t variant_json(const struct variant *variants, size_t n, char **out,
			   struct kpackx_error *why);

#endif
