/* SPDX-License-Identifier: MIT */
#include "interrupted.h"
#include <stdlib.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/archives/binary.h"
#include "marker.h"

/* Whether a search path leads to an archive GROUP_..., GROUP-... or GROUP.N_.... */
static bool names_group(const struct kp_marker *marker, const char *group)
{
	size_t n = strlen(group);

	for (size_t i = 0; i < marker->n_search_paths; i++) {
		const char *file = kp_path_name(marker->search_paths[i]);

		if (strncmp(file, group, n) == 0 && file[n] && strchr("_-.", file[n]))
			return true;
	}
	return false;
}

static bool same_objects(const struct kp_recipe *layout, const struct input *in)
{
	if (layout->n_images != in->n_images)
		return false;
	for (size_t i = 0; i < in->n_images; i++) {
		const struct kp_recipe_image *image = &layout->images[i];

		if (image->size != in->images[i].size)
			return false;
		if (in->known[i] &&
		    (!image->has_xxh3 ||
		     memcmp(image->xxh3, in->xxh3[i], sizeof(image->xxh3)) != 0))
			return false;
	}
	return true;
}

/* Whether A and B have the attributes that converting preserves in common. */
static bool same_attributes(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
	       a->st_gid == b->st_gid && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int by_number(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return KP_ORDER(*x, *y);
}

static void join_links(const struct converter *c, size_t head, size_t entry)
{
	size_t n, more, *links = scan_links(c->scan, head, &n);
	size_t *others = scan_links(c->scan, entry, &more);

	links = xrealloc(links, (n + more) * sizeof(*links));
	memcpy(links + n, others, more * sizeof(*others));
	qsort(links, n + more, sizeof(*links), by_number);
	scan_chain(c->scan, links, n + more);
	c->dispositions->items[entry].fate = FATE_LINKED;
	free(links);
	free(others);
}

static kpack_error_t fail_conflict(const struct input *in, const char *what,
				   struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "its marker names %s, whose %s: give another --group or a "
		       "--key-prefix",
		       in->key, what);
}

static kpack_error_t look_at_binary(const struct converter *c, size_t entry,
				    struct binary *b, struct kpackx_error *why)
{
	const struct plan_binary *binary;
	const struct input *in;
	uint32_t found;

	/* faults of a marker are not reported here */
	if (binary_read_marker(b, NULL) || !names_group(&b->marker, c->group) ||
	    !plan_find(c->plan, kp_span_str(b->marker.kernel_name), &found))
		return KPACK_SUCCESS;
	binary = &c->plan->binaries[found];
	in = binary->input;
	if (binary_read_layout(b, NULL) || !b->has_layout ||
	    !same_objects(&b->layout, in))
		return fail_conflict(in, "code now is another", why);
	if (!marker_agrees(&b->marker, binary, c->group, c->families))
		return fail_conflict(in, "code would go to other archives now", why);
	/* the first path is converted last */
	if (entry > in->entry && same_attributes(&b->st, &in->st) &&
	    c->dispositions->items[in->entry].fate == FATE_CONVERTED)
		join_links(c, in->entry, entry);
	return KPACK_SUCCESS;
}

kpack_error_t resume_join(const struct converter *c, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < c->scan->n_entries && !err; i++) {
		const char *path = c->scan->entries[i].path;
		struct binary b;

		if (!c->scan->entries[i].converted)
			continue;
		err = binary_open(path, &b, why);
		if (!err && !file_identity_is(&c->scan->entries[i].id, &b.st))
			err = kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
		if (!err)
			err = look_at_binary(c, i, &b, why);
		if (err)
			kp_fail_prefix(why, err, "%s", path);
		binary_close(&b);
	}
	return err;
}
