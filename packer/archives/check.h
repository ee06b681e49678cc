/* SPDX-License-Identifier: MIT */
/*
 * The rules of an archive that opening it does not check: layout, table of
 * contents, frames, metadata, names.
 *
 * A fault is something that one of the existing readers (AMD's C++ and Python readers,
 * HRX, ours) would misread or refuse.  A note is a violation of a rule that only our
 * writer keeps.
 */
#ifndef PACKER_ARCHIVES_CHECK_H
#define PACKER_ARCHIVES_CHECK_H

#include "core/archive/archive.h"
#include "core/base/errors.h"

struct check_findings {
	struct kp_faults faults, notes; /* .refused means nothing here */
};

/* Check all but the content of the entries.  The caller frees OUT with check_fini. */
void check_archive(struct kpack_archive *a, struct check_findings *out);
void check_fini(struct check_findings *findings);

/* Whether one flipped bit makes TEXT of KNOWN. */
bool check_is_flipped(struct kp_span text, const char *known);

#endif
