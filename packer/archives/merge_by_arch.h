/* SPDX-License-Identifier: MIT */
/*
 * Split archives by architecture: one archive for each, `<group>_<arch>.kpack`, with
 * frames copied as they are stored.  The entries of an architecture in several sources
 * come together, in the order of the sources.  Content that several architectures share
 * goes to each of their archives.  A volume (`<group>.2_rdna.kpack`) gives volumes of the
 * same number (`<group>.2_gfx1100.kpack`), so that markers that name it stay true.
 */
#ifndef PACKER_MERGE_BY_ARCH_H
#define PACKER_MERGE_BY_ARCH_H

#include "merge.h"

/* One archive that was written. */
struct written_archive {
	const char *file; /* its name in the directory */
	const char *group, *arch;
	unsigned volume; /* from 1 */
	struct merge_stats stats;
};

/* All zero: the defaults. */
struct merge_by_arch_options {
	const char *group; /* group_name; NULL: the sources' own */
	bool force;        /* replace archives that are not an earlier run's, too */
	bool lazy;         /* as in struct merge_options */
	bool skip_faulty;

	/* Whether to take an architecture; NULL: take all. */
	bool (*takes)(const void *arg, struct kp_span arch);
	const void *takes_arg;

	/* As in struct merge_options. */
	void (*clash)(void *arg, const struct merge_clash *clash);
	void *clash_arg;
	struct progress *progress;
	/* Called before the first byte is copied, with the number of bytes in all. */
	void (*begin)(void *arg, uint64_t bytes);
	/* Called for each archive that has its name now, in order of names. */
	void (*written)(void *arg, const struct written_archive *part);
	void *arg;
};

/*
 * Write the archives of SOURCES, split, into the directory DIR, which is made if missing.
 * Everything is checked before anything is written, and no archive gets its name before
 * all are written (if there are more than BY_ARCH_AT_ONCE: that many at a time).
 * Errors of merge_plan_new and merge_plan_write; INVALID_ARGUMENT: an archive exists that
 * has entries which SOURCES have not, or an architecture gives no file name.
 */
kpack_error_t merge_by_arch(const struct merge_source *sources, size_t n, const char *dir,
			    const struct merge_by_arch_options *options,
			    struct kpackx_error *why);

/*
 * The number of archives that wait for their names at a time: each has two descriptors.
 */
#define BY_ARCH_AT_ONCE 200

#endif
