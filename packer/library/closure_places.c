/* SPDX-License-Identifier: MIT */
#include "closure_places.h"
#include <stdlib.h>
#include "core/base/path.h"
#include "arch_name.h"
#include "tensile_directory.h"
#include "packer/cli/xalloc.h"

/* --- names --------------------------------------------------------------------------- */

struct kp_span path_last(struct kp_span path)
{
	size_t n = path.size;

	while (n && path.data[n - 1] != '/')
		n--;
	return (struct kp_span){path.data + n, path.size - n};
}

bool name_ends(struct kp_span name, const char *ending)
{
	size_t n = strlen(ending);

	return name.size >= n && memcmp(name.data + name.size - n, ending, n) == 0;
}

bool name_has(struct kp_span name, const char *part)
{
	return memmem(name.data, name.size, part, strlen(part)) != NULL;
}

const char *tensile_library_of(const struct library_found *found, size_t file)
{
	static const char *const names[] = {"rocblas", "hipblaslt", "hipsparselt"};
	const struct library_object *object = found->objects[file];
	const char *path = found->tree->items[file].path;
	struct kp_span rest;

	for (size_t i = 0; object && i < KP_COUNT(names); i++)
		if (strcmp(object->library, names[i]) == 0)
			return names[i];
	for (size_t i = 0; object && i < KP_COUNT(names); i++)
		if (tensile_directory_has(found->tree, path, names[i], &rest))
			return names[i];
	return NULL;
}

bool tensile_gpu_of_name(struct kp_span name, char out[KP_TARGET_TEXT_MAX])
{
	if (!arch_of_name(name, out))
		return false;
	out[strcspn(out, ":")] = '\0';
	return true;
}

static bool cut_start(struct kp_span *s, const char *start)
{
	size_t n = strlen(start);

	if (!kp_span_starts(*s, start, n))
		return false;
	*s = (struct kp_span){s->data + n, s->size - n};
	return true;
}

static bool cut_end(struct kp_span *s, const char *end)
{
	if (!name_ends(*s, end))
		return false;
	s->size -= strlen(end);
	return true;
}

bool tensile_is_parent(struct kp_span name, char gpu[KP_TARGET_TEXT_MAX])
{
	static const char *const endings[] = {".dat", ".dat.zlib", ".yaml"};
	static const char *const starts[] = {"TensileLibrary_lazy_", "TensileLibrary_",
					     "TensileLiteLibrary_lazy_"};
	bool cut = false;

	gpu[0] = '\0';
	for (size_t i = 0; i < KP_COUNT(endings) && !cut; i++)
		cut = cut_end(&name, endings[i]);
	if (!cut)
		return false;
	if (kp_span_is(name, "TensileLibrary"))
		return true;
	cut = false;
	for (size_t i = 0; i < KP_COUNT(starts) && !cut; i++)
		cut = cut_start(&name, starts[i]);
	if (!cut || !arch_of_directory(name, gpu, NULL))
		return false;
	gpu[strcspn(gpu, ":")] = '\0';
	return true;
}

bool tensile_merged_gpu(struct kp_span name, char gpu[KP_TARGET_TEXT_MAX])
{
	return cut_start(&name, "TensileLibrary_") && cut_end(&name, ".co") &&
	       arch_of_directory(name, gpu, NULL);
}

/* --- the pass ------------------------------------------------------------------------ */

static unsigned flags_of(struct kp_span name)
{
	unsigned flags = 0;
	char gpu[KP_TARGET_TEXT_MAX];

	if (tensile_is_parent(name, gpu))
		return PLACE_PARENT;
	if (name_ends(name, ".co"))
		flags |= PLACE_CO;
	if (name_ends(name, ".hsaco"))
		flags |= PLACE_HSACO;
	if (flags && name_has(name, "-xnack+"))
		flags |= PLACE_XNACK_ON;
	if ((flags & PLACE_HSACO) && kp_span_starts(name, "Kernels", 7))
		flags |= kp_span_starts(name, "Kernels.", 8) ? PLACE_HELPER
							     : PLACE_HELPERS;
	if (tensile_merged_gpu(name, gpu))
		flags |= PLACE_MERGED;
	return flags;
}

static void add_place(struct tensile_places *p, const struct code_place *place)
{
	xgrow(&p->items, p->count, &p->cap, sizeof(*p->items));
	p->items[p->count++] = *place;
}

/* DIR, or if it is a GPU's directory, the directory above it. */
static struct kp_span root_of(struct kp_span dir)
{
	struct kp_span name = path_last(dir);
	char gpu[KP_TARGET_TEXT_MAX];

	if (arch_of_directory(name, gpu, NULL))
		dir.size -= name.size + (name.size < dir.size);
	return dir;
}

/* Add a file for all of its directory, for its processor, and for the whole library. */
static void add_file(struct tensile_places *p, const char *path)
{
	struct code_place place = {.dir = kp_path_directory(path)};
	struct kp_span name = path_last(kp_span_str(path));

	place.flags = flags_of(name);
	if (!place.flags)
		return;
	add_place(p, &place);
	if (tensile_is_parent(name, place.gpu) ? place.gpu[0] != '\0'
					       : tensile_gpu_of_name(name, place.gpu))
		add_place(p, &place);
	place.whole = true;
	place.gpu[0] = '\0';
	place.dir = root_of(place.dir);
	add_place(p, &place);
}

static int by_place(const void *a, const void *b)
{
	const struct code_place *x = a, *y = b;
	int c = kp_span_cmp(x->dir, y->dir);

	if (!c)
		c = x->whole - y->whole;
	return c ? c : strcmp(x->gpu, y->gpu);
}

void tensile_places_read(const struct file_tree *tree, struct tensile_places *out)
{
	size_t n = 0;

	*out = (struct tensile_places){0};
	for (size_t i = 0; i < tree->count; i++)
		add_file(out, tree->items[i].path);
	if (out->count == 0)
		return;
	qsort(out->items, out->count, sizeof(*out->items), by_place);
	for (size_t i = 1; i < out->count; i++) {
		if (by_place(&out->items[n], &out->items[i]) == 0)
			out->items[n].flags |= out->items[i].flags;
		else
			out->items[++n] = out->items[i];
	}
	out->count = n + 1;
}

void tensile_places_fini(struct tensile_places *places)
{
	free(places->items);
	*places = (struct tensile_places){0};
}

static unsigned get_flags(const struct tensile_places *places,
			  const struct code_place *key)
{
	const struct code_place *found = NULL;

	if (places->count)
		found = bsearch(key, places->items, places->count, sizeof(*key),
				by_place);
	return found ? found->flags : 0;
}

unsigned tensile_places_get(const struct tensile_places *places, struct kp_span dir,
			    const char *gpu)
{
	struct code_place key = {.dir = dir};

	if (strlen(gpu) >= sizeof(key.gpu))
		return 0;
	strcpy(key.gpu, gpu);
	return get_flags(places, &key);
}

unsigned tensile_places_all(const struct tensile_places *places, struct kp_span dir)
{
	return get_flags(places,
			 &(struct code_place){.dir = root_of(dir), .whole = true});
}
