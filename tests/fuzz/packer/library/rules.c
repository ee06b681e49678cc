/* SPDX-License-Identifier: MIT */
/* Rules files, applied to some files. */
#include "packer/library/rules.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct library *l, const char *path)
{
	static const struct file_tree none;
	struct kp_source source = kp_source_memory("text", 4);
	struct library_question q = {.library = l, .tree = &none, .path = path};
	struct kpackx_error why = {0};

	if (!l->probe(&q))
		return;
	q.source = &source;
	q.head_size = 4;
	memcpy(q.head, "text", 4);
	assert(l->check(&q, &why) == KPACK_SUCCESS);
	assert(!q.mine || (q.out.n_arches && *q.out.role));
	library_object_fini(&q.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"lib/foo/gfx942/a.co",
					    "foo/x_gfx90a-xnack+.bin", "a",
					    "lib/foo/x/y/gfx1250-strict/z.db"};
	struct kp_source source = kp_source_memory(data, size);
	struct kpackx_error why = {0};
	struct rules *rules;

	if (rules_parse(&source, &rules, &why) != KPACK_SUCCESS) {
		assert(why.code && why.text[0]);
		return 0;
	}
	for (size_t i = 0; i < rules->n_libraries; i++)
		for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++)
			ask(&rules->libraries[i], paths[p]);
	rules_free(rules);
	return 0;
}
