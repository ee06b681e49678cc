/* SPDX-License-Identifier: MIT */
#include "row_names.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"

struct named {
	struct library_object *object;
	const struct cache_file *part;
	int64_t hip_version;
	size_t place; /* its number among all rows */
};

struct names {
	struct named *items;
	size_t count;
	const struct cache_file *last; /* the part whose rows are not renamed yet */
};

/* --- keys ----------------------------------------------------------------------------- */

/* The row's key before renaming, which appends '@' and a version. */
static struct kp_span first_key(const struct named *row)
{
	const char *key = row->object->keys[0];

	return (struct kp_span){(const uint8_t *)key, strcspn(key, "@")};
}

static int by_key(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int c = kp_span_cmp(first_key(x), first_key(y));

	return c ? c : KP_ORDER(x->place, y->place);
}

/* Count the rows before S[N], which share its key, that are named after its version. */
static size_t count_version(const struct named *s, size_t n)
{
	size_t count = 0;

	for (size_t i = 1; i < n; i++)
		count += s[i].object && s[i].hip_version == s[n].hip_version;
	return count;
}

static void rename_row(const struct named *s, size_t n)
{
	char **key = &s[n].object->keys[0], *renamed;
	size_t same = count_version(s, n);
	char number[24] = "";

	if (same)
		snprintf(number, sizeof(number), ".%zu", same + 1);
	renamed = xasprintf("%s@%lld%s", *key, (long long)s[n].hip_version, number);
	free(*key);
	*key = renamed;
}

/* --- rows of several caches ----------------------------------------------------------- */

static bool same_facts(const struct named *a, const struct named *b)
{
	const struct facts *x = &a->object->facts, *y = &b->object->facts;

	return x->size == y->size && memcmp(x->pairs, y->pairs, x->size) == 0;
}

static kpack_error_t compare_code(const struct named *a, const struct named *b,
				  bool *same, struct kpackx_error *why)
{
	struct kp_source x =
		kp_source_fd(a->part->file.fd, a->object->offset, a->object->size);
	struct kp_source y =
		kp_source_fd(b->part->file.fd, b->object->offset, b->object->size);

	return kp_source_compare(&x, &y, same, why);
}

/* Whether S[N] is also a row of another cache; if so, remove S[N]. */
static kpack_error_t find_twin(struct named *s, size_t n, bool *found,
			       struct kpackx_error *why)
{
	bool same;

	*found = false;
	for (size_t i = 0; i < n && !*found; i++)
		if (s[i].object && s[i].part != s[n].part && same_facts(&s[i], &s[n])) {
			KP_TRY(compare_code(&s[i], &s[n], &same, why));
			if (!same)
				return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					       "cache_v1: other code than in %s for %s",
					       s[i].part->cache, s[n].object->keys[0]);
			*found = true;
		}
	if (*found) {
		library_object_fini(s[n].object);
		s[n].object = NULL;
	}
	return KPACK_SUCCESS;
}

/* --- all ------------------------------------------------------------------------------ */

/* Name N rows with one key. */
static kpack_error_t name_group(const struct names *names, struct named *s, size_t n,
				struct kpackx_error *why)
{
	bool twin;

	if (n > ROW_NAMES_SAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: more than %d rows for %s", ROW_NAMES_SAME_MAX,
			       s->object->keys[0]);
	for (size_t i = 1; i < n; i++) {
		if (s[i].part != names->last)
			continue;
		KP_TRY(find_twin(s, i, &twin, why));
		if (!twin)
			rename_row(s, i);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t name_all(const struct names *names, struct kpackx_error *why)
{
	struct named *s = names->items;
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0, end; i < names->count && !err; i = end) {
		struct kp_span key = first_key(&s[i]);

		for (end = i + 1;
		     end < names->count && kp_span_eq(first_key(&s[end]), key);)
			end++;
		err = name_group(names, &s[i], end - i, why);
	}
	return err;
}

/* Close the gaps of removed rows. */
static void close_gaps(struct cache_file *part)
{
	size_t n = 0;

	for (size_t i = 0; i < part->n_objects; i++)
		if (part->objects[i].n_keys) {
			part->hip_versions[n] = part->hip_versions[i];
			part->objects[n++] = part->objects[i];
		}
	part->n_objects = n;
}

static void list_part(struct names *names, const struct cache_file *part)
{
	for (size_t i = 0; part->hip_versions && i < part->n_objects; i++) {
		names->items[names->count] = (struct named){
			&part->objects[i], part, part->hip_versions[i], names->count};
		names->count++;
	}
}

kpack_error_t row_names_make_unique(struct cache_files *parts, struct kpackx_error *why)
{
	struct cache_file *last = &parts->items[parts->count - 1];
	struct names names = {.last = last};
	kpack_error_t err;
	size_t n = 1;

	for (size_t i = 0; i < parts->count; i++)
		n += parts->items[i].n_objects;
	names.items = xcalloc(n, sizeof(*names.items));
	for (size_t i = 0; i < parts->count; i++)
		list_part(&names, &parts->items[i]);
	qsort(names.items, names.count, sizeof(*names.items), by_key);
	err = name_all(&names, why);
	close_gaps(last);
	free(names.items);
	return err;
}
