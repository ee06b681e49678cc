/* SPDX-License-Identifier: MIT */
/* An archive that a tree has before it is split: the architecture it belongs to. */
#ifndef PACKER_SPLIT_OLD_ARCHIVE_H
#define PACKER_SPLIT_OLD_ARCHIVE_H

#include "packer/archives/operands.h"
#include "packer/gpu/families.h"
#include "packer/pack/scan/scan.h"

struct old_archive {
	/*
	 * The part it belongs to: that of its one architecture, that of --family where all of
	 * them are in one, or its own family's; else the generic one.
	 */
	char *part;
	bool family;
	char **arches; /* canonical, as it declares them */
	size_t n_arches;
};

/*
 * Does ENTRY look like one: "*.kpack" in a directory ".kpack", at whatever depth, and not a
 * file of a kernel database? */
bool old_archive_is(const struct scan_entry *e);

/* Look into the archive PATH.  Errors of kp_archive_open; OUT_OF_MEMORY. */
kpack_error_t old_archive_open(const char *path, const struct families *families,
			       struct old_archive *out, struct kpackx_error *why);
void old_archive_close(struct old_archive *archive);

/* Has it code that FILTER asks for, or that suits every GPU?  Remembers matches, too. */
bool old_archive_wanted(const struct old_archive *archive, struct arch_filter *filter);

#endif
