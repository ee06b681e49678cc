/* SPDX-License-Identifier: MIT */
/*
 * What kpack mark check finds: faults, which are printed at once or kept for a report as JSON;
 * architectures that are missing, of which the end decides whether they are faults; and what
 * the GPUs of --arch lose.
 */
#ifndef PACKER_INSPECT_MARK_CHECK_H
#define PACKER_INSPECT_MARK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "core/target/choice.h"
#include "packer/archives/reachable_archives.h"
#include "packer/cli/report.h"

#define MARK_NO_WRAPPER SIZE_MAX

struct mark_faults {
	bool json; /* keep the faults in LIST; false: print them */
	size_t count;
	json_t *list;
};

/* Record a fault of FILE; ARCH may be NULL.  The caller has escaped names in the text. */
void mark_fault(struct mark_faults *f, const char *file, size_t wrapper, const char *arch,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void mark_fault_why(struct mark_faults *f, const char *file,
		    const struct kpackx_error *why);

/*
 * Architectures that binaries were built for without reaching an archive for them.  That
 * is right if the architecture is not installed at all, and a fault if other binaries
 * have archives for it.
 */
struct missing_arches_item {
	char *file, *arch;
	bool elsewhere; /* for the caller: an archive has code of other binaries for ARCH */
};

struct missing_arches {
	struct missing_arches_item *items;
	size_t count, cap;
};

/* Record that FILE lacks ARCH; both are copied. */
void missing_arches_add(struct missing_arches *list, const char *file, const char *arch);

/* Sort the items by architecture, then by file. */
void missing_arches_sort(struct missing_arches *list);

/* Whether item I is the first of its architecture; call after missing_arches_sort. */
bool missing_arches_begins(const struct missing_arches *list, size_t i);

void missing_arches_fini(struct missing_arches *list);

/*
 * The objects that the GPUs of --arch would load of a converted binary, and whether archives
 * have them: for each container, the objects that fit a GPU best.
 */
struct losses {
	bool *built; /* per GPU: whether the binary was built for it */
	/*
	 * Per architecture of the binary: 1 + the number of the first GPU that would load
	 * it, and does not find it in an archive; or 0.
	 */
	size_t *lost;
};

/*
 * A GPU whose unstated features may be on or off would load what it would load in each of
 * these settings; with an exact selection, only code for the very target ID.  Without a
 * layout, the binary is known to have only what archives have.
 */
void losses_find(const struct binary *b, const struct built_arches *arches,
		 const struct kp_choice *gpus, struct losses *out);
void losses_fini(struct losses *losses);

#endif
