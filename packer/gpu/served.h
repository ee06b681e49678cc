/* SPDX-License-Identifier: MIT */
/* Find the archives that have code for a GPU, and the groups that have none. */
#ifndef PACKER_GPU_SERVED_H
#define PACKER_GPU_SERVED_H

#include "packer/archives/operands.h"
#include "names.h"

struct gpu_served {
	struct archives archives;
	struct kp_span *groups; /* those that have code for some architecture; borrowed */
	size_t n_groups;
};

/*
 * Open the archives of the operands; unless GROUP is NULL, only those of GROUP.  An
 * archive that cannot be opened is reported and makes archives.failed true.
 */
void gpu_served_open(struct gpu_served *served, int n, char **operands,
		     const char *group);
void gpu_served_close(struct gpu_served *served);

/* Whether archive I has code for KIND, or files for every GPU. */
bool gpu_served_by(const struct gpu_served *served, size_t i,
		   const struct gpu_kind *kind);

/* Whether an archive of group G has code for KIND. */
bool gpu_served_group(const struct gpu_served *served, size_t g,
		      const struct gpu_kind *kind);

#endif
