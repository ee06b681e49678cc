/* SPDX-License-Identifier: MIT */
/*
 * Nodes are the directories and files of the view, so nothing is stored for one but its
 * slot in a hash table by number; the few that cannot have the number of their ID are in a
 * list.
 */
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "tree.h"

/*
 * Nodes are numbered: directories of the view, then its files.  `slots` is an
 * open-addressing hash table of node number + 1, keyed by inode number.  The bits of a
 * slot that no node number needs hold a part of the hash, the mark: a probe skips slots
 * with another mark without reading their nodes.
 */
struct tree {
	const struct kp_view *view;
	struct tree_options options;
	const struct tree_taken *taken; /* NULL after tree_new */
	uint32_t dirs, nodes;
	uint32_t *links; /* names of each file below the root; NULL: as in the view */
	uint32_t shown_dirs, shown_files;
	struct late *late; /* sorted by node */
	size_t n_late;
	uint32_t *slots;
	uint32_t mask;    /* the bits of a slot that are the node number */
	unsigned shift;   /* 64 - log2(slots) */
	uint64_t scatter; /* odd and random: nobody can craft long probes */
};

/* A node that cannot have the number of its ID, because it is taken or reserved. */
struct late {
	uint64_t ino;
	uint32_t node;
};

#define AHEAD 16 /* slots fetched before they are needed */

/* The number that NODE is to have. */
static uint64_t view_id(const struct tree *t, uint32_t node)
{
	return (node < t->dirs ? kp_view_dir(t->view, node)->id
			       : kp_view_file(t->view, node - t->dirs)->id) &
	       TREE_LAST;
}

static struct late *late_of(const struct tree *t, uint32_t node)
{
	const struct late key = {.node = node};

	return kp_find(t->late, t->n_late, &key, KP_BY_NUMBER(struct late, node));
}

static uint64_t ino_of(const struct tree *t, uint32_t node)
{
	const struct late *late;

	if (node == t->options.root)
		return TREE_ROOT;
	late = t->n_late ? late_of(t, node) : NULL;
	return late ? late->ino : view_id(t, node);
}

static uint64_t slot_count(const struct tree *t)
{
	return UINT64_C(1) << (64 - t->shift);
}

static uint64_t slot_of(const struct tree *t, uint64_t ino)
{
	return (ino * t->scatter) >> t->shift;
}

/* The part of the hash that a slot holds. */
static uint32_t mark_of(const struct tree *t, uint64_t ino)
{
	return (uint32_t)((ino * t->scatter) << (64 - t->shift) >> 32) & ~t->mask;
}

static uint32_t node_in(const struct tree *t, uint32_t slot)
{
	return (slot & t->mask) - 1;
}

/* The slot that holds INO, or the free one where it belongs. */
static uint32_t *slot_for(const struct tree *t, uint64_t ino)
{
	uint64_t last = slot_count(t) - 1, i = slot_of(t, ino);
	uint32_t mark = mark_of(t, ino);

	while (t->slots[i] && ((t->slots[i] & ~t->mask) != mark ||
			       ino_of(t, node_in(t, t->slots[i])) != ino))
		i = (i + 1) & last;
	return &t->slots[i];
}

struct tree_node tree_at(const struct tree *t, uint32_t position)
{
	bool is_dir = position < t->dirs;

	return (struct tree_node){ino_of(t, position), is_dir,
				  is_dir ? position : position - t->dirs};
}

/* Give NODE the number INO; false: the number is taken. */
static bool insert_node(struct tree *t, uint32_t node, uint64_t ino)
{
	uint32_t *slot = slot_for(t, ino);

	if (*slot)
		return false;
	if (t->taken && node != t->options.root &&
	    t->taken->is(t->taken->user, ino, t->view, tree_at(t, node)))
		return false;
	*slot = mark_of(t, ino) | (node + 1);
	return true;
}

static int compare_id(const void *a, const void *b, void *tree)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t x_id = view_id(tree, x), y_id = view_id(tree, y);

	if (x_id != y_id)
		return KP_ORDER(x_id, y_id);
	return KP_ORDER(x, y);
}

/*
 * Give the late nodes the next free numbers.  They are sorted by ID, and all numbers from
 * the ID of a node to the one that the last node got are taken; so nodes whose IDs are
 * equal, or follow each other, or are reserved, do not probe the same numbers again.  Only
 * an attacker can make many of them.
 */
