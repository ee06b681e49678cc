/* SPDX-License-Identifier: MIT */
/* Bytes as each file of AOTriton: containers, versions, and the facts of a kernel. */
#include "packer/library/library.h"
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {
		"aotriton.images/amd-gfx11xx/flash/attn_fwd/x^bf16@16_F___gfx1100.aks2",
		"aotriton.images/amd-gfx942/flash/attn_fwd.zip",
		"aotriton.images/amd-gfx942/__signature__",
		"aotriton/kernels/gfx942/attn_fwd.hsaco",
		"aotriton/kernels/gfx942/attn_fwd.json",
	};
	struct kp_source source = kp_source_memory(data, size);
	int fd = memfd_create("facts", MFD_CLOEXEC);
	struct file_tree tree = {0};
	struct kpackx_error why = {0};
	char disk[40];

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(disk, sizeof(disk), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < KP_COUNT(paths); i++)
		file_tree_add(&tree, &(struct file_tree_item){.path = (char *)paths[i],
							      .disk = disk,
							      .size = size});
	for (size_t i = 0; i < KP_COUNT(paths); i++) {
		struct library_question q = {.library = &library_aotriton,
					     .tree = &tree,
					     .file = i,
					     .path = paths[i],
					     .source = &source};

		q.head_size = size < sizeof(q.head) ? size : sizeof(q.head);
		if (size)
			memcpy(q.head, data, q.head_size);
		assert(library_aotriton.probe(&q) && !library_aotriton.check(&q, &why));
		assert(!q.mine || (q.out.n_arches && q.out.facts.size < 8192));
		library_object_fini(&q.out);
	}
	file_tree_fini(&tree);
	close(fd);
	return 0;
}
