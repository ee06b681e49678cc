/* SPDX-License-Identifier: MIT */
/* Layouts: rebuild what they describe from objects with arbitrary bytes. */
#include "core/restore/layout.h"
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/restore/layout_internal.h"

/* Larger sections and payloads are not worth the time. */
#define BYTES_MAX (16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static kpack_error_t give_anything(void *arg, size_t i, void *buf,
				   struct kpackx_error *why)
{
	const struct kp_layout *layout = arg;

	(void)why;
	memset(buf, (int)i, layout->images[i].size);
	return KPACK_SUCCESS;
}

static uint64_t work(const struct kp_layout *l)
{
	uint64_t sum = l->size;

	for (size_t i = 0; i < l->n_containers; i++)
		sum += l->containers[i].payload_size;
	for (size_t i = 0; i < l->n_images; i++)
		sum += l->images[i].size;
	return sum;
}

static void apply(struct kp_layout *l, const struct kp_layout_source *source)
{
	struct kp_outfile out = {
		.fd = memfd_create("fuzz", MFD_CLOEXEC), .dir_fd = -1, .name = "fuzz"};
	struct kp_layout_plan plan;
	struct kpackx_error why = {0};

	if (kp_layout_plan(l, source, &plan, &why) == KPACK_SUCCESS) {
		assert(!plan.exact || (plan.n_dropped == 0 && plan.n_unpacked == 0 &&
				       plan.n_recompressed == 0));
		assert(!plan.exact || plan.size == l->size);
		if (kp_layout_write(l, &plan, source, &out, 0, &why) == KPACK_SUCCESS)
			assert(lseek(out.fd, 0, SEEK_END) == (off_t)plan.size);
		kp_layout_plan_fini(&plan);
	}
	close(out.fd);
}

/* Encoding is stable: an encoded layout parses and encodes to the same bytes. */
static void encode_again(const struct kp_layout *l)
{
	struct kp_layout_bytes once, twice;
	struct kp_layout again;
	struct kpackx_error why = {0};

	if (kp_layout_encode(l, &once, &why) != KPACK_SUCCESS)
		return;
	if (kp_layout_parse((struct kp_span){once.data, once.size}, &again, &why))
		__builtin_trap();
	if (kp_layout_encode(&again, &twice, &why) != KPACK_SUCCESS)
		__builtin_trap();
	assert(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
	free(once.data);
	free(twice.data);
	kp_layout_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kp_source section = kp_source_memory(data, size);
	struct kpackx_error why = {0};
	struct kp_layout l;
	bool *have;

	if (kp_layout_read(&section, &l, &why) != KPACK_SUCCESS) {
		assert(why.code != KPACK_SUCCESS && why.text[0]);
		return 0;
	}
	encode_again(&l);
	have = malloc(l.n_images + 1);
	if (!have)
		__builtin_trap();
	for (size_t i = 0; i < l.n_images; i++) {
		have[i] = i % 3 != 1;
		l.images[i].has_xxh3 = l.images[i].xxh3[0] & 1;
	}
	if (work(&l) <= BYTES_MAX)
		apply(&l, &(struct kp_layout_source){have, give_anything, &l});
	free(have);
	kp_layout_fini(&l);
	return 0;
}
