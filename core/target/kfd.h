/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this machine, as the kernel's KFD driver tells of them: a directory per node
 * with a file "properties", in which gfx_target_version is
 * major * 10000 + minor * 100 + stepping, and 0 for a CPU.
 */
#ifndef KP_CORE_TARGET_KFD_H
#define KP_CORE_TARGET_KFD_H

#include "core/base/faults.h"
#include "target.h"

#define KP_TOPOLOGY "/sys/class/kfd/kfd/topology"

struct kp_gpu {
	unsigned node;
	struct kp_target target; /* features not stated: the driver does not say */
};

/* In the order of their nodes; several may be of one kind. */
struct kp_gpus {
	struct kp_gpu *list;
	size_t count;
	struct kp_faults faults; /* nodes left out because they make no sense */
};

/*
 * Read TOPOLOGY, a directory like KP_TOPOLOGY or its "nodes"; NULL: KP_TOPOLOGY.  A node
 * that this process may not see (a container's limits) is no fault.  No GPU is a success.
 * FILE_NOT_FOUND: no such directory, there is no driver.  IO_ERROR, OUT_OF_MEMORY.  The
 * caller frees OUT in each case.
 */
kpack_error_t kp_gpus_read(const char *topology, struct kp_gpus *out,
			   struct kpackx_error *why);
void kp_gpus_fini(struct kp_gpus *g);

/*
 * The GPU of a node with these PROPERTIES, lines of a name and a number.  GPU stays
 * as it was where the node is a CPU: *FOUND tells.  INVALID_FORMAT: no version, or one
 * that is no GPU's.
 */
kpack_error_t kp_gpus_parse(struct kp_span properties, struct kp_target *gpu, bool *found,
			    struct kpackx_error *why);

#endif
