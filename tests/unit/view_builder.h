/* SPDX-License-Identifier: MIT */
/* Views of archives whose tables the test writes as text. */
#ifndef VIEW_BUILDER_H
#define VIEW_BUILDER_H

#include "archive_builder.h"
#include "core/view/view.h"
#include "unit.h"

static struct kpackx_error why;

/* An archive of scheme none with blobs "aaaa", "bbbb", "cccc", "cc", "", and this TOC. */
static inline struct kpack_archive *with_toc(const char *toc)
{
	struct kpack_archive *archive = NULL;
	struct ab a = ab_new(64);

	ab_put(&a, "aaaabbbbcccc", 12);
	ab_toc(&a,
	       "{'blobs': [{'offset': 64, 'size': 4}, {'offset': 68, 'size': 4}, "
	       "{'offset': 72, 'size': 4}, {'offset': 72, 'size': 2}, {'offset': 72, "
	       "'size': 0}], 'toc': %s}",
	       toc);
	if (ab_open(&a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	ab_free(&a);
	return archive;
}

static inline struct kp_view *new_view(struct kpack_archive *const *archives, size_t n,
				       const struct kp_view_options *options)
{
	struct kp_view *v = NULL;

	assert_int_equal(kp_view_new(archives, n, options, &v, &why), KPACK_SUCCESS);
	return v;
}

/* The directory DIR and the number of the first name at PATH; false: there is none. */
static inline bool find_name(const struct kp_view *v, const char *path, uint32_t *name,
			     uint32_t *dir)
{
	*dir = 0;
	for (;;) {
		size_t n = strcspn(path, "/");

		if (!kp_view_lookup(v, *dir, (struct kp_span){(const uint8_t *)path, n},
				    name))
			return false;
		if (!path[n])
			return true;
		if (kp_view_name(v, *name).kind != KP_VIEW_DIR)
			return false;
		*dir = kp_view_name(v, *name).index;
		path += n + 1;
	}
}

#endif
