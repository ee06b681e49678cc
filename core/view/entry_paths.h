/* SPDX-License-Identifier: MIT */
/*
 * The paths that the naming policy gives one entry, whether a view shows them or not, and
 * why it may not: for those who explain a view, which keeps only what it shows.
 */
#ifndef KP_CORE_VIEW_ENTRY_PATHS_H
#define KP_CORE_VIEW_ENTRY_PATHS_H

#include "core/base/bounds.h"
#include "view.h"

/* A path of an entry. */
struct kp_entry_path {
	enum kp_view_kind kind;
	/* Below the root of the view; where FAULT is set, what the archive says instead. */
	struct kp_span text;
	char fault[128];              /* why it can be no path of a view; "": it can */
	char room[KP_NAME_MAX + 512]; /* for a text that does not stand in the archive */
};

/* One under toc/, and its metadata.path or one of the paper's. */
enum { KP_ENTRY_PATHS = 2 };

/* Returns how many paths there are: one or two.  Spans are borrowed from A and OUT. */
size_t kp_entry_paths(const struct kpack_archive *a, size_t entry,
		      struct kp_entry_path out[KP_ENTRY_PATHS]);

/* Does a view with OPTIONS, which may be NULL, show entries of that architecture? */
bool kp_view_selects(const struct kp_view_options *options, struct kp_span arch);

#endif
