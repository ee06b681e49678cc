/* SPDX-License-Identifier: MIT */
/*
 * The objects that the GPUs of --arch would load of a converted binary, and whether archives
 * have them: for each container, the objects that fit a GPU best.
 */
#ifndef PACKER_MARK_LOSSES_H
#define PACKER_MARK_LOSSES_H

#include "core/target/choice.h"
#include "packer/archives/reachable_archives.h"

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
