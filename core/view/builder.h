/* SPDX-License-Identifier: MIT */
/* Internals of a view: its data, and the state of building it, shared by these files. */
#ifndef KP_CORE_VIEW_BUILDER_H
#define KP_CORE_VIEW_BUILDER_H

#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/slots.h"
#include "core/archive/naming.h"
#include "view.h"

/* A name's node: kind in the upper bits, directory or file number in the lower bits. */
enum { KP_NODE_SHIFT = 29 };
#define KP_NODE_MAX ((UINT32_C(1) << KP_NODE_SHIFT) - 1)

/*
 * TEXT is the arena offset of a length byte, which the text's bytes follow.
 */
struct kp_view_entry_name {
	uint32_t text;
	uint32_t node;
};

/* A bundle: its parts and its header are pieces of the view's arrays. */
struct kp_view_composed {
	uint64_t size;
	size_t header; /* offset */
	uint32_t header_size;
	uint32_t first, count; /* parts */
	uint32_t global;       /* its first entry */
};

struct kp_view {
	struct kpack_archive **archives;
	uint32_t *bases; /* first entry number of each archive, and the end of the last */
	size_t n_archives;

	uint8_t *arena;
	size_t arena_size;
	struct kp_view_dir *dirs;
	uint32_t n_dirs;
	struct kp_view_entry_name *names;
	struct kp_view_file *files;
	uint32_t n_files;

	/* A file whose global number is N behind that of the last entry is bundle N. */
	struct kp_view_composed *bundles;
	uint32_t n_bundles;
	struct kp_view_part *parts;
	size_t n_parts;
	uint8_t *headers;
	size_t headers_size;

	struct kp_faults conflicts;
	const char **conflict_texts;
};

/* A name, before names are sorted by directory. */
struct kp_view_pending {
	uint32_t parent;
	struct kp_view_entry_name name;
};

/* A directory that may get more children. */
struct kp_view_open_dir {
	uint32_t text;     /* arena offset of its name */
	uint32_t greatest; /* its child with the greatest name; 0: it has no child */
	uint32_t youngest; /* its last child that is not in the set; 0: all are */
	uint32_t sibling;  /* the one before it of its parent's children not in the set */
};

/* An entry with code, for a bundle. */
struct kp_view_code {
	uint32_t dir, index; /* the bundle's directory and number */
	uint32_t archive, entry, file;
};

/* The last resolved path: keys are sorted, so the next path shares most of it. */
struct kp_view_last {
	uint32_t root;
	uint8_t path[KP_NAME_MAX];
	size_t size;
	uint32_t dirs[KP_NAME_MAX / 2 + 2]; /* directory of each component */
	size_t ends[KP_NAME_MAX / 2 + 2];
	size_t count; /* 0: none */
};

struct kp_view_builder {
	struct kp_view *v;
	const struct kp_view_options *options;
	bool no_memory;

	size_t arena_cap, dirs_cap, files_cap, open_dirs_cap;
	struct kp_view_pending *pending;
	size_t n_pending, pending_cap;
	struct kp_view_open_dir *open_dirs; /* the same numbers as directories */

	/*
	 * Directories by (parent, name), contents by identity, arena offsets by text.
	 * Ids place nothing, because an archive can be made so that many are equal.
	 * Directories enter their set when one is looked up in their parent, because a
	 * table with sorted keys needs few look-ups; names of directories of keys are no
	 * texts of the set.
	 */
	struct kp_slots dir_set, file_set, text_set;

	struct kp_view_code *code;
	size_t n_code, code_cap;
	size_t bundles_cap, parts_cap, headers_cap;

	uint64_t *archive_ids;

	/* below toc, and below other directories: entries have paths in both */
	struct kp_view_last last[2];

	/* the current archive: how many directories its paths may still make, and whether
	 * the current path may; and the file of each ordinal (number + 1) */
	uint64_t dirs_left;
	bool makes_dirs;
	uint32_t *ordinal_file;
	size_t archive;
	uint64_t readers; /* a hash of its readers, if ids depend on them */
	bool has_twin;    /* another archive has the same table of contents */

	/* the last key: most keys have several architectures */
	const uint8_t *key;
	struct kp_key split;
	bool key_ok;
	uint32_t key_dir; /* KP_VIEW_ROOT: not resolved yet */

	/*
	 * cache of file names under toc/: few distinct names, each used under many keys
	 */
	struct kp_view_toc_name {
		const uint8_t *arch, *type;
		uint32_t index;
		uint32_t text;
	} toc_names[256];

	/* cache: whether an architecture is selected, by the address of its text */
	struct {
		const uint8_t *arch;
		bool selected;
	} selected[64];
};

/* Directories that always exist. */
enum { KP_VIEW_ROOT = 0, KP_VIEW_TOC_DIR = 1 };
#define KP_VIEW_NO_DIR UINT32_MAX

/* The text of a component. */
static inline struct kp_span kp_view_text(const struct kp_view *v, uint32_t offset)
{
	return (struct kp_span){v->arena + offset + 1, v->arena[offset]};
}

static inline enum kp_view_kind kp_node_kind(uint32_t node)
{
	return (enum kp_view_kind)(node >> KP_NODE_SHIFT);
}

static inline uint32_t kp_node_number(uint32_t node)
{
	return node & KP_NODE_MAX;
}

static inline bool kp_view_no_memory(struct kp_view_builder *b)
{
	b->no_memory = true;
	return false;
}

/* Hash of a path, from the hash of its directory and its last component. */
uint64_t kp_view_child_id(uint64_t parent, struct kp_span name);

/*
 * Building.  Every function returns false when out of memory.
 */

/* Return the arena offset of a component's text, which is stored if it is new. */
bool kp_view_intern(struct kp_view_builder *b, struct kp_span s, uint32_t *offset);
/* Create the root and toc/. */
bool kp_view_make_roots(struct kp_view_builder *b);
/*
 * Return the directory PATH below ROOT, created as needed.  PATH is kp_path_ok, or empty.
 * KP_VIEW_NO_DIR: the archive's paths may make no more directories; none was made.
 */
bool kp_view_resolve(struct kp_view_builder *b, uint32_t root, struct kp_span path,
		     uint32_t *dir);
/* Add a name to a directory; kp_view_settle sorts it later. */
bool kp_view_add_pending(struct kp_view_builder *b, uint32_t parent, uint32_t text,
			 enum kp_view_kind kind, uint32_t number);
/* Note that PATH is not shown, and the REASON. */
void kp_view_conflict(struct kp_view_builder *b, struct kp_span path, const char *reason);
/* Add all names of all entries. */
bool kp_view_add_entries(struct kp_view_builder *b);
/* Add a bundle's file, whose identity is ID and which has the entry GLOBAL. */
bool kp_view_new_file(struct kp_view_builder *b, uint64_t id, uint32_t global,
		      uint32_t *file);
/* Note ENTRY of the current archive for a bundle, if it is code of a binary. */
bool kp_view_note_code(struct kp_view_builder *b, const struct kp_entry_info *info,
		       const struct kp_meta *meta, uint32_t entry, uint32_t file);
/* Add the bundles of the noted entries. */
bool kp_view_add_bundles(struct kp_view_builder *b);
/* Sort names, settle conflicts, number the files. */
bool kp_view_settle(struct kp_view_builder *b);

#endif
