/* SPDX-License-Identifier: MIT */
#include "key_owners.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"

/* A key, and the file that has it. */
struct claim {
	const char *key;
	size_t file;
	bool lost;
};

static size_t count_keys(const struct library_found *found)
{
	size_t n = 0;

	for (size_t i = 0; i < found->tree->count; i++)
		n += found->objects[i] ? found->objects[i]->n_keys : 0;
	return n;
}

static void list_claims(const struct library_found *found, struct claim *claims)
{
	for (size_t i = 0; i < found->tree->count; i++) {
		const struct library_object *o = found->objects[i];

		for (size_t k = 0; o && k < o->n_keys; k++)
			*claims++ = (struct claim){o->keys[k], i, false};
	}
}

/* Equal keys are sorted by file number, which is the order of paths. */
static int by_key(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : KP_ORDER(x->file, y->file);
}

static bool share_arch(const struct library_object *a, const struct library_object *b)
{
	for (size_t i = 0; i < a->n_arches; i++)
		for (size_t k = 0; k < b->n_arches; k++)
			if (strcmp(a->arches[i], b->arches[k]) == 0)
				return true;
	return false;
}

static void drop_key(struct library_object *o, const char *key)
{
	for (size_t i = 0; i < o->n_keys; i++) {
		if (o->keys[i] != key)
			continue;
		free(o->keys[i]);
		facts_fini(&o->key_facts[i]);
		o->n_keys--;
		memmove(&o->keys[i], &o->keys[i + 1], (o->n_keys - i) * sizeof(*o->keys));
		memmove(&o->key_facts[i], &o->key_facts[i + 1],
			(o->n_keys - i) * sizeof(*o->key_facts));
		return;
	}
}

/* LOSER loses its key if one of the N claims before it has it for a common GPU. */
static void settle_one(struct library_found *found, const struct claim *group, size_t n,
		       struct claim *loser)
{
	struct library_object *o = found->objects[loser->file];

	for (size_t i = 0; i < n && !loser->lost; i++) {
		if (group[i].lost || !share_arch(found->objects[group[i].file], o))
			continue;
		loser->lost = true;
		if (!o->warning)
			library_warn(o, "the key %s is that of %s", loser->key,
				     found->tree->items[group[i].file].path);
	}
}

static void settle_group(struct library_found *found, struct claim *group, size_t n)
{
	for (size_t i = 1; i < n; i++)
		settle_one(found, group, i, &group[i]);
	for (size_t i = 1; i < n; i++)
		if (group[i].lost)
			drop_key(found->objects[group[i].file], group[i].key);
}

void key_owners_settle(struct library_found *found)
{
	size_t n = count_keys(found);
	struct claim *claims = xmalloc(n * sizeof(*claims));

	list_claims(found, claims);
	if (n)
		qsort(claims, n, sizeof(*claims), by_key);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && strcmp(claims[end].key, claims[i].key) == 0;)
			end++;
		settle_group(found, &claims[i], end - i);
	}
	free(claims);
}
