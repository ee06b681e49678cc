/* SPDX-License-Identifier: MIT */
/* What kpack detect found, and what it was asked. */
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

/* Print it as a JSON array; nothing where that is not built.  What goes wrong is reported. */
void detect_json(struct detect *d);

#endif
