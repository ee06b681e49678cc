/* SPDX-License-Identifier: MIT */
/* Tensile's library files, and the other files that they name. */
#include "packer/library/tensile.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct tensile_index index;

	if (tensile_index_read((struct kp_span){data, size}, &index, &why))
		assert(why.code != KPACK_SUCCESS && why.text[0]);
	else
		assert(why.code == KPACK_SUCCESS);
	for (size_t i = 0; i < index.n_placeholders; i++)
		assert(index.placeholders[i].gpu + index.placeholders[i].n_gpus <=
		       index.n_gpus);
	tensile_index_fini(&index);
	return 0;
}
