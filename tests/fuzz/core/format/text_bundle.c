/* SPDX-License-Identifier: MIT */
/* Text bundles: list the entries; a bundle written from them has the same entries. */
#include "core/format/text_bundle.h"
#include "tests/fuzz/written.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kp_source *src, const struct kp_containers *list,
		  const char *comment, const struct memory *m)
{
	struct kp_source again = kp_source_memory(m->data, m->size), a, b;
	struct kp_containers copy;

	if (kp_text_bundle_read(&again, comment, &copy, NULL) ||
	    copy.n_images != list->n_images)
		__builtin_trap();
	for (size_t i = 0; i < list->n_images; i++) {
		const struct kp_image *x = &list->images[i], *y = &copy.images[i];

		if (strcmp(x->id, y->id) != 0 ||
		    !kp_source_sub(src, x->offset, x->size, &a) ||
		    !kp_source_sub(&again, y->offset, y->size, &b) ||
		    !kp_source_same(&a, &b))
			__builtin_trap();
	}
	kp_containers_fini(&copy);
}

static void write_again(const struct kp_source *src, const struct kp_containers *list,
			const char *comment)
{
	struct kp_text_entry *entries = calloc(list->n_images + 1, sizeof(*entries));
	struct memory m = {0};
	struct kp_sink sink = {.write = append, .arg = &m};

	for (size_t i = 0; entries && i < list->n_images; i++) {
		entries[i].id = kp_span_str(list->images[i].id);
		if (!kp_source_sub(src, list->images[i].offset, list->images[i].size,
				   &entries[i].contents))
			__builtin_trap();
	}
	if (entries && kp_text_bundle_write(entries, list->n_images, comment, &sink,
					    NULL) == KPACK_SUCCESS)
		check(src, list, comment, &m);
	free(entries);
	free(m.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const comments[] = {"//", "#", ";"};
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list;

	for (size_t i = 0; i < sizeof(comments) / sizeof(comments[0]); i++) {
		if (kp_text_bundle_read(&src, comments[i], &list, NULL) != KPACK_SUCCESS)
			continue;
		write_again(&src, &list, comments[i]);
		kp_containers_fini(&list);
	}
	return 0;
}
