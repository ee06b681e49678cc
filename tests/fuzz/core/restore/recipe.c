/* SPDX-License-Identifier: MIT */
/* Recipes: restore what they describe from objects with arbitrary bytes. */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/restore/recipe.h"

/* More bytes are not worth the time. */
#define BYTES_MAX (16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static kpack_error_t give_anything(void *arg, size_t i, void *buf,
				   struct kpackx_error *why)
{
	const struct kp_recipe *recipe = arg;

	(void)why;
	memset(buf, (int)i, recipe->images[i].size);
	return KPACK_SUCCESS;
}

static uint64_t work(const struct kp_recipe *r)
{
	uint64_t sum = r->size;

	for (size_t i = 0; i < r->n_parts; i++) {
		const struct kp_part *p = &r->parts[i];

		if (p->kind == KP_PART_OBJECT || p->kind == KP_PART_RANGE)
			sum += r->images[p->number].size;
		if (p->kind == KP_PART_COMPRESSED)
			sum += p->from + p->size;
	}
	return sum;
}

static void apply(const struct kp_recipe *r, const struct kp_recipe_source *source)
{
	struct kp_outfile out = {
		.fd = memfd_create("fuzz", MFD_CLOEXEC), .dir_fd = -1, .name = "fuzz"};
	struct kp_recipe_result result;
	struct kpackx_error why = {0};
	bool fits;

	if (kp_recipe_restore(r, source, &out, &result, &why) == KPACK_SUCCESS)
		assert(lseek(out.fd, 0, SEEK_END) == (off_t)r->size);
	if (ftruncate(out.fd, 0) == 0 && r->has_section &&
	    kp_recipe_restore_section(r, source, &out, 7, &result, &why) ==
		    KPACK_SUCCESS &&
	    r->section_size)
		assert(lseek(out.fd, 0, SEEK_END) == (off_t)r->section_size + 7);
	kp_recipe_fits(r, source->changed, &fits, &why);
	close(out.fd);
}

/* Encoding is stable: an encoded recipe parses and encodes to the same bytes. */
static void encode_again(struct kp_recipe *r)
{
	struct kpackx_error why = {0};
	struct kp_recipe again;
	struct kp_source source;
	uint8_t *once, *twice;
	size_t n, m;

	for (size_t i = 0; i < r->n_forms; i++)
		r->forms[i].kept = 0;
	if (kp_recipe_encode(r, &once, &n, &why) != KPACK_SUCCESS)
		return;
	source = kp_source_memory(once, n);
	if (kp_recipe_read(&source, &again, &why))
		__builtin_trap();
	if (kp_recipe_encode(&again, &twice, &m, &why) != KPACK_SUCCESS)
		__builtin_trap();
	assert(n == m && memcmp(once, twice, n) == 0);
	free(once);
	free(twice);
	kp_recipe_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kp_source stored = kp_source_memory(data, size);
	int fd = memfd_create("changed", MFD_CLOEXEC);
	struct kpackx_error why = {0};
	struct kp_source changed;
	struct kp_recipe r;
	bool *have;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	changed = kp_source_fd(fd, 0, size);
	if (kp_recipe_read(&stored, &r, &why) != KPACK_SUCCESS) {
		assert(why.code != KPACK_SUCCESS && why.text[0]);
		close(fd);
		return 0;
	}
	have = malloc(r.n_images + 1);
	if (!have)
		__builtin_trap();
	for (size_t i = 0; i < r.n_images; i++) {
		have[i] = i % 3 != 1;
		r.images[i].has_xxh3 &= r.images[i].xxh3[0] & 1;
	}
	if (work(&r) <= BYTES_MAX) {
		apply(&r, &(struct kp_recipe_source){&changed, have, give_anything, &r});
		apply(&r, &(struct kp_recipe_source){&changed, NULL, give_anything, &r});
	}
	encode_again(&r);
	free(have);
	kp_recipe_fini(&r);
	close(fd);
	return 0;
}
