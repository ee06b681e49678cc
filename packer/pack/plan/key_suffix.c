/* SPDX-License-Identifier: MIT */
#include "key_suffix.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/hash.h"
#include "packer/base/xalloc.h"

/*
 * A row of the table: an ordinal that is named, or a kind and how many objects have it as
 * suffix.
 */
struct suffix_seen {
	uint64_t hash; /* 0: free */
	uint32_t times;
};

/*
 * Find the row of HASH, or the free row for it.  The table is hashed because an archive
 * of bitcode may have thousands of objects for one architecture.
 */
static struct suffix_seen *find_row(const struct key_suffixes *n, uint64_t hash)
{
	size_t i = (size_t)hash & (n->cap - 1);

	while (n->table[i].hash && n->table[i].hash != hash)
		i = (i + 1) & (n->cap - 1);
	return &n->table[i];
}

/* Make room for two more rows, with half of the table free. */
static void reserve_rows(struct key_suffixes *n)
{
	struct key_suffixes bigger = *n;

	if (n->cap >= 2 * (n->count + 2))
		return;
	bigger.cap = n->cap ? 2 * n->cap : 16;
	bigger.table = xcalloc(bigger.cap, sizeof(*bigger.table));
	for (size_t i = 0; i < n->cap; i++)
		if (n->table[i].hash)
			*find_row(&bigger, n->table[i].hash) = n->table[i];
	free(n->table);
	*n = bigger;
}

/* Returns the row of HASH, which is added if missing. */
static struct suffix_seen *add_row(struct key_suffixes *n, uint64_t hash)
{
	struct suffix_seen *row = find_row(n, hash);

	n->count += !row->hash;
	row->hash = hash;
	return row;
}

static uint64_t hash_of(const void *data, size_t size, uint64_t seed)
{
	return kp_hash64(data, size, seed) | 1;
}

void key_suffixes_fini(struct key_suffixes *n)
{
	free(n->table);
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
	reserve_rows(n);
	row = add_row(n, hash_of(&ordinal, sizeof(ordinal), 1));
	out[0] = 0;
	if (row->times++)
		return false;
	/* the first object of the architecture has no suffix, whatever its kind */
	if (n->n_objects++ == 0)
		return true;
	size = show_kind(kind, shown);
	row = add_row(n, hash_of(shown, size, 2));
	if (++row->times == 1)
		snprintf(out, KEY_SUFFIX_MAX, "@%s", shown);
	else
		snprintf(out, KEY_SUFFIX_MAX, "@%s.%u", shown, row->times);
	return true;
}
