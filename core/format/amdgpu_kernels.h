/* SPDX-License-Identifier: MIT */
/*
 * Kernels of AMDGPU code objects.
 * Source: LLVM's AMDGPU usage document (code object metadata, kernel descriptor).
 */
#ifndef KP_CORE_FORMAT_AMDGPU_KERNELS_H
#define KP_CORE_FORMAT_AMDGPU_KERNELS_H

#include "object.h"
#include "sections.h"

/* The metadata's contents besides the kernels; spans borrow from the metadata. */
struct kp_amdgpu_metadata {
	struct kp_span target; /* "amdgcn-amd-amdhsa--gfx90a:xnack+"; empty: not stated */
	uint64_t version[2];   /* of the metadata, e.g. 1.2 */
};

/*
 * Read METADATA, the MessagePack of the note, and append its kernels to OUT.
 * INVALID_FORMAT: the metadata is damaged, or a kernel has no name.
 */
kpack_error_t kp_amdgpu_metadata_read(struct kp_span metadata,
				      struct kp_amdgpu_metadata *facts,
				      struct kp_object *out, struct kpackx_error *why);

/*
 * Append the kernels that the symbols of the code object SRC name, with the numbers from
 * their descriptors: symbols NAME.kd in code object v3 and later, kernel symbols in v2.
 * A kernel whose descriptor is not in SRC gets its name only.
 * INVALID_FORMAT: the names are not in SRC, or are more bytes than SRC can hold.
 */
kpack_error_t kp_amdgpu_symbols_read(const struct kp_source *src,
				     const struct kp_sections *sections,
				     struct kp_object *out, struct kpackx_error *why);

#endif
