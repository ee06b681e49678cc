/* SPDX-License-Identifier: MIT */
#include "key_suffix.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/hash.h"
#include "packer/cli/xalloc.h"

/*
 * A row of the table: an ordinal that is named, or a kind and how many objects have it as
 * suffix.
 */
struct suffix_seen {
	uint64_t hash;
	uint32_t times;
};

static uint64_t hash_row(const void *arg, uint32_t row)
{
	const struct key_suffixes *n = arg;

	return n->rows[row].hash;
}

/*
 * Returns the row of HASH, which is added if missing.  The rows are hashed because an
 * archive of bitcode may have thousands of objects for one architecture.
 */
static struct suffix_seen *find_row(struct key_suffixes *n, uint64_t hash)
{
	uint32_t *slot;

	if (!kp_slots_grow(&n->slots, hash_row, n))
		xalloc_fail(0);
	slot = kp_slots_first(&n->slots, hash);
	while (*slot && n->rows[*slot - 1].hash != hash)
		slot = kp_slots_next(&n->slots, slot);
	if (!*slot) {
		kp_slots_put(&n->slots, slot, (uint32_t)n->count);
		xgrow(&n->rows, n->count, &n->cap, sizeof(*n->rows));
		n->rows[n->count++] = (struct suffix_seen){hash, 0};
	}
	return &n->rows[*slot - 1];
}

void key_suffixes_fini(struct key_suffixes *n)
{
	free(n->rows);
	free(n->slots.slots);
	*n = (struct key_suffixes){0};
}

#define KIND_MAX 40

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '+' || c == '-';
}

/*
 * Write KIND, cut to KIND_MAX bytes.  Bytes that keys cannot have, or that have a meaning
 * in keys ("/", "#", and "." before a number), become "_".
 */
static size_t show_kind(struct kp_span kind, char out[KIND_MAX + 1])
{
	size_t n = kind.size < KIND_MAX ? kind.size : KIND_MAX;

	for (size_t i = 0; i < n; i++) {
		char c = (char)kind.data[i];

		out[i] = is_plain(c) ? c : '_';
	}
	out[n] = 0;
	return n;
}

bool key_suffix_choose(struct key_suffixes *n, const char *arch, struct kp_span kind,
		       uint32_t ordinal, char out[KEY_SUFFIX_MAX])
{
	char shown[KIND_MAX + 1];
	struct suffix_seen *row;
	size_t size;

	if (!n->arch || strcmp(n->arch, arch) != 0)
		key_suffixes_fini(n);
	n->arch = arch;
	row = find_row(n, kp_slot_hash(&ordinal, sizeof(ordinal), 1));
	out[0] = 0;
	if (row->times++)
		return false;
	/* the first object of the architecture has no suffix, whatever its kind */
	if (n->n_objects++ == 0)
		return true;
	size = show_kind(kind, shown);
	row = find_row(n, kp_slot_hash(shown, size, 2));
	if (++row->times == 1)
		snprintf(out, KEY_SUFFIX_MAX, "@%s", shown);
	else
		snprintf(out, KEY_SUFFIX_MAX, "@%s.%u", shown, row->times);
	return true;
}
