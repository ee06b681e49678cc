/* SPDX-License-Identifier: MIT */
#include "built_arches.h"
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "core/target/target.h"

static void add_arch(struct built_arches *a, size_t *cap, const char *arch)
{
	xgrow(&a->items, a->count, cap, sizeof(*a->items));
	a->items[a->count++] = arch;
}

static void add_layout(struct built_arches *a, size_t *cap,
		       const struct kp_recipe *layout)
{
	for (size_t i = 0; i < layout->n_images; i++)
		if (!layout->images[i].host)
			add_arch(a, cap, layout->images[i].arch);
}

/* Whether ARCH is that of database files that are for no particular GPU. */
static bool is_neutral(const char *arch)
{
	return strcmp(arch, KP_ARCH_GENERIC) == 0;
}

/* Whether an archive in REACH has an object of B for ARCH. */
static bool has_object(const struct binary *b, const struct reach *reach,
		       const char *arch)
{
	struct wanted_object want = {
		.name = b->marker.kernel_name, .arch = arch, .kind = kp_span_str("co")};
	struct found_object found = {0};

	for (size_t i = 0; i < b->fat.elf.n_wrappers && !found.archive; i++) {
		want.index = binary_index(b, i);
		installed_find(reach, &want, &found);
	}
	return found.archive;
}

static void add_archives(struct built_arches *a, size_t *cap, const struct reach *reach)
{
	for (size_t i = 0; i < reach->count; i++) {
		const struct reached *r = &reach->items[i];
		size_t n = r->archive->archive
				   ? kp_archive_arch_count(r->archive->archive)
				   : 0;

		for (size_t k = 0; k < n; k++) {
			const char *arch = kp_archive_arch(r->archive->archive, k);

			if (!is_neutral(arch) && reached_by(r, arch))
				add_arch(a, cap, arch);
		}
	}
}

static void sort_arches(struct built_arches *a)
{
	size_t n = 0;

	if (a->count)
		qsort(a->items, a->count, sizeof(*a->items), kp_order_texts);
	for (size_t i = 0; i < a->count; i++)
		if (n == 0 || strcmp(a->items[n - 1], a->items[i]) != 0)
			a->items[n++] = a->items[i];
	a->count = n;
}

static bool has_arch(const struct built_arches *a, const char *arch)
{
	return a->count &&
	       bsearch(&arch, a->items, a->count, sizeof(*a->items), kp_order_texts);
}

/*
 * Keep the architectures of LAYOUT, and those for which an archive has an object of B:
 * further architectures belong to other binaries in the archives.
 */
static void keep_own(struct built_arches *a, const struct built_arches *layout,
		     const struct binary *b, const struct reach *reach)
{
	size_t n = 0;

	a->installed = xcalloc(a->count, sizeof(*a->installed));
	a->in_layout = xcalloc(a->count, sizeof(*a->in_layout));
	for (size_t i = 0; i < a->count; i++) {
		bool known = has_arch(layout, a->items[i]);

		if (!known && !has_object(b, reach, a->items[i]))
			continue;
		a->items[n] = a->items[i];
		a->in_layout[n] = known;
		a->installed[n++] = reach_has_arch(reach, a->items[i]);
	}
	a->count = n;
}

void built_arches_find(const struct binary *b, const struct reach *reach,
		       struct built_arches *a)
{
	struct built_arches layout = {0};
	size_t cap = 0, layout_cap = 0;

	if (b->has_layout)
		add_layout(&layout, &layout_cap, &b->layout);
	sort_arches(&layout);
	for (size_t i = 0; i < layout.count; i++)
		add_arch(a, &cap, layout.items[i]);
	add_archives(a, &cap, reach);
	sort_arches(a);
	keep_own(a, &layout, b, reach);
	free(layout.items);
}

void built_arches_fini(struct built_arches *a)
{
	free(a->items);
	free(a->installed);
	free(a->in_layout);
}

bool built_arches_number(const struct built_arches *a, const char *arch, size_t *number)
{
	const char **found = a->count ? bsearch(&arch, a->items, a->count,
						sizeof(*a->items), kp_order_texts)
				      : NULL;

	if (found)
		*number = (size_t)(found - a->items);
	return found;
}

bool built_arches_installed(const struct built_arches *a, const char *arch)
{
	size_t number;

	return built_arches_number(a, arch, &number) && a->installed[number];
}
