/* SPDX-License-Identifier: MIT */
/*
 * The naming policy: the paths of an entry, and the union of several archives as one
 * tree.  The mount and the extract program use it.
 *
 *   toc/<key without #n>/<arch>.<type>       index 0, and keys without #n
 *   toc/<key without #n>/<arch>#<n>.<type>   index n > 0
 *   <metadata.path>                          entries that are files of a tree
 *   the legacy paths of the design paper     entries with the paper's keys and no path
 *   hipfb/<key without #n>/<n>.hipfb         if asked for: a bundle of the entries with
 *                                            code that toc/ shows for the key
 *
 * If a path occurs twice with the same content, it is one file; otherwise the first
 * archive in order wins.  A directory wins over a file of the same name.  The conflicts
 * list every name that is not shown, with the reason, except where size and xxh3 are
 * equal.
 *
 * All names of equal content are one file (hard links), if the archives have the same
 * owner, group and read bits, because the names of a file have one mode.  The identity of a
 * content is (size, stored size, xxh3) if the entry has the hash and is one frame, else its
 * archive (hash of the table of contents, size, time) and ordinal.
 *
 * Immutable after kp_view_new: every call may run concurrently.
 */
#ifndef KP_CORE_VIEW_VIEW_H
#define KP_CORE_VIEW_VIEW_H

#include "core/archive/archive.h"
#include "core/base/bounds.h"
#include "core/target/choice.h"

struct kp_view;

struct kp_view_options {
	/* Show only entries whose architecture it chooses.  NULL: all. */
	const struct kp_choice *select;
	bool bundles; /* show bundles, too */
	/* The id of a file depends on the readers of its archive, too: for a mount that
	 * users share, where a file that gets other readers is another file. */
	bool shared;
};

/*
 * A directory.  Directory 0 is the root; a parent has a smaller number than its children.
 */
struct kp_view_dir {
	uint32_t parent;
	/* Its names are [first, first + count), sorted bytewise. */
	uint32_t first;
	uint32_t count;
	uint32_t subdirs;
	uint64_t id; /* hash of its path: the same in every view */
};

/* A file: one content with any number of names; or a bundle, with one name. */
struct kp_view_file {
	uint64_t id;     /* hash of content identity and first path */
	uint32_t global; /* see kp_view_entry */
	uint32_t nlink;  /* number of names */
};

enum kp_view_kind {
	KP_VIEW_DIR,
	KP_VIEW_TOC,      /* a toc/ name of an entry without metadata.path */
	KP_VIEW_TOC_ALSO, /* a toc/ name of an entry that also has its metadata.path */
	KP_VIEW_PATH,     /* a metadata.path */
	KP_VIEW_LEGACY,   /* a path of the paper's layouts */
	KP_VIEW_BUNDLE,   /* a bundle */
};

/* One name in a directory. */
struct kp_view_name {
	struct kp_span text;
	enum kp_view_kind kind;
	uint32_t index; /* directory or file number */
};

/*
 * Build the view of N archives, in order of precedence.  The archives are borrowed and
 * must stay open.  OPTIONS may be NULL.  The only error is OUT_OF_MEMORY.
 */
kpack_error_t kp_view_new(struct kpack_archive *const *archives, size_t n,
			  const struct kp_view_options *options, struct kp_view **out,
			  struct kpackx_error *why);
void kp_view_free(struct kp_view *v); /* NULL is allowed */

/*
 * Remove NAME from DIR; false: DIR has no such name.  Everything below NAME stays,
 * without a path; link counts and ids of files do not change.  To be called before the
 * view is shared.
 */
bool kp_view_hide(struct kp_view *v, uint32_t dir, struct kp_span name);

uint32_t kp_view_dir_count(const struct kp_view *v);
uint32_t kp_view_file_count(const struct kp_view *v);
const struct kp_view_dir *kp_view_dir(const struct kp_view *v, uint32_t dir);
const struct kp_view_file *kp_view_file(const struct kp_view *v, uint32_t file);
struct kp_view_name kp_view_name(const struct kp_view *v, uint32_t name);

/* The number of the name TEXT in DIR; false: no such name. */
bool kp_view_lookup(const struct kp_view *v, uint32_t dir, struct kp_span text,
		    uint32_t *name);

/*
 * The directory at PATH, whose components may have any text; slashes at its start and end
 * are allowed.  An empty PATH is the root.  false: no such directory.
 */
bool kp_view_find_dir(const struct kp_view *v, struct kp_span path, uint32_t *dir);

/* A part of a bundle: the whole of a file. */
struct kp_view_part {
	uint64_t offset;
	uint32_t file;
};

/* An offload bundle as clang writes it: a header, and its objects with zeros between. */
struct kp_view_bundle {
	struct kp_span header;
	const struct kp_view_part *parts; /* by offset */
	uint32_t count;                   /* at least 1 */
	uint64_t size;
};

/* False: FILE is no bundle.  All pointers are borrowed. */
bool kp_view_bundle(const struct kp_view *v, uint32_t file, struct kp_view_bundle *out);

/*
 * The archive that holds a file's content, or the archive's position in the view, and the
 * number of the entry in it.  For a bundle: those of its first entry.
 */
struct kpack_archive *kp_view_entry(const struct kp_view *v, uint32_t file,
				    size_t *entry);
size_t kp_view_archive(const struct kp_view *v, uint32_t file, size_t *entry);

/* Whether two archives have the same owner, group and read bits. */
bool kp_view_same_readers(const struct kpack_archive *a, const struct kpack_archive *b);

/* Whether a view identifies the two entries as the same content, whoever may read it. */
bool kp_view_same_content(struct kpack_archive *a, size_t in_a, struct kpack_archive *b,
			  size_t in_b);
/* The same, or their hashes agree: then they are two files, but it matters little which is shown. */
bool kp_view_same_bytes(struct kpack_archive *a, size_t in_a, struct kpack_archive *b,
			size_t in_b);

/*
 * The names that are not shown, one line each: "PATH: REASON", escaped for terminals.
 * *COUNTED, unless COUNTED is NULL, also counts conflicts that were not kept.
 */
const char *const *kp_view_conflicts(const struct kp_view *v, size_t *kept,
				     size_t *counted);

/* --- for callers that explain a view ------------------------------------------------------ */

/*
 * The paths that the naming policy gives one entry, even if a view does not show them,
 * and the reasons; the view itself keeps only what it shows.
 */

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
