/* SPDX-License-Identifier: MIT */
#include "kernel_list.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/archive/naming.h"

static bool has_arch(const struct kp_toc *toc, size_t binary, uint16_t arch)
{
	size_t end = toc->binaries[binary + 1].first;

	for (size_t i = toc->binaries[binary].first; i < end; i++)
		if (toc->entries[i].arch == arch)
			return true;
	return false;
}

struct query {
	const struct kp_toc *toc;
	struct kp_span name;
	uint16_t arch;
	struct kp_kernel_list *list;
};

/* True if KEY, which begins with "NAME#", is NAME with a number. */
static bool has_number(struct kp_span key, struct kp_span name)
{
	return kp_key_split(key).binary.size == name.size;
}

/* Add the wanted binaries among [LOW, HIGH). */
static bool add_range(const struct query *q, size_t low, size_t high, bool numbered)
{
	struct kp_kernel_list *list = q->list;

	for (size_t i = low; i < high; i++) {
		struct kp_span key = kp_toc_key(q->toc, i);

		if ((numbered && !has_number(key, q->name)) ||
		    !has_arch(q->toc, i, q->arch))
			continue;
		if (!kp_grow(&list->keys, list->n, &list->cap, sizeof(*list->keys)))
			return false;
		list->keys[list->n++] = key;
	}
	return true;
}

/*
 * Add the keys that begin with NAME and the byte NEXT.  Other keys are between these
 * ranges: in byte order "x-y" is between "x#0" and "x/y", and "x!" between "x" and "x#0".
 */
static bool add_behind(const struct query *q, char next)
{
	uint8_t prefix[KP_NAME_MAX + 1];
	struct kp_span s = {prefix, q->name.size + 1};
	size_t low;

	memcpy(prefix, q->name.data, q->name.size);
	prefix[q->name.size] = (uint8_t)next;
	low = kp_toc_lower_bound(q->toc, s);
	prefix[q->name.size]++;
	return add_range(q, low, kp_toc_lower_bound(q->toc, s), next == '#');
}

static bool add_all(const struct query *q)
{
	size_t at = kp_toc_lower_bound(q->toc, q->name);
	bool is_key;

	if (q->name.size == 0)
		return add_range(q, 0, q->toc->n_binaries, false);
	if (q->name.size > KP_NAME_MAX) /* no key is so long */
		return true;
	is_key = at < q->toc->n_binaries && kp_span_eq(kp_toc_key(q->toc, at), q->name);
	return add_range(q, at, at + is_key, false) && add_behind(q, '#') &&
	       add_behind(q, '/');
}

static int cmp_number(const void *a, const void *b)
{
	struct kp_span x = *(const struct kp_span *)a, y = *(const struct kp_span *)b;
	struct kp_key kx = kp_key_split(x), ky = kp_key_split(y);
	int c = kp_span_cmp(kx.binary, ky.binary);

	if (c == 0)
		c = KP_ORDER(kx.index, ky.index);
	return c ? c : KP_ORDER(x.size, y.size);
}

/* Move "x#10" after "x#2": sort keys with the same beginning up to '#' by number. */
static void order_numbers(struct kp_span *keys, size_t n)
{
	for (size_t i = 0, run; i < n; i += run) {
		size_t prefix = kp_key_split(keys[i]).binary.size + 1;

		run = 1;
		if (prefix > keys[i].size)
			continue; /* it has no number */
		while (i + run < n && kp_span_starts(keys[i + run], keys[i].data, prefix))
			run++;
		qsort(keys + i, run, sizeof(*keys), cmp_number);
	}
}

bool kp_kernel_list_make(const struct kp_toc *toc, struct kp_span name, uint16_t arch,
			 struct kp_kernel_list *out)
{
	struct query q = {toc, name, arch, out};

	*out = (struct kp_kernel_list){0};
	if (!add_all(&q)) {
		free(out->keys);
		return false;
	}
	order_numbers(out->keys, out->n);
	return true;
}
