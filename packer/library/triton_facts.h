/* SPDX-License-Identifier: MIT */
/* Facts from the small JSON files next to Triton's kernels. */
#ifndef PACKER_LIBRARY_AOTRITON_TRITON_FACTS_H
#define PACKER_LIBRARY_AOTRITON_TRITON_FACTS_H

#include "library.h"

/*
 * Add the versions in a pack's "__signature__" file, under the names they have there.  A
 * file that has over 64 KiB, or is not JSON of this form, adds no facts.  IO_ERROR,
 * OUT_OF_MEMORY.
 */
kpack_error_t triton_versions(const struct kp_source *source, struct facts *out,
			      struct kpackx_error *why);

/*
 * Add the signature and tuning parameters of Q's kernel, from the file of the same name
 * with .json instead of .hsaco.  Adds nothing if that file is missing or has none.
 */
kpack_error_t triton_kernel(const struct library_question *q, struct facts *out,
			    struct kpackx_error *why);

/* As triton_kernel, from the text of the .json file. */
void triton_kernel_facts(struct kp_span json, struct facts *out);

#endif