static bool insert_late(struct tree *t)
{
	uint32_t *nodes = malloc(t->n_late * sizeof(*nodes));
	uint64_t next = 0;
	bool wrapped = false; /* after the greatest number comes the first */

	if (!nodes)
		return false;
	for (size_t i = 0; i < t->n_late; i++)
		nodes[i] = t->late[i].node;
	qsort_r(nodes, t->n_late, sizeof(*nodes), compare_id, t);
	for (size_t i = 0; i < t->n_late; i++) {
		struct late *late = late_of(t, nodes[i]);

		if (!wrapped && next < view_id(t, nodes[i]))
			next = view_id(t, nodes[i]);
		do {
			wrapped |= next == TREE_LAST;
			next = next < TREE_FIRST || next == TREE_LAST ? TREE_FIRST
								      : next + 1;
			late->ino = next;
		} while (!insert_node(t, late->node, next));
	}
	free(nodes);
	return true;
}

kpack_error_t tree_new(const struct kp_view *view, const struct tree_options *options,
		       const struct tree_taken *taken, struct tree **out,
		       struct kpackx_error *why)
{
	uint64_t nodes = (uint64_t)kp_view_dir_count(view) + kp_view_file_count(view);
	KP_AUTO_FREE bool *inside = NULL; /* which directories are in the root */
	size_t late_cap = 0;
	struct tree *t;

	if (nodes >= UINT32_MAX)
		return kp_fail_memory(why, nodes * sizeof(uint32_t), "inodes");
	t = calloc(1, sizeof(*t));
	if (!t)
		return kp_fail_memory(why, sizeof(*t), "inodes");
	t->view = view;
	t->options = *options;
	t->taken = taken;
	t->dirs = kp_view_dir_count(view);
	t->nodes = (uint32_t)nodes;
	if (getrandom(&t->scatter, sizeof(t->scatter), GRND_NONBLOCK) !=
	    sizeof(t->scatter))
		t->scatter = UINT64_C(0x9e3779b97f4a7c15);
	t->scatter |= 1;
	/* Between 2/5 and 4/5 full. */
	for (t->shift = 56; slot_count(t) / 5 * 4 < nodes; t->shift--)
		;
	for (t->mask = 1; t->mask < t->nodes; t->mask = 2 * t->mask + 1)
		;
	t->slots = kp_large_zeroed(slot_count(t) * sizeof(*t->slots));
	if (!t->slots)
		goto fail;
	for (uint32_t n = 0; n < nodes; n++) {
		uint64_t ino = ino_of(t, n);

		if (n + AHEAD < t->nodes)
			__builtin_prefetch(&t->slots[slot_of(t, view_id(t, n + AHEAD))],
					   1);
		if ((n == t->options.root || ino >= TREE_FIRST) && insert_node(t, n, ino))
			continue;
		if (!kp_grow(&t->late, t->n_late, &late_cap, sizeof(*t->late)))
			goto fail;
		t->late[t->n_late++] = (struct late){0, n};
	}
	if (t->n_late && !insert_late(t))
		goto fail;
	t->taken = NULL;

	/* count the nodes and links below the root: names elsewhere cannot be reached */
	if (!options->part) {
		t->shown_dirs = t->dirs;
		t->shown_files = t->nodes - t->dirs;
		*out = t;
		return KPACK_SUCCESS;
	}
	t->links = calloc(nodes - t->dirs + 1, sizeof(*t->links));
	inside = calloc(t->dirs, sizeof(*inside));
	if (!t->links || !inside)
		goto fail;
	inside[options->root] = true;
	/* a parent has a smaller number than its children */
	for (uint32_t d = options->root; d < t->dirs; d++) {
		const struct kp_view_dir *dir = kp_view_dir(view, d);

		t->shown_dirs += inside[d];
		for (uint32_t i = 0; inside[d] && i < dir->count; i++) {
			struct kp_view_name name = kp_view_name(view, dir->first + i);

			if (name.kind == KP_VIEW_DIR)
				inside[name.index] = true;
			else
				t->shown_files += t->links[name.index]++ == 0;
		}
	}
	*out = t;
	return KPACK_SUCCESS;
fail:
	tree_free(t);
	return kp_fail_memory(why, nodes * sizeof(uint32_t), "inodes");
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	free(t->links);
	free(t->late);
	free(t->slots);
	free(t);
}

bool tree_find(const struct tree *t, uint64_t ino, struct tree_node *out)
{
	uint32_t slot = *slot_for(t, ino);

	if (!slot)
		return false;
	*out = tree_at(t, node_in(t, slot));
	return true;
}

bool tree_find_near(const struct tree *t, uint64_t ino, uint32_t *position,
		    struct tree_node *out)
{
	if (*position < t->nodes && ino_of(t, *position) == ino)
		*out = tree_at(t, *position);
	else if (!tree_find(t, ino, out))
		return false;
	*position = tree_position(t, *out) + 1;
	return true;
}

