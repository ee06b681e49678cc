/* SPDX-License-Identifier: MIT */
/*
 * The paths that the naming policy gives one entry, even if a view does not show them,
 * and the reasons.  For callers that explain a view; the view itself keeps only what it
 * shows.
 */
#ifndef KP_CORE_VIEW_ENTRY_PATHS_H
#define KP_CORE_VIEW_ENTRY_PATHS_H

#include "core/base/bounds.h"
#include "view.h"

/* A path of an entry. */
struct kp_entry_path {
	enum kp_view_kind kind;
	/* Below the root of the view; if FAULT is set, the archive's text instead. */
	struct kp_span text;
	char fault[128];              /* why it is no valid path of a view; "": valid */
	char room[KP_NAME_MAX + 512]; /* for a text that is not in the archive */
};

/* One path under toc/, and its metadata.path or a path of the design paper's layouts. */
enum { KP_ENTRY_PATHS = 2 };

/*
 * Returns the number of paths in a view with OPTIONS, which may be NULL: one or two.
 * Spans are borrowed from A and OUT.
 */
size_t kp_entry_paths(const struct kpack_archive *a, size_t entry,
		      const struct kp_view_options *options,
		      struct kp_entry_path out[KP_ENTRY_PATHS]);

/*
 * Whether a view with OPTIONS, which may be NULL, shows entries of the architecture ARCH.
 */
bool kp_view_selects(const struct kp_view_options *options, struct kp_span arch);

#endif
