/* SPDX-License-Identifier: MIT */
#include "report_families.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/gpu/hierarchy.h"

/* --- finding families --------------------------------------------------------------- */

static const char *generic_of(struct kp_span arch, char *text)
{
	struct kp_target t;

	(void)text;
	return kp_target_parse(arch, &t, NULL)
		       ? NULL
		       : kp_processor_generic(kp_span_str(t.processor));
}

static const char *subfamily_of(struct kp_span arch, char *text)
{
	const struct gpu_subfamily *sub = gpu_subfamily_of(arch);

	(void)text;
	return sub ? sub->name : NULL;
}

static const char *family_of(struct kp_span arch, char *text)
{
	const struct gpu_subfamily *sub = gpu_subfamily_of(arch);

	(void)text;
	return sub ? sub->family : NULL;
}

static const char *processor_of(struct kp_span arch, char *text)
{
	struct kp_target t;

	if (kp_target_parse(arch, &t, NULL) || !t.known)
		return NULL;
	memcpy(text, t.processor, strlen(t.processor) + 1);
	return text;
}

static const char *every_gpu(struct kp_span arch, char *text)
{
	struct kp_target t;

	(void)text;
	return kp_target_parse(arch, &t, NULL) || kp_target_neutral(&t) ? NULL
									: "every GPU";
}

#define EVERY_KIND "all"

/*
 * The ways to group architectures; NAME returns the group's name, and may put it into
 * TEXT.
 */
static const struct {
	const char *kind;
	const char *(*name)(struct kp_span arch, char text[KP_TARGET_TEXT_MAX]);
} kinds[] = {
	{"features", processor_of}, {"generic", generic_of}, {"sub-family", subfamily_of},
	{"family", family_of},      {EVERY_KIND, every_gpu},
};

static bool same_members(const struct page_family *a, const struct page_family *b)
{
	return a->n_members == b->n_members &&
	       memcmp(a->members, b->members, a->n_members * sizeof(*a->members)) == 0;
}

static struct page_family *find_family(const struct page_families *all, size_t from,
				       const char *name)
{
	for (size_t i = from; i < all->count; i++)
		if (strcmp(all->items[i].name, name) == 0)
			return &all->items[i];
	return NULL;
}

static struct page_family *add_family(struct page_families *all, const char *kind,
				      const char *name)
{
	struct page_family *family;

	all->items = xrealloc(all->items, (all->count + 1) * sizeof(*all->items));
	family = &all->items[all->count++];
	*family = (struct page_family){
		.kind = kind,
		.all = strcmp(kind, EVERY_KIND) == 0,
	};
	snprintf(family->name, sizeof(family->name), "%s", name);
	return family;
}

static void add_member(struct page_family *family, uint32_t row)
{
	family->members = xrealloc(family->members,
				   (family->n_members + 1) * sizeof(*family->members));
	family->members[family->n_members++] = row;
}

static void add_kind(const struct page_figures *f, size_t kind, struct page_families *out)
{
	size_t from = out->count;
	char text[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < f->arches.count; i++) {
		const char *name = kinds[kind].name(f->arches.items[i].name, text);
		struct page_family *family = name ? find_family(out, from, name) : NULL;

		if (!name)
			continue;
		if (!family)
			family = add_family(out, kinds[kind].kind, name);
		add_member(family, (uint32_t)i);
	}
}

/* A family before number N that has the same members as FAMILY, or NULL. */
static struct page_family *same_before(struct page_families *all, size_t n,
				       const struct page_family *family)
{
	for (size_t i = 0; i < n; i++)
		if (same_members(&all->items[i], family))
			return &all->items[i];
	return NULL;
}

static void add_name(struct page_family *to, const char *name)
{
	size_t n = strlen(to->name);

	snprintf(to->name + n, sizeof(to->name) - n, " / %s", name);
}

/*
 * Drop families of one member, which show nothing; join families with the same members
 * into one with several names.
 */
static void join_equal(struct page_families *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct page_family *family = &all->items[i];
		struct page_family *same = same_before(all, n, family);

		if (same && strcmp(same->name, family->name) != 0)
			add_name(same, family->name);
		if (same || family->n_members < 2)
			free(family->members);
		else
			all->items[n++] = *family;
	}
	all->count = n;
}

/* --- sizes -------------------------------------------------------------------------- */

/* Entries by architecture, and room to mark contents. */
struct index {
	uint32_t *items; /* sorted by row of the architecture */
	size_t *first;   /* per row its first item; last the end */
	uint32_t *marks; /* per content: the family that counted it last; 0: none */
	uint32_t mark;
};

static void index_fini(struct index *x)
{
	free(x->items);
	free(x->first);
	free(x->marks);
}

static void index_init(const struct page_figures *f, struct index *x)
{
	*x = (struct index){
		.items = xmalloc(f->n_items * sizeof(*x->items)),
		.first = xcalloc(f->arches.count + 2, sizeof(*x->first)),
		.marks = xcalloc(f->n_contents, sizeof(*x->marks)),
	};
	for (size_t i = 0; i < f->n_items; i++)
		x->first[f->items[i].arch_row + 2]++;
	for (size_t i = 2; i < f->arches.count + 2; i++)
		x->first[i] += x->first[i - 1];
	for (size_t i = 0; i < f->n_items; i++)
		x->items[x->first[f->items[i].arch_row + 1]++] = (uint32_t)i;
}

/*
 * Bytes of an architecture's contents that were not counted under the current mark yet.
 */
static uint64_t count_arch(const struct page_figures *f, struct index *x, uint32_t row)
{
	uint64_t sum = 0;

	for (size_t i = x->first[row]; i < x->first[row + 1]; i++) {
		const struct page_object *o = &f->objects[f->items[x->items[i]].object];

		if (x->marks[o->content] == x->mark)
			continue;
		x->marks[o->content] = x->mark;
		page_add(&sum, o->stored);
	}
	return sum;
}

static void count_family(const struct page_figures *f, struct index *x,
			 struct page_family *family)
{
	for (size_t i = 0; i < family->n_members; i++) {
		uint64_t bytes;

		x->mark++;
		bytes = count_arch(f, x, family->members[i]);
		page_add(&family->apart, bytes);
		if (i == 0 || bytes < family->least)
			family->least = bytes;
		if (bytes > family->most)
			family->most = bytes;
	}
	x->mark++;
	for (size_t i = 0; i < family->n_members; i++)
		page_add(&family->together, count_arch(f, x, family->members[i]));
}

static int by_saving(const void *pa, const void *pb)
{
	const struct page_family *a = pa, *b = pb;
	uint64_t sa = a->apart - a->together, sb = b->apart - b->together;

	if (sa != sb)
		return KP_ORDER(sb, sa);
	return strcmp(a->name, b->name);
}

void page_families_open(const struct page_figures *f, struct page_families *out)
{
	struct index x;

	*out = (struct page_families){0};
	for (size_t i = 0; i < KP_COUNT(kinds); i++)
		add_kind(f, i, out);
	join_equal(out);
	index_init(f, &x);
	for (size_t i = 0; i < out->count; i++)
		count_family(f, &x, &out->items[i]);
	index_fini(&x);
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_saving);
}

void page_families_close(struct page_families *families)
{
	for (size_t i = 0; i < families->count; i++)
		free(families->items[i].members);
	free(families->items);
	*families = (struct page_families){0};
}
