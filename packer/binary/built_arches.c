/* SPDX-License-Identifier: MIT */
#include "built_arches.h"
#include <stdlib.h>
#include <string.h>
#include "packer/base/xalloc.h"
#include "core/target/target.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_arch(struct built_arches *a, size_t *cap, const char *arch)
{
	xgrow(&a->items, a->count, cap, sizeof(*a->items));
	a->items[a->count++] = arch;
}

static void add_layout(struct built_arches *a, size_t *cap,
		       const struct kp_layout *layout)
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
		qsort(a->items, a->count, sizeof(*a->items), by_text);
	for (size_t i = 0; i < a->count; i++)
		if (n == 0 || strcmp(a->items[n - 1], a->items[i]) != 0)
			a->items[n++] = a->items[i];
	a->count = n;
}

kpack_error_t built_arches_find(const struct binary *b, const struct reach *reach,
				struct built_arches *a, struct kpackx_error *why)
{
	size_t cap = 0;

	(void)why;
	if (b->has_layout)
		add_layout(a, &cap, &b->layout);
	else
		add_archives(a, &cap, reach);
	sort_arches(a);
	a->installed = xcalloc(a->count, sizeof(*a->installed));
	for (size_t i = 0; i < a->count; i++)
		a->installed[i] = reach_has_arch(reach, a->items[i]);
	return KPACK_SUCCESS;
}

void built_arches_fini(struct built_arches *a)
{
	free(a->items);
	free(a->installed);
}

bool built_arches_number(const struct built_arches *a, const char *arch, size_t *number)
{
	const char **found =
		a->count ? bsearch(&arch, a->items, a->count, sizeof(*a->items), by_text)
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
