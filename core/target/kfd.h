/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this machine, as the kernel's KFD driver reports them: a directory per node
 * with a file "properties", in which gfx_target_version is
 * major * 10000 + minor * 100 + stepping, or 0 for a CPU.
 */
#ifndef KP_CORE_TARGET_KFD_H
#define KP_CORE_TARGET_KFD_H

#include "core/base/errors.h"
#include "target.h"

#define KP_TOPOLOGY "/sys/class/kfd/kfd/topology"

struct kp_gpu {
	unsigned node;   /* the kernel's number */
	unsigned number; /* ROCm's: nodes that this process may not read do not count */
	struct kp_target target; /* without features, which the driver does not report */
};

/* In the order of their nodes; several GPUs may have the same target. */
struct kp_gpus {
	struct kp_gpu *list;
	size_t count;
	unsigned n_nodes;        /* that this process may read, CPUs too */
	struct kp_faults faults; /* nodes that were left out as invalid */
};

/*
 * Read TOPOLOGY, a directory like KP_TOPOLOGY or its "nodes"; NULL: KP_TOPOLOGY.  A node
 * that this process may not read (in a container) is not a fault.  No GPU is a success.
 * FILE_NOT_FOUND: no such directory, that is, no driver.  IO_ERROR, OUT_OF_MEMORY.  The
 * caller frees OUT with kp_gpus_fini on success and on failure.
 */
kpack_error_t kp_gpus_read(const char *topology, struct kp_gpus *out,
			   struct kpackx_error *why);
void kp_gpus_fini(struct kp_gpus *g);

/*
 * Read the GPU of a node from its PROPERTIES, lines of a name and a number.  If the node
 * is a CPU, *FOUND is false and GPU is untouched.  INVALID_FORMAT: no version, or a
 * version that no GPU has.
 */
kpack_error_t kp_gpus_parse(struct kp_span properties, struct kp_target *gpu, bool *found,
			    struct kpackx_error *why);

#endif
