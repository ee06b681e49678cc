/* SPDX-License-Identifier: MIT */
/*
 * Wheel variants (PEP 825, a draft): the spelling of targets in labels and values, which
 * may have only [0-9a-z_.], and the files that say which wheel is for which GPU.
 *
 * The spelling is reversible: ":" becomes ".", a feature's "+" becomes "_on" and its "-"
 * "_off", any other "-" becomes "_".  gfx90a:sramecc+:xnack- is
 * gfx90a.sramecc_on.xnack_off, and gfx9-4-generic is gfx9_4_generic.
 */
#ifndef PACKER_WHEEL_METADATA_VARIANT_H
#define PACKER_WHEEL_METADATA_VARIANT_H

#include "core/base/errors.h"
#include "core/target/target.h"

/* A target has up to two feature signs; each becomes up to four characters. */
#define VARIANT_TEXT_MAX (KP_TARGET_TEXT_MAX + 8)

/* What the files say that they follow. */
#define VARIANT_SCHEMA "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"

/* False: ARCH has characters that would not be reversible (capitals, "_", "."). */
bool variant_escape(const char *arch, char out[VARIANT_TEXT_MAX]);
/* False: VALUE is not such a spelling. */
bool variant_unescape(const char *value, char out[KP_TARGET_TEXT_MAX]);

/* True if TEXT can be a label; "null" is reserved. */
bool variant_label_ok(const char *text);

/* One variant: its label, and the targets whose GPUs it is for, escaped. */
struct variant {
	const char *label;
	const char *const *values;
	size_t n_values;
};

/*
 * Make the text of a wheel's variant.json, for one variant, or of the index's file, for
 * all variants of a version.  The caller frees the result.
 */
char *variant_json(const struct variant *variants, size_t n);

/*
 * The text of variant.json in a variant of a host wheel for N GPUs, as AMD's program writes
 * it (PEP 817, an earlier draft).  The caller frees it.
 */
char *variant_host_json(const char *const *gpus, size_t n);

#endif
