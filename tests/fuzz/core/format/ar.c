/* SPDX-License-Identifier: MIT */
/* Ar archives: list the members; archives written from them, or changed, have the same. */
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

/* Every third member loses its bytes. */
static kpack_error_t edit_member(void *arg, size_t member, struct kp_outfile *out,
				 uint64_t at, uint64_t *size, bool *same,
				 struct kpackx_error *why)
{
	(void)arg;
	(void)out;
	(void)at;
	(void)why;
	*size = 0;
	*same = member % 3 != 2;
	return KPACK_SUCCESS;
}

/* A changed archive has the same members, and the others have their bytes. */
static void change(const struct kp_source *src, const struct kp_ar *ar)
{
	const struct kp_ar_edit edit = {edit_member, NULL};
	struct kp_outfile out;
	struct kp_source file, a, b;
	struct kp_ar again;
	struct stat st;

	if (kp_outfile_open(&out, "/tmp", "fuzz-ar", 0600, NULL))
		abort();
	kp_outfile_unname(&out);
	if (kp_ar_rewrite(src, ar, &edit, &out, NULL) == KPACK_SUCCESS) {
		if (fstat(out.fd, &st) || (uint64_t)st.st_size > src->size + 1)
			__builtin_trap();
		file = kp_source_fd(out.fd, 0, (uint64_t)st.st_size);
		if (kp_ar_read(&file, &again, NULL) || again.count != ar->count)
			__builtin_trap();
		for (size_t i = 0; i < ar->count; i++)
			if (i % 3 == 2
				    ? again.items[i].size != kp_ar_padding(ar, i, 0)
				    : !kp_source_sub(src, ar->items[i].offset,
						     ar->items[i].size, &a) ||
					      !kp_source_sub(&file, again.items[i].offset,
							     again.items[i].size, &b) ||
					      !kp_source_same(&a, &b))
				__builtin_trap();
		kp_ar_fini(&again);
	}
	kp_outfile_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_ar ar;

	if (kp_ar_read(&src, &ar, NULL) != KPACK_SUCCESS)
		return 0;
	if (!ar.thin) {
		write_again(&src, &ar);
		change(&src, &ar);
	}
	kp_ar_fini(&ar);
	return 0;
}
