/* SPDX-License-Identifier: MIT */
/*
 * A path, a NUL, and a file's bytes, given to the BLAS libraries' database readers.
 * Without a NUL the whole input is the path.
 */
#include "packer/library/tensile.h"
#include <assert.h>
#include <stdlib.h>
#include "packer/library/arch_name.h"
#include "core/target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct library *const libraries[] = {
	&library_rocblas,
	&library_hipblaslt,
	&library_hipsparselt,
};

/* The path as it is, or below a library's directory BEFORE. */
static char *path_of(const char *before, struct kp_span path)
{
	size_t n = strlen(before);
	char *out = malloc(n + path.size + 1);

	if (!out)
		abort();
	memcpy(out, before, n);
	if (path.size)
		memcpy(out + n, path.data, path.size);
	out[n + path.size] = '\0';
	return out;
}

static void check_target(const char *arch)
{
	struct kp_target target;
	char again[KP_TARGET_TEXT_MAX];

	if (strcmp(arch, KP_ARCH_GENERIC) == 0)
		return;
	assert(kp_target_parse(kp_span_str(arch), &target, NULL) == KPACK_SUCCESS);
	kp_target_format(&target, again);
	assert(strcmp(arch, again) == 0);
}

static void ask(const struct library *library, struct library_question *q)
{
	struct kpackx_error why = {0};

	q->library = library;
	q->mine = false;
	q->out = (struct library_object){0};
	if (!library->probe(q))
		return;
	if (library->check(q, &why) == KPACK_SUCCESS && q->mine) {
		assert(q->out.n_arches == 1 && q->out.role);
		check_target(q->out.arches[0]);
		assert(q->out.facts.size < 2000);
	}
	library_object_fini(&q->out);
}

static void ask_all(const char *before, struct kp_span name,
		    const struct kp_source *bytes)
{
	struct file_tree_item items[] = {{.path = "rocblas/library/TensileLibrary.yaml"}};
	struct file_tree tree = {.items = items, .count = 1, .cap = 1};
	char *path = path_of(before, name);
	struct library_question q = {.tree = &tree, .path = path, .source = bytes};

	q.head_size = bytes->size < sizeof(q.head) ? (size_t)bytes->size : sizeof(q.head);
	if (q.head_size)
		memcpy(q.head, bytes->mem, q.head_size);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		ask(libraries[i], &q);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
	size_t n = nul ? (size_t)(nul - data) : size;
	struct kp_span path = {data, n};
	struct kp_source bytes =
		kp_source_memory(nul ? nul + 1 : data, nul ? size - n - 1 : 0);
	char arch[KP_TARGET_TEXT_MAX];

	if (arch_of_name(path, arch) && arch_of_directory(path, arch, NULL))
		check_target(arch);
	ask_all("", path, &bytes);
	ask_all("rocblas/library/", path, &bytes);
	ask_all("hipblaslt/library/TensileLibrary/gfx942/", path, &bytes);
	return 0;
}
