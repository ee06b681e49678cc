/* SPDX-License-Identifier: MIT */
/* Ar archives: list the members; an archive written from them has the same members. */
#include "core/format/ar_archive.h"
#include "tests/fuzz/written.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kp_source *src, const struct kp_ar *ar,
		  const struct memory *m)
{
	struct kp_source again = kp_source_memory(m->data, m->size), a, b;
	struct kp_ar copy;

	if (kp_ar_read(&again, &copy, NULL) || copy.count != ar->count)
		__builtin_trap();
	for (size_t i = 0; i < ar->count; i++) {
		if (strcmp(ar->items[i].name, copy.items[i].name) != 0 ||
		    !kp_source_sub(src, ar->items[i].offset, ar->items[i].size, &a) ||
		    !kp_source_sub(&again, copy.items[i].offset, copy.items[i].size,
				   &b) ||
		    !kp_source_same(&a, &b))
			__builtin_trap();
	}
	kp_ar_fini(&copy);
}

static void write_again(const struct kp_source *src, const struct kp_ar *ar)
{
	struct kp_ar_input *inputs = calloc(ar->count + 1, sizeof(*inputs));
	struct memory m = {0};
	struct kp_sink sink = {.write = append, .arg = &m};

	for (size_t i = 0; inputs && i < ar->count; i++) {
		inputs[i].name = kp_span_str(ar->items[i].name);
		kp_source_sub(src, ar->items[i].offset, ar->items[i].size,
			      &inputs[i].bytes);
	}
	if (inputs && kp_ar_write(inputs, ar->count, &sink, NULL) == KPACK_SUCCESS)
		check(src, ar, &m);
	free(inputs);
	free(m.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_ar ar;

	if (kp_ar_read(&src, &ar, NULL) != KPACK_SUCCESS)
		return 0;
	if (!ar.thin)
		write_again(&src, &ar);
	kp_ar_fini(&ar);
	return 0;
}
