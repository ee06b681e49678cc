/* SPDX-License-Identifier: MIT */
/* AOTriton's containers and versions, and the facts files of Triton's kernels. */
#include "packer/library/aks2.h"
#include <assert.h>
#include "packer/library/flatzip.h"
#include "packer/library/triton_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source source = kp_source_memory(data, size);
	struct facts facts = {0}, versions = {0};
	struct kpackx_error why = {0};
	unsigned members;
	struct aks2 head;

	if (aks2_read(&source, &head, &why) == KPACK_SUCCESS)
		assert(head.directory_size <= head.decoded_size &&
		       head.kernel_count <= head.directory_size);
	if (flatzip_read(&source, &members, &why) == KPACK_SUCCESS)
		assert(members <= UINT16_MAX);
	triton_kernel_facts((struct kp_span){data, size}, &facts);
	assert(facts.size < 4096 && triton_versions(&source, &versions, &why) == 0);
	facts_fini(&facts);
	facts_fini(&versions);
	return 0;
}
