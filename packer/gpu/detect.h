/* SPDX-License-Identifier: MIT */
/* Options and results of kpack detect. */
#ifndef PACKER_GPU_DETECT_H
#define PACKER_GPU_DETECT_H

#include "names.h"
#include "served.h"

struct detect {
	const char *topology;
	struct gpu_kinds kinds;
	struct gpu_names names;
	const char
		*status; /* dpkg's file of installed packages; NULL: they are not asked */
	bool chosen, pip, apt, json, installed;
	bool failed; /* the reason was reported */
	bool with_archives;
	struct gpu_served served;
};

/* Print the results as a JSON array; report errors. */
void detect_json(struct detect *d);

#endif
