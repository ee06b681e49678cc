/* SPDX-License-Identifier: MIT */
/* Facts from the small JSON files beside Triton's kernels. */
#ifndef PACKER_LIBRARY_AOTRITON_TRITON_FACTS_H
#define PACKER_LIBRARY_AOTRITON_TRITON_FACTS_H

#include "packer/library/library.h"

/*
 * The versions in a "__signature__" of a pack, under the names they have there.  What is no
 * such file has none.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t triton_versions(const struct kp_source *source, struct facts *out,
			      struct kpackx_error *why);

/*
 * Signature and tuning parameters of the kernel that Q asks about, from the file of its name
 * with .json in the place of .hsaco.  Where that is not, or tells none, there are none.
 */
kpack_error_t triton_kernel(const struct library_question *q, struct facts *out,
			    struct kpackx_error *why);

/* The same from the text of that file. */
void triton_kernel_facts(struct kp_span json, struct facts *out);

#endif
