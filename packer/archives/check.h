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

/* For the checks: add a fault or a note, formatted as by printf. */
#define CHECK_FAULT(findings, ...) kp_faults_add(&(findings)->faults, false, __VA_ARGS__)
#define CHECK_NOTE(findings, ...) kp_faults_add(&(findings)->notes, false, __VA_ARGS__)

/* Check all but the content of the entries.  The caller frees OUT with check_fini. */
void check_archive(struct kpack_archive *a, struct check_findings *out);
void check_fini(struct check_findings *findings);

/* --- for the checks: check_toc.c, about what the parser of the table does not keep --- */

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
