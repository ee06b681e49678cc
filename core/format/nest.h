/* SPDX-License-Identifier: MIT */
/* Containers in containers: all device code of a file, as a tree. */
#ifndef KP_CORE_FORMAT_NEST_H
#define KP_CORE_FORMAT_NEST_H

#include "format.h"

/* Maximum nesting depth, as in archive, object, section, bundle, binary, object. */
#define KP_NEST_MAX 12

/* Called for contents of IMAGE (KP_NOWHERE: of the source) that cannot be read. */
typedef void kp_nest_fault(void *arg, const struct kp_containers *list, size_t image,
			   const struct kpackx_error *why);

/*
 * Find every container of SRC, of any format, and recursively of its images.  A source
 * that begins like no container is a success without containers.  Compressed containers
 * are decoded, one of each level at a time.  A damaged container, or one followed by
 * bytes other than zeros, is reported to FAULT and otherwise ignored; with FAULT NULL it
 * is an error.
 * On failure OUT is empty.
 */
kpack_error_t kp_nest_scan(const struct kp_source *src, kp_nest_fault *fault, void *arg,
			   struct kp_containers *out, struct kpackx_error *why);

/*
 * As kp_nest_scan, but keep the readable part of a damaged container: each image that
 * cannot be decoded is reported and marked as damaged, the other images are kept; an
 * archive that ends too early has the members before the damage.
 */
kpack_error_t kp_nest_salvage(const struct kp_source *src, kp_nest_fault *fault,
			      void *arg, struct kp_containers *out,
			      struct kpackx_error *why);

#endif
