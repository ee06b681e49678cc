/* SPDX-License-Identifier: MIT */
#include "marker_edit.h"
#include <stdlib.h>
#include "core/base/text.h"

bool marker_text_ok(const char *text)
{
	return *text && kp_text_ok(kp_span_str(text));
}

kpack_error_t marker_set_name(struct kp_marker *marker, const char *name,
			      struct kpackx_error *why)
{
	char *copy = strdup(name);

	if (!copy)
		return kp_fail_memory(why, strlen(name), "a name");
	free(marker->kernel_name);
	marker->kernel_name = copy;
	return KPACK_SUCCESS;
}

kpack_error_t marker_add_path(struct kp_marker *marker, const char *path,
			      struct kpackx_error *why)
{
	size_t n = marker->n_search_paths + 1;
	char **paths = reallocarray(marker->search_paths, n, sizeof(*paths));

	if (!paths)
		return kp_fail_memory(why, n * sizeof(*paths), "search paths");
	marker->search_paths = paths;
	paths[n - 1] = strdup(path);
	if (!paths[n - 1])
		return kp_fail_memory(why, strlen(path), "a search path");
	marker->n_search_paths = n;
	return KPACK_SUCCESS;
}

static kpack_error_t add_paths(struct kp_marker *to, const struct kp_marker *from,
			       struct kpackx_error *why)
{
	for (size_t i = 0; i < from->n_search_paths; i++)
		KP_TRY(marker_add_path(to, from->search_paths[i], why));
	return KPACK_SUCCESS;
}

kpack_error_t marker_merge(const struct kp_marker *from, const struct kp_marker *changes,
			   struct kp_marker *out, struct kpackx_error *why)
{
	const char *name =
		changes->kernel_name ? changes->kernel_name : from->kernel_name;
	struct kp_marker m = {0};
	kpack_error_t err = marker_set_name(&m, name, why);

	if (!err)
		err = add_paths(&m, changes->n_search_paths ? changes : from, why);
	if (err)
		kp_marker_fini(&m);
	else
		*out = m;
	return err;
}

bool marker_same(const struct kp_marker *a, const struct kp_marker *b)
{
	if (strcmp(a->kernel_name, b->kernel_name) != 0 ||
	    a->n_search_paths != b->n_search_paths)
		return false;
	for (size_t i = 0; i < a->n_search_paths; i++)
		if (strcmp(a->search_paths[i], b->search_paths[i]) != 0)
			return false;
	return true;
}
