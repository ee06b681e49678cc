/* SPDX-License-Identifier: MIT */
/* What inspect_file_open is made of. */
#ifndef PACKER_INSPECT_INTERNAL_H
#define PACKER_INSPECT_INTERNAL_H

#include "file.h"

/* Make the rows, the jobs and the numbers of FILE, whose list is complete. */
kpack_error_t inspect_tree_build(struct inspect_file *file, struct kpackx_error *why);

/* Read the wrappers of FILE, a host ELF, and match them with its numbers. */
kpack_error_t inspect_wrappers_read(struct inspect_file *file, struct kpackx_error *why);

/* Is IMAGE a host ELF's .hip_fatbin, with what wrappers lead to? */
static inline bool inspect_is_fatbin(const struct kp_containers *list, size_t image)
{
	const struct kp_image *img = &list->images[image];

	return list->items[img->container].format == &kp_format_host_elf && img->stream &&
	       img->id && strcmp(img->id, KP_FATBIN_SECTION) == 0;
}

#endif
