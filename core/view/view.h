/* SPDX-License-Identifier: MIT */
/*
 * The naming policy: which paths an entry has, and the union of several archives
 * as one tree.  Used by the mount and by extract.
 *
 *   toc/<key without #n>/<arch>.<type>       index 0, and keys without #n
 *   toc/<key without #n>/<arch>#<n>.<type>   index n > 0
 *   <metadata.path>                          entries that are files of a tree
 *   the paper's legacy paths                 entries with the paper's keys and no path
 *
 * The same path twice with the same content is one file; otherwise the first
 * archive in order wins.  A directory beats a file of the same name.  What is
 * not shown, and why, stands in the conflicts, but for content that is equal by size
 * and xxh3.
 *
 * All names of equal content are one file (hard links).  Content is identified by (size,
 * stored size, xxh3) where the entry has the hash and is one frame, else by its
 * archive (hash of the table of contents, size, time) and ordinal.
 *
 * Immutable after kp_view_new: every call may run concurrently.
 */
#ifndef KP_CORE_VIEW_VIEW_H
#define KP_CORE_VIEW_VIEW_H

#include "core/archive/archive.h"
#include "core/target/target.h"

struct kp_view;

struct kp_view_options {
	/* Show only entries whose arch one of these selects (kp_target_selected).
	 * n_select 0: all. */
	const struct kp_target *select;
	size_t n_select;
	/* These are GPUs: show only what one of them can load (kp_target_loadable).
	 * n_select 0: what suits every GPU. */
	bool loadable;
};

/* A directory.  Directory 0 is the root; a parent has a smaller number than its children. */
struct kp_view_dir {
	uint32_t parent;
	uint32_t first; /* its names are [first, first + count), sorted bytewise */
	uint32_t count;
	uint32_t subdirs;
	uint64_t id; /* hash of its path: the same in every view */
};

/* A file: one content, however many names. */
struct kp_view_file {
	uint64_t id;     /* hash of content identity and first path */
	uint32_t global; /* see kp_view_entry */
	uint32_t nlink;  /* names */
};

enum kp_view_kind {
	KP_VIEW_DIR,
	KP_VIEW_TOC,      /* a toc/ name of an entry without metadata.path */
	KP_VIEW_TOC_ALSO, /* a toc/ name of an entry that also has its metadata.path */
	KP_VIEW_PATH,     /* a metadata.path */
	KP_VIEW_LEGACY,   /* a path of the paper's layouts */
};

/* One name in a directory. */
struct kp_view_name {
	struct kp_span text;
	enum kp_view_kind kind;
	uint32_t index; /* directory or file number */
};

/*
 * Build the view of N archives, in order of precedence.  They are borrowed and must stay
 * open.  OPTIONS may be NULL.  OUT_OF_MEMORY is the only error.
 */
kpack_error_t kp_view_new(struct kpack_archive *const *archives, size_t n,
			  const struct kp_view_options *options, struct kp_view **out,
			  struct kpackx_error *why);
void kp_view_free(struct kp_view *v); /* NULL is fine */

/*
 * Take NAME out of DIR; false: it is not there.  What is below stays, without a path, and
 * so do the links and ids of files.  Before the view is shared.
 */
bool kp_view_hide(struct kp_view *v, uint32_t dir, struct kp_span name);

uint32_t kp_view_dir_count(const struct kp_view *v);
uint32_t kp_view_file_count(const struct kp_view *v);
const struct kp_view_dir *kp_view_dir(const struct kp_view *v, uint32_t dir);
const struct kp_view_file *kp_view_file(const struct kp_view *v, uint32_t file);
struct kp_view_name kp_view_name(const struct kp_view *v, uint32_t name);

/* Number of the name TEXT in DIR; false when there is none. */
bool kp_view_lookup(const struct kp_view *v, uint32_t dir, struct kp_span text,
		    uint32_t *name);

/*
 * The directory at PATH, of components of any text with slashes between them, before and
 * behind; an empty one is the root.  false: there is none.
 */
bool kp_view_find_dir(const struct kp_view *v, struct kp_span path, uint32_t *dir);

/* The archive, or its position among those of the view, and entry that hold a file's content. */
struct kpack_archive *kp_view_entry(const struct kp_view *v, uint32_t file,
				    size_t *entry);
size_t kp_view_archive(const struct kp_view *v, uint32_t file, size_t *entry);

/* Would a view take these entries for the same content? */
bool kp_view_same_content(struct kpack_archive *a, size_t in_a, struct kpack_archive *b,
			  size_t in_b);

/* What is not shown, a line each: "PATH: REASON", escaped for terminals. */
const char *const *kp_view_conflicts(const struct kp_view *v, size_t *kept,
				     size_t *counted);

#endif
