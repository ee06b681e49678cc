/* SPDX-License-Identifier: MIT */
/*
 * Taking archives apart: one archive for each architecture, `<group>_<arch>.kpack`, frames
 * copied as they are stored.  The entries of an architecture that stand in several sources
 * come together, in order of the sources.  A content that several architectures share goes
 * to each of their archives.  A volume (`<group>.2_rdna.kpack`) gives the volumes of its
 * number (`<group>.2_gfx1100.kpack`), so that markers which name it stay true.
 */
#ifndef PACKER_MERGE_BY_ARCH_H
#define PACKER_MERGE_BY_ARCH_H

#include "merge.h"

/* One archive that was written. */
struct archive_part {
	const char *file; /* its name in the directory */
	const char *group, *arch;
	unsigned volume; /* from 1 */
	struct merge_stats stats;
};

/* All zero are the defaults. */
struct archive_parts_options {
	const char *group; /* group_name; NULL: the sources' own */
	bool force;        /* replace archives that are there */
	bool lazy;         /* as of struct merge_options */
	bool skip_faulty;
	bool verify;

	/* Which architectures to take; NULL: all. */
	bool (*takes)(const void *arg, struct kp_span arch);
	const void *takes_arg;

	/* As of struct merge_options. */
	void (*clash)(void *arg, const struct merge_clash *clash);
	void (*faulty)(void *arg, const struct kpack_archive *archive);
	void (*mismatch)(void *arg, const struct merge_mismatch *mismatch);
	void (*progress)(void *arg, uint64_t bytes);
	/* How many bytes there are in all, before the first is copied. */
	void (*begin)(void *arg, uint64_t bytes);
	/* Each archive that has its name now, in order of their names. */
	void (*written)(void *arg, const struct archive_part *part);
	void *arg;
};

/*
 * Write the parts of SOURCES into the directory DIR, which is made when it is missing.
 * Everything is checked before anything is written, and nothing gets its name before
 * everything is written (beyond ARCHIVE_PARTS_AT_ONCE archives: that many at a
 * time).
 * Errors of merge_plan_new and merge_plan_write; INVALID_ARGUMENT: a name that is there
 * already, an architecture that gives no file name.
 */
kpack_error_t archive_parts(const struct merge_source *sources, size_t n, const char *dir,
			    const struct archive_parts_options *options,
			    struct kpackx_error *why);

/* Archives that wait for their names at a time: each has two descriptors. */
#define ARCHIVE_PARTS_AT_ONCE 200

#endif
