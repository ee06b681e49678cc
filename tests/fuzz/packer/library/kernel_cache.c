/* SPDX-License-Identifier: MIT */
/* Bytes as a kernel cache, and as a table of kernel paths. */
#include "packer/library/rocfft.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char path[] = "lib/rocfft/rocfft_kernel_cache.db";

static void use(void *arg, struct kernel_path *p)
{
	const struct file_tree *tree = arg;

	assert(!p->exists || p->file < tree->count);
}

static void check_parts(const struct cache_files *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		for (size_t k = 0; k < parts->items[i].n_objects; k++) {
			const struct library_object *o = &parts->items[i].objects[k];

			assert(o->n_arches == 1);
			assert(o->path || o->n_keys == 1);
		}
}

static void take_apart(const char *disk)
{
	struct cache_files parts = {0};
	struct kpackx_error why = {0};

	if (kernel_cache_split(disk, path, "/dev/shm", &parts, &why) == KPACK_SUCCESS)
		check_parts(&parts);
	else
		assert(why.text[0]);
	cache_files_fini(&parts);
	if (kernel_cache_rows(disk, path, "/dev/shm", &parts, &why) == KPACK_SUCCESS)
		check_parts(&parts);
	cache_files_fini(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("database", MFD_CLOEXEC);
	struct file_tree tree = {0};
	char disk[40];

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(disk, sizeof(disk), "/proc/self/fd/%d", fd);
	take_apart(disk);
	file_tree_add(&tree, &(struct file_tree_item){
				     .path = (char *)path, .disk = disk, .size = size});
	(void)kernel_paths_each(&tree, 0, use, &tree, NULL);
	file_tree_fini(&tree);
	close(fd);
	return 0;
}
