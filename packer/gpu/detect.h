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
	bool chosen, pip, apt, json;
	bool failed; /* the reason was reported */
	bool with_archives;
	struct gpu_served served;
};

/* Print the results as a JSON array; report errors. */
void detect_json(struct detect *d);

#endif
