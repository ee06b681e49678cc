/* SPDX-License-Identifier: MIT */
#include "marker_edit.h"
#include <stdlib.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

bool marker_text_ok(const char *text)
{
	return *text && kp_text_ok(kp_span_str(text));
}

void marker_set_name(struct kp_marker *marker, const char *name)
{
	char *copy = xstrdup(name);

	free(marker->kernel_name);
	marker->kernel_name = copy;
}

void marker_add_path(struct kp_marker *marker, const char *path)
{
	size_t n = marker->n_search_paths;

	marker->search_paths = xrealloc(marker->search_paths, (n + 1) * sizeof(char *));
	marker->search_paths[n] = xstrdup(path);
	marker->n_search_paths++;
}

void marker_merge(const struct kp_marker *from, const struct kp_marker *changes,
		  struct kp_marker *out)
{
	const char *name =
		changes->kernel_name ? changes->kernel_name : from->kernel_name;
	const struct kp_marker *paths = changes->n_search_paths ? changes : from;

	*out = (struct kp_marker){0};
	marker_set_name(out, name);
	for (size_t i = 0; i < paths->n_search_paths; i++)
		marker_add_path(out, paths->search_paths[i]);
}