struct tree_node tree_root(const struct tree *t)
{
	return tree_at(t, t->options.root);
}

struct tree_node tree_parent(const struct tree *t, uint32_t dir)
{
	if (dir == t->options.root)
		return tree_root(t);
	return tree_at(t, kp_view_dir(t->view, dir)->parent);
}

uint32_t tree_size(const struct tree *t)
{
	return t->nodes;
}

uint32_t tree_position(const struct tree *t, struct tree_node node)
{
	return node.is_dir ? node.index : t->dirs + node.index;
}

uint32_t tree_dir_count(const struct tree *t)
{
	return t->shown_dirs;
}

uint32_t tree_file_count(const struct tree *t)
{
	return t->shown_files;
}

struct tree_node tree_named(const struct tree *t, const struct kp_view_name *name)
{
	return tree_at(t,
		       name->kind == KP_VIEW_DIR ? name->index : t->dirs + name->index);
}

bool tree_lookup(const struct tree *t, uint32_t dir, struct kp_span text,
		 struct tree_node *out)
{
	struct kp_view_name found;
	uint32_t name;

	if (!kp_view_lookup(t->view, dir, text, &name))
		return false;
	found = kp_view_name(t->view, name);
	*out = tree_named(t, &found);
	return true;
}

static void stat_common(const struct tree *t, const struct stat *from, struct stat *out)
{
	const struct tree_options *o = &t->options;

	out->st_uid = o->uid == (uid_t)-1 ? from->st_uid : o->uid;
	out->st_gid = o->gid == (gid_t)-1 ? from->st_gid : o->gid;
	out->st_mode = from->st_mode & 0444;
	out->st_atim = out->st_mtim = out->st_ctim = from->st_mtim;
	out->st_blksize = 128 << 10;
}

void tree_stat(const struct tree *t, struct tree_node node, struct stat *out)
{
	struct kp_entry_info info;
	struct kp_view_bundle b;
	struct kpack_archive *a;
	struct kp_meta meta;
	size_t entry;

	*out = (struct stat){.st_ino = node.ino};
	if (node.is_dir) {
		stat_common(t, &t->options.look, out);
		/* A user who may read the archives may also search the directories. */
		out->st_mode |= out->st_mode >> 2;
		out->st_nlink = 2 + kp_view_dir(t->view, node.index)->subdirs;
		out->st_mode = S_IFDIR | (out->st_mode & ~t->options.mask);
		return;
	}
	if (kp_view_bundle(t->view, node.index, &b)) {
		const struct stat *first, *limiting = NULL;
		struct stat look;
		bool differ = false;

		/* A bundle has the newest time of its archives, and the owner and read bits of
		 * those that not everyone may read.  If these differ, no mode fits: then only the
		 * user who mounted may read it, and root. */
		first = kp_archive_stat(kp_view_entry(t->view, node.index, &entry));
		look = *first;
		for (uint32_t i = 0; i < b.count; i++) {
			const struct stat *st = kp_archive_stat(
				kp_view_entry(t->view, b.parts[i].file, &entry));

			if (is_newer_time(st->st_mtim, look.st_mtim))
				look.st_mtim = st->st_mtim;
			if ((st->st_mode & 0444) == 0444)
				continue;
			differ |= limiting &&
				  (st->st_uid != limiting->st_uid ||
				   st->st_gid != limiting->st_gid ||
				   (st->st_mode & 0444) != (limiting->st_mode & 0444));
			limiting = st;
		}
		if (differ) {
			look.st_uid = geteuid();
			look.st_gid = getegid();
			look.st_mode = 0400;
		} else if (limiting) {
			look.st_uid = limiting->st_uid;
			look.st_gid = limiting->st_gid;
			look.st_mode = limiting->st_mode;
		}
		stat_common(t, &look, out);
		out->st_mode = S_IFREG | (out->st_mode & ~t->options.mask);
		out->st_nlink = 1;
		out->st_size = (off_t)b.size;
		/* The objects are counted as files of toc/. */
		out->st_blocks = (blkcnt_t)((b.header.size + 511) / 512);
		return;
	}
	a = kp_view_entry(t->view, node.index, &entry);
	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	stat_common(t, kp_archive_stat(a), out);
	/* A user who cannot read the archive cannot execute its contents either. */
	out->st_mode |= meta.mode & (out->st_mode >> 2);
	out->st_mode = S_IFREG | (out->st_mode & ~t->options.mask);
	out->st_nlink = t->links ? t->links[node.index]
				 : kp_view_file(t->view, node.index)->nlink;
	out->st_size = (off_t)info.size;
	out->st_blocks = (blkcnt_t)(info.stored / 512 + (info.stored % 512 != 0));
}
