/* SPDX-License-Identifier: MIT */
/* Containers in containers: everything with device code in a file, as a tree. */
#ifndef KP_CORE_FORMAT_NEST_H
#define KP_CORE_FORMAT_NEST_H

#include "format.h"

/* How deep containers are looked into: archive, object, section, bundle, binary, object. */
#define KP_NEST_MAX 12

/* Told of what stands in IMAGE (KP_NOWHERE: in the source) and cannot be read. */
typedef void kp_nest_fault(void *arg, const struct kp_containers *list, size_t image,
			   const struct kpackx_error *why);

/*
 * Find every container of SRC, of any format, and of its images in turn.  A source that
 * begins like none is a success without containers.  Compressed containers are decoded, one
 * of each level at a time.  What begins like a container and is damaged, or is followed by
 * other bytes than zeros, is told to FAULT and left as it is; FAULT NULL: it is an error.
 * On failure OUT is empty.
 */
kpack_error_t kp_nest_scan(const struct kp_source *src, kp_nest_fault *fault, void *arg,
			   struct kp_containers *out, struct kpackx_error *why);

/*
 * The same, and what can be read of a container that is damaged in part is kept: images that
 * cannot be decoded beside others that can are reported of, each, and marked; of an archive that
 * ends too early there are the members before.
 */
kpack_error_t kp_nest_salvage(const struct kp_source *src, kp_nest_fault *fault,
			      void *arg, struct kp_containers *out,
			      struct kpackx_error *why);

#endif
