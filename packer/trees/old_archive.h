/* SPDX-License-Identifier: MIT */
/*
 * An archive that already exists in the tree before the split, and the tree it goes to.
 */
#ifndef PACKER_SPLIT_OLD_ARCHIVE_H
#define PACKER_SPLIT_OLD_ARCHIVE_H

#include "packer/archives/arch_filter.h"
#include "packer/gpu/families.h"
#include "packer/scan/scan.h"

struct old_archive {
	/*
	 * The output tree it goes to: that of the --family that contains all its
	 * architectures, that of its own family, or that of its only architecture; else
	 * the generic one.
	 */
	char *part;
	bool family;   /* PART is the name of a family */
	char **arches; /* canonical, in the order in which the archive lists them */
	size_t n_arches;
};

/*
 * True if E looks like an archive, and is not a file of a kernel database: "*.kpack" in a
 * directory ".kpack", at any depth, or below the archive directory of the run.
 */
bool old_archive_is(const struct scan_entry *e);

/*
 * Read the architectures of the archive PATH.  Errors of kp_archive_open; OUT_OF_MEMORY.
 */
kpack_error_t old_archive_open(const char *path, const struct families *families,
			       struct old_archive *out, struct kpackx_error *why);
void old_archive_close(struct old_archive *archive);

/*
 * True if it has code that FILTER requests or that suits every GPU.  FILTER records
 * matches.
 */
bool old_archive_wanted(const struct old_archive *archive, struct arch_filter *filter);

#endif
