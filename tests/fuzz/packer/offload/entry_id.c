/* SPDX-License-Identifier: MIT */
/* Two bundle entry IDs from any text: the normal form is stable and serves itself. */
#include <stdlib.h>
#include "packer/offload/offload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct entry_id *id)
{
	char *once = entry_id_spell(id);
	struct entry_id again;

	if (!once)
		return;
	if (entry_id_parse(kp_span_str(once), &again) &&
	    entry_id_match(&again, &again, false) != ENTRY_SAME)
		__builtin_trap();
	free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
	size_t n = line ? (size_t)(line - data) : size;
	struct kp_span first = {data, n};
	struct kp_span second = {line ? line + 1 : data, line ? size - n - 1 : size};
	struct entry_id a, b;

	if (!entry_id_parse(first, &a) || !entry_id_parse(second, &b))
		return 0;
	check(&a);
	check(&b);
	if (entry_id_match(&a, &a, true) != ENTRY_SAME)
		__builtin_trap();
	/* HIP/OpenMP compatibility only adds matches */
	if (entry_id_match(&a, &b, false) && !entry_id_match(&a, &b, true))
		__builtin_trap();
	if (entry_ids_conflict(&a, &a) ||
	    (!a.no_environment && !b.no_environment &&
	     entry_ids_conflict(&a, &b) != entry_ids_conflict(&b, &a)))
		__builtin_trap();
	return 0;
}
