/* SPDX-License-Identifier: MIT */
/*
 * A key says where in the item its field is, and of what kind: so one comparator serves every
 * struct.  Numbers are compared as unsigned ones of their own size.  Texts are compared byte by
 * byte and never by the locale, because archives and listings must not depend on who makes them.
 */
#include "order.h"

#include <stdlib.h>
#include <string.h>

#include "span.h"

struct keys {
	const struct kp_sort_key *keys;
	size_t count;
};

uint64_t kp_number_at(const void *at, size_t size)
{
	uint8_t one;
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	/* a constant size is one load instead of a call */
	switch (size) {
	case 1:
		return memcpy(&one, at, 1), one;
	case 2:
		return memcpy(&two, at, 2), two;
	case 4:
		return memcpy(&four, at, 4), four;
	default:
		return memcpy(&eight, at, 8), eight;
	}
}

int kp_compare_by(const void *a, const void *b, const struct kp_sort_key *keys,
		  size_t n_keys)
{
	for (const struct kp_sort_key *k = keys; k < keys + n_keys; k++) {
		const char *x = (const char *)a + k->offset,
			   *y = (const char *)b + k->offset;
		int order;
		/* fields of structs are aligned, so that they can be read through a pointer */
		if (k->kind == 't') {
			const char *s = *(char *const *)(const void *)x,
				   *t = *(char *const *)(const void *)y;
			order = s && t ? strcmp(s, t) : (s != NULL) - (t != NULL);
		} else if (k->kind == 's') {
			order = kp_span_cmp(*(const struct kp_span *)(const void *)x,
					    *(const struct kp_span *)(const void *)y);
		} else if (k->kind == 'm') {
			order = memcmp(x, y, k->size);
		} else {
			uint64_t m = kp_number_at(x, k->size),
				 n = kp_number_at(y, k->size);
			order = KP_ORDER(m, n);
		}
		if (order)
			return order;
	}
	return 0;
}

static int compare_items(const void *a, const void *b, void *keys)
{
	const struct keys *k = keys;
	return kp_compare_by(a, b, k->keys, k->count);
}

void kp_sort_by(void *array, size_t count, size_t item, const struct kp_sort_key *keys,
		size_t n_keys)
{
	struct keys k = {keys, n_keys};
	if (count > 1) /* qsort_r must not see the NULL of an empty array */
		qsort_r(array, count, item, compare_items, &k);
}

size_t kp_lower_bound_by(const void *array, size_t count, size_t item, const void *probe,
			 const struct kp_sort_key *keys, size_t n_keys)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (kp_compare_by((const char *)array + middle * item, probe, keys,
				  n_keys) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *kp_find_by(const void *array, size_t count, size_t item, const void *probe,
		 const struct kp_sort_key *keys, size_t n_keys)
{
	size_t at = kp_lower_bound_by(array, count, item, probe, keys, n_keys);
	const char *found;

	if (at == count) /* of none ARRAY may be NULL, to which nothing may be added */
		return NULL;
	found = (const char *)array + at * item;
	return kp_compare_by(found, probe, keys, n_keys) ? NULL : (void *)found;
}
