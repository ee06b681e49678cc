/* SPDX-License-Identifier: MIT */
/*
 * kpack thin: an installation without the code that its GPUs cannot load.  Binaries stay
 * ordinary fat binaries with fewer and smaller code objects; files of kernel databases for
 * other GPUs are removed.
 */
#ifndef PACKER_THIN_THIN_H
#define PACKER_THIN_THIN_H

#include <pthread.h>
#include "selection.h"
#include "packer/archives/arch_filter.h"
#include "packer/files/spill_dir.h"
#include "packer/library/library.h"
#include "packer/pack/tree.h"

struct thin_args {
	const char *tree;
	const char *output; /* the tree that is written; NULL: in place */
	struct arch_filter filter;
	struct library_set libraries;
	bool strip; /* code objects lose their debugging information */
	const char
		*debug_to; /* DIR/.build-id/XX/REST.debug gets it; NULL: nothing does */
	bool compress;     /* plain bundles become compressed ones */
	bool any_runtime;  /* whether HIP runtimes read these is not asked */
	bool drop_signature;
	const char *keep; /* the directory that gets what undoing needs; NULL: none */
	bool dry;         /* only find out what would be freed */
	unsigned jobs;
	bool progress;
	/* With it, it is no fault that no code is for the GPUs: files of earlier runs have that. */
	struct scan_skip skip;
};

/* A file of which code goes, or may become smaller. */
struct thin_file {
	size_t entry;      /* of the scan */
	size_t n_nameless; /* code objects that keep their debugging information */
	bool *gone;   /* per image; NULL: a file of a database, which goes as a whole */
	bool loses;   /* an image goes */
	bool wrap;    /* as in kp_selection */
	bool same;    /* no image goes, and the rest did not become smaller */
	bool larger;  /* what it would become */
	bool damaged; /* its code cannot be read, so that it stays as it is */
	uint64_t before, after; /* sizes of the file */
};

struct thin {
	struct thin_args args;
	struct scan scan;
	struct dispositions dispositions;
	struct thin_file *files; /* by path, bytewise */
	size_t n_files, files_cap;
	size_t n_cuda;  /* files with CUDA code only */
	bool amd;       /* others have code for AMD GPUs */
	size_t n_stuck; /* files of a form that is not rewritten, though code could go */
	size_t n_faults;
	bool damaged; /* a file stays as it is because it is damaged: the run has failed */
	struct input **rewritten; /* the files that lose some of their code */
	size_t n_rewritten;
	pthread_mutex_t debug_lock;
	size_t n_debug_files; /* with debugging information, that were written or existed */
};

/*
 * Carry out the ARGS of T, whose other members are zeroed.  Returns an exit status, after
 * reporting faults; of a run that only left damaged files alone, EXIT_OK.  T holds what was
 * found and done until it is closed.
 */
int thin_run(struct thin *t);
void thin_close(struct thin *t); /* finishes `args`, too; accepts a zeroed T */

/* Open a nameless file on the file system of what is written for IN. */
kpack_error_t thin_open_scratch(const struct thin *t, const struct input *in,
				struct kp_outfile *out, struct kpackx_error *why);

/* --- static libraries: static_library.c ---------------------------------------------- */

/* Whether FAT, found by kp_fatbin_nest, is a static library. */
bool static_library_is(const struct kp_fatbin *fat);

/* Whether IMAGE of the library is in a member's section, from which it can be removed. */
bool static_library_has(const struct kp_fatbin *fat, size_t image);

/*
 * Write the library IN to OUT, which is empty, with what SELECTION leaves of its images; OUT NULL:
 * only count.  *SIZE becomes its size.  Members keep their headers and order, and the index of
 * symbols stays right.
 * Errors of kp_selection_write, kp_relocatable_refill and kp_ar_rewrite, which name the member.
 */
kpack_error_t static_library_write(const struct thin *t, const struct input *in,
				   const struct kp_selection *selection,
				   struct kp_outfile *out, uint64_t *size,
				   struct kpackx_error *why);

/* Whether static_library_write would change something. */
kpack_error_t static_library_changes(const struct kp_fatbin *fat,
				     const struct kp_selection *selection, bool *changes,
				     struct kpackx_error *why);

#endif
