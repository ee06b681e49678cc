/* SPDX-License-Identifier: MIT */
/* Target IDs and bundle entry IDs from any text, targets from any ELF header. */
#include "core/target/target.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kp_target *t)
{
	char text[KP_TARGET_TEXT_MAX], same[KP_TARGET_TEXT_MAX];
	struct kp_target again;

	kp_target_format(t, text);
	assert(kp_target_parse(kp_span_str(text), &again, NULL) == KPACK_SUCCESS);
	assert(kp_target_eq(t, &again) && t->known == again.known);
	assert(kp_target_compatible(t, &again) && kp_target_loadable(&again, t));
	kp_target_canonical(kp_span_str(text), same);
	assert(strcmp(text, same) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_span all = {data, size};
	char once[KP_TARGET_TEXT_MAX], twice[KP_TARGET_TEXT_MAX];
	struct kpackx_error why = {0};
	struct kp_entry_id id;
	struct kp_target t;

	if (kp_target_parse(all, &t, &why) == KPACK_SUCCESS)
		check(&t);
	if (kp_entry_id_parse(all, &id)) {
		assert(id.kind.data == data && id.kind.size > 0);
		assert(id.kind.size + 1 + id.triple.size + id.target.size <= size);
		if (kp_target_parse(id.target, &t, NULL) == KPACK_SUCCESS)
			check(&t);
	}
	if (size >= 5 && kp_target_from_elf_flags(data[0], kp_le32(data + 1), &t, &why) ==
				 KPACK_SUCCESS)
		check(&t);

	/* an ID with a NUL is cut there, which may make it another ID */
	kp_target_canonical(all, once);
	kp_target_canonical(kp_span_str(once), twice);
	assert((size && memchr(data, '\0', size)) || strcmp(once, twice) == 0);
	return 0;
}
