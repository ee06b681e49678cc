/* SPDX-License-Identifier: MIT */
#include "stored_check.h"
#include <stdlib.h>
#include "core/archive/naming.h"
#include "packer/archives/content.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "core/target/target.h"

/* An entry that must exist. */
struct want {
	const char *key;
	uint32_t index; /* of KEY#INDEX; FILE_INDEX: the entry is KEY itself */
	const char *arch;
	const struct plan_object *object;
	bool seen;
};

/* Larger than the index of any wrapper (KP_WRAPPERS_MAX). */
enum { FILE_INDEX = UINT32_MAX };

struct stored_check {
	struct want *items; /* sorted */
	size_t count;
	const char *path; /* of the current archive */
};

static int compare_want(struct kp_span key, uint32_t index, struct kp_span arch,
			const struct want *w)
{
	int c = kp_span_cmp(key, kp_span_str(w->key));

	if (c)
		return c;
	if (index != w->index)
		return KP_ORDER(index, w->index);
	return kp_span_cmp(arch, kp_span_str(w->arch));
}

static int by_name(const void *a, const void *b)
{
	const struct want *x = a;

	return compare_want(kp_span_str(x->key), x->index, kp_span_str(x->arch), b);
}

static void list_object(struct stored_check *c, const struct plan *plan,
			const struct plan_object *o)
{
	const struct plan_container *container = &plan->containers[o->container];
	const char *arch = o->input->images[o->image].arch;

	for (size_t i = 0; i < container->n_indices; i++)
		c->items[c->count++] = (struct want){o->input->key, container->indices[i],
						     arch, o, false};
	for (uint32_t i = o->first_key; i < o->first_key + o->n_keys; i++)
		c->items[c->count++] = (struct want){plan->keys[i].key, FILE_INDEX,
						     plan->keys[i].arch, o, false};
}

struct stored_check *stored_check_new(void)
{
	return xcalloc(1, sizeof(struct stored_check));
}

void stored_check_add(struct stored_check *c, const struct packing *p)
{
	const struct plan *plan = &p->plan;
	size_t n = c->count + plan->n_names + plan->n_keys;

	c->items = xrealloc(c->items, n * sizeof(*c->items));
	for (size_t i = 0; i < plan->n_objects; i++)
		list_object(c, plan, &plan->objects[i]);
	if (c->count)
		qsort(c->items, c->count, sizeof(*c->items), by_name);
}

void stored_check_free(struct stored_check *c)
{
	free(c->items);
	free(c);
}

/* --- one entry --------------------------------------------------------------------- */

/* The index of the first wanted entry that is not less than the given one. */
static size_t lower_bound(const struct stored_check *c, struct kp_span key,
			  uint32_t index, struct kp_span arch)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_want(key, index, arch, &c->items[mid]) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool has_hash(const struct want *w, const struct kp_hash *hash)
{
	const struct input *in = w->object->input;

	return in->known[w->object->image] &&
	       kp_hash_is(hash, in->xxh3[w->object->image]);
}

enum found { FOUND_NONE, FOUND_OTHER, FOUND_TWICE, FOUND };

/* Several objects of one bundle for one architecture share one name. */
static enum found take_want(struct stored_check *c, struct kp_span key, uint32_t index,
			    struct kp_span arch, const struct kp_hash *hash)
{
	enum found found = FOUND_NONE;

	for (size_t i = lower_bound(c, key, index, arch);
	     i < c->count && compare_want(key, index, arch, &c->items[i]) == 0; i++) {
		struct want *w = &c->items[i];

		if (!has_hash(w, hash)) {
			found = found == FOUND_NONE ? FOUND_OTHER : found;
		} else if (w->seen) {
			found = FOUND_TWICE;
		} else {
			w->seen = true;
			return FOUND;
		}
	}
	return found;
}

/* The entry's key has the form KEY, KEY#INDEX or KEY@KIND#INDEX. */
static enum found find_want(struct stored_check *c, const struct kp_entry_info *info,
			    const struct kp_hash *hash)
{
	enum found found = take_want(c, info->key, FILE_INDEX, info->arch, hash);
	struct kp_key key = kp_key_split(info->key);
	const uint8_t *at;

	if (found != FOUND_NONE || key.binary.size == info->key.size ||
	    key.index == FILE_INDEX)
		return found;
	found = take_want(c, key.binary, key.index, info->arch, hash);
	at = memrchr(key.binary.data, '@', key.binary.size);
	if (found != FOUND_NONE || !at)
		return found;
	key.binary.size = (size_t)(at - key.binary.data);
	return take_want(c, key.binary, key.index, info->arch, hash);
}

static bool is_for(struct kp_span arch, char *const *arches, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (kp_span_is(arch, arches[i]))
			return true;
	return n == 0 && kp_span_is(arch, KP_ARCH_GENERIC);
}

static kpack_error_t refuse_entry(const struct stored_check *c,
				  const struct kp_entry_info *info, const char *text,
				  struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: the entry %.*s for %.*s %s",
		       c->path, (int)info->key.size, (const char *)info->key.data,
		       (int)info->arch.size, (const char *)info->arch.data, text);
}

static kpack_error_t check_entry(struct stored_check *c, const struct kpack_archive *a,
				 size_t entry, char *const *arches, size_t n,
				 struct kpackx_error *why)
{
	static const char *const faults[] = {
		[FOUND_NONE] = "was not planned",
		[FOUND_OTHER] = "differs from the bytes that were packed",
		[FOUND_TWICE] = "is also in another archive",
	};
	struct kp_hash hash;
	struct kp_entry_info info;
	enum found found;

	kp_archive_entry(a, entry, &info);
	if (!is_for(info.arch, arches, n))
		return refuse_entry(c, &info, "belongs to another tree", why);
	KP_TRY(content_hash_entry(a, entry, &hash, why));
	found = find_want(c, &info, &hash);
	return found == FOUND ? KPACK_SUCCESS
			      : refuse_entry(c, &info, faults[found], why);
}

kpack_error_t stored_check_archive(struct stored_check *c, const char *path,
				   char *const *arches, size_t n,
				   struct kpackx_error *why)
{
	struct kpack_archive *a = NULL;
	size_t kept, counted;
	kpack_error_t err = below_archive_open(path, &a, why);

	if (err)
		return kp_fail_prefix(why, err, "%s", path);
	c->path = path;
	kp_archive_faults(a, &kept, &counted);
	if (counted)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: has %zu faults", path,
			      counted);
	for (size_t i = 0; i < kp_archive_entry_count(a) && !err; i++)
		err = check_entry(c, a, i, arches, n, why);
	kp_archive_close(a);
	return err;
}

/* --- all of them ------------------------------------------------------------------- */

/* True if an equal object is stored under the same name. */
static bool is_shared(const struct stored_check *c, const struct want *w)
{
	const struct input *in = w->object->input;
	struct kp_span key = kp_span_str(w->key), arch = kp_span_str(w->arch);
	struct kp_hash hash;

	memcpy(hash.bytes, in->xxh3[w->object->image], sizeof(hash.bytes));
	for (size_t i = lower_bound(c, key, w->index, arch);
	     i < c->count && compare_want(key, w->index, arch, &c->items[i]) == 0; i++)
		if (c->items[i].seen && has_hash(&c->items[i], &hash))
			return true;
	return false;
}

kpack_error_t stored_check_end(const struct stored_check *c, struct kpackx_error *why)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct want *w = &c->items[i];

		if (!w->seen && !is_shared(c, w))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: its object for %s is in no archive", w->key,
				       w->arch);
	}
	return KPACK_SUCCESS;
}
