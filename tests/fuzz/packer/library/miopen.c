/* SPDX-License-Identifier: MIT */
/* A path, a newline, and the file's bytes, given to the libraries other than Tensile. */
#include "packer/library/library.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct library *l, const char *path, const struct kp_source *source)
{
	static const struct file_tree none;
	struct library_question q = {.library = l, .tree = &none, .path = path};
	struct kpackx_error why = {0};

	if (!l->probe(&q))
		return;
	q.out.role = "file";
	q.source = source;
	q.head_size = source->size < sizeof(q.head) ? source->size : sizeof(q.head);
	assert(kp_source_read(source, 0, q.head, q.head_size, &why) == KPACK_SUCCESS);
	if (l->check(&q, &why) == KPACK_SUCCESS)
		assert(!q.mine || q.out.n_arches);
	else
		assert(why.code && why.text[0]);
	library_object_fini(&q.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct library *const libraries[] = {
		&library_aotriton,          &library_miopen, &library_composablekernel,
		&library_hipkernelprovider, &library_aiter,  &library_hotswap_cache,
	};
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	struct kp_source source;
	char *path;

	if (!end || memchr(data, '\0', (size_t)(end - data)))
		return 0;
	path = strndup((const char *)data, (size_t)(end - data));
	assert(path);
	source = kp_source_memory(end + 1, size - (size_t)(end - data) - 1);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		ask(libraries[i], path, &source);
	free(path);
	return 0;
}
