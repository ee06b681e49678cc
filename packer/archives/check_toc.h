/* SPDX-License-Identifier: MIT */
/*
 * The rules of a table of contents as it stands in the file, of which its parser keeps
 * nothing: keys, their order, and what entries say beside their bytes.
 */
#ifndef PACKER_ARCHIVES_CHECK_TOC_H
#define PACKER_ARCHIVES_CHECK_TOC_H

#include "check.h"

/* BYTES of all the table, before they are parsed. */
void raw_check_toc(struct kp_span bytes, struct check_findings *out);

/* BYTES of the metadata of ENTRY, the name that messages use. */
void raw_check_meta(struct kp_span bytes, const char *entry, struct check_findings *out);

#endif
