/* SPDX-License-Identifier: MIT */
/*
 * The rules for the raw bytes of a TOC, about things that its parser does not keep: keys,
 * their order, and the metadata of entries.
 */
#ifndef PACKER_ARCHIVES_CHECK_TOC_H
#define PACKER_ARCHIVES_CHECK_TOC_H

#include "check.h"

/* Whether one flipped bit makes TEXT of KNOWN. */
bool raw_is_flipped(struct kp_span text, const char *known);

/* Check BYTES, the whole TOC, before they are parsed. */
void raw_check_toc(struct kp_span bytes, struct check_findings *out);

/*
 * Check BYTES, the metadata of an entry of TYPE that messages call ENTRY.  Returns its path if
 * it is a file of a database; data NULL: it is not.
 */
struct kp_span raw_check_meta(struct kp_span bytes, struct kp_span type,
			      const char *entry, struct check_findings *out);

#endif
