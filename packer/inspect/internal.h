/* SPDX-License-Identifier: MIT */
/* The steps of inspect_file_open. */
#ifndef PACKER_INSPECT_INTERNAL_H
#define PACKER_INSPECT_INTERNAL_H

#include "file.h"

/* Make the rows, the jobs and the numbers of FILE, whose list is complete. */
void inspect_tree_build(struct inspect_file *file);

/* Read the wrappers of FILE, a host ELF, and match them with its numbers. */
void inspect_wrappers_read(struct inspect_file *file);

/* Whether IMAGE is the .hip_fatbin of a host ELF, into which wrappers lead. */
static inline bool inspect_is_fatbin(const struct kp_containers *list, size_t image)
{
	const struct kp_image *img = &list->images[image];

	return list->items[img->container].format == &kp_format_host_elf && img->stream &&
	       img->id && strcmp(img->id, KP_FATBIN_SECTION) == 0;
}

#endif
