/* SPDX-License-Identifier: MIT */
#include "resume.h"
#include "binary.h"

/* Does a search path lead to an archive GROUP_..., GROUP-... or GROUP.N_...? */
static bool names_group(const struct kp_marker *marker, const char *group)
{
	size_t n = strlen(group);

	for (size_t i = 0; i < marker->n_search_paths; i++) {
		const char *slash = strrchr(marker->search_paths[i], '/');
		const char *file = slash ? slash + 1 : marker->search_paths[i];

		if (strncmp(file, group, n) == 0 && file[n] && strchr("_-.", file[n]))
			return true;
	}
	return false;
}

static bool same_objects(const struct kp_layout *layout, const struct input *in)
{
	const struct kp_containers *list = &in->fat.containers;

	if (layout->n_images != list->n_images)
		return false;
	for (size_t i = 0; i < list->n_images; i++) {
		const struct kp_layout_image *image = &layout->images[i];

		if (image->size != list->images[i].size)
			return false;
		if (in->known[i] &&
		    (!image->has_xxh3 || memcmp(image->xxh3, in->xxh3[i], 16) != 0))
			return false;
	}
	return true;
}

static void join(struct scan *scan, struct outcomes *outcomes, size_t head, size_t entry)
{
	size_t last = head;

	while (scan->entries[last].next_link != SCAN_NO_LINK)
		last = scan->entries[last].next_link;
	scan->entries[last].next_link = entry;
	outcomes->items[entry].fate = FATE_LINKED;
	for (; entry != SCAN_NO_LINK; entry = scan->entries[entry].next_link)
		scan->entries[entry].first = head;
}

static kpack_error_t look(struct scan *scan, const struct plan *plan, size_t entry,
			  struct binary *b, const char *group, struct outcomes *outcomes,
			  struct kpackx_error *why)
{
	const struct input *in;
	uint32_t found;

	/* what is wrong with a marker is not found out here */
	if (binary_read_marker(b, NULL) || !names_group(&b->marker, group) ||
	    !plan_find(plan, kp_span_str(b->marker.kernel_name), &found))
		return KPACK_SUCCESS;
	in = plan->binaries[found].input;
	if (binary_read_layout(b, NULL) || !b->has_layout ||
	    !same_objects(&b->layout, in))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "its marker names %s, whose code now is another: give "
			       "another --group or a --key-prefix",
			       in->key);
	if (outcomes->items[in->entry].fate == FATE_CONVERTED)
		join(scan, outcomes, in->entry, entry);
	return KPACK_SUCCESS;
}

kpack_error_t resume_join(struct scan *scan, const struct plan *plan, const char *group,
			  struct outcomes *outcomes, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < scan->n_entries && !err; i++) {
		const char *path = scan->entries[i].path;
		struct binary b;

		if (!scan->entries[i].converted)
			continue;
		err = binary_open(path, &b, why);
		if (!err)
			err = look(scan, plan, i, &b, group, outcomes, why);
		if (err)
			kp_fail_prefix(why, err, "%s", path);
		binary_close(&b);
	}
	return err;
}
