/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/random.h>
#include "memory.h"
#include "tree.h"

/*
 * Nodes are numbered: directories of the view, then its files.  `slots` is an
 * open-addressing hash table of node number + 1, keyed by inode number.
 */
struct tree {
	const struct kp_view *view;
	struct tree_options options;
	const struct tree_taken *taken; /* while it is made */
	uint32_t dirs, nodes;
	uint32_t *links; /* of each file, names below the root; NULL: as in the view */
	uint32_t shown_dirs, shown_files;
	uint64_t *inos; /* by node */
	uint32_t *slots;
	unsigned shift;   /* 64 - log2(slots) */
	uint64_t scatter; /* odd and random: nobody can craft long probes */
};

#define AHEAD 16 /* slots fetched before they are needed */

static uint64_t slot_count(const struct tree *t)
{
	return UINT64_C(1) << (64 - t->shift);
}

static uint64_t slot_of(const struct tree *t, uint64_t ino)
{
	return (ino * t->scatter) >> t->shift;
}

/* The slot that holds INO, or the free one where it belongs. */
static uint32_t *slot_for(const struct tree *t, uint64_t ino)
{
	uint64_t mask = slot_count(t) - 1;
	uint64_t i = slot_of(t, ino);

	while (t->slots[i] && t->inos[t->slots[i] - 1] != ino)
		i = (i + 1) & mask;
	return &t->slots[i];
}

static struct tree_node node_at(const struct tree *t, uint32_t node)
{
	bool is_dir = node < t->dirs;

	return (struct tree_node){t->inos[node], is_dir, is_dir ? node : node - t->dirs};
}

static bool insert(struct tree *t, uint32_t node)
{
	uint32_t *slot = slot_for(t, t->inos[node]);

	if (*slot)
		return false;
	if (t->taken && node != t->options.root &&
	    t->taken->is(t->taken->user, t->inos[node], t->view, node_at(t, node)))
		return false;
	*slot = node + 1;
	return true;
}

static uint64_t view_id(const struct tree *t, uint32_t node)
{
	if (node < t->dirs)
		return kp_view_dir(t->view, node)->id;
	return kp_view_file(t->view, node - t->dirs)->id;
}

/* A node whose id was taken. */
struct late {
	uint64_t id;
	uint32_t node;
};

static int compare_late(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

/*
 * Give the nodes that came too late the next free numbers.  Sorted, so that many equal
 * ids, which only an attacker can make, do not probe the same numbers again.
 */
static void insert_late(struct tree *t, struct late *late, size_t count)
{
	uint64_t next = 0;

	qsort(late, count, sizeof(*late), compare_late);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || late[i].id != late[i - 1].id)
			next = late[i].id;
		do {
			next = next < TREE_FIRST - 1 ? TREE_FIRST : next + 1;
			t->inos[late[i].node] = next;
		} while (next < TREE_FIRST || !insert(t, late[i].node));
	}
}

static bool number_nodes(struct tree *t)
{
	struct late *late = NULL;
	size_t count = 0;

	for (uint32_t n = 0; n < t->nodes; n++)
		t->inos[n] = view_id(t, n);
	t->inos[t->options.root] = TREE_ROOT;
	for (uint32_t n = 0; n < t->nodes; n++) {
		if (n + AHEAD < t->nodes)
			__builtin_prefetch(&t->slots[slot_of(t, t->inos[n + AHEAD])], 1);
		if ((n == t->options.root || t->inos[n] >= TREE_FIRST) && insert(t, n))
			continue;
		if ((count & (count - 1)) == 0) {
			void *more =
				reallocarray(late, count ? 2 * count : 1, sizeof(*late));
			if (!more) {
				free(late);
				return false;
			}
			late = more;
		}
		late[count++] = (struct late){t->inos[n], n};
	}
	if (count)
		insert_late(t, late, count);
	free(late);
	return true;
}

static uint64_t random_odd(void)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
		r = UINT64_C(0x9e3779b97f4a7c15);
	return r | 1;
}

/* Count the names of directory DIR, which is below the root, and mark those below it. */
static void count_names(struct tree *t, uint32_t dir, bool *inside)
{
	const struct kp_view_dir *d = kp_view_dir(t->view, dir);

	t->shown_dirs++;
	for (uint32_t i = 0; i < d->count; i++) {
		struct kp_view_name name = kp_view_name(t->view, d->first + i);

		if (name.kind == KP_VIEW_DIR)
			inside[name.index] = true;
		else
			t->shown_files += t->links[name.index]++ == 0;
	}
}

/* Names that cannot be reached do not count. */
static bool count_shown(struct tree *t)
{
	uint32_t files = t->nodes - t->dirs;
	bool *inside;

	if (!t->options.part) {
		t->shown_dirs = t->dirs;
		t->shown_files = files;
		return true;
	}
	t->links = calloc((size_t)files + 1, sizeof(*t->links));
	inside = calloc(t->dirs, sizeof(*inside));
	if (!t->links || !inside) {
		free(inside);
		return false;
	}
	inside[t->options.root] = true;
	/* a parent has a smaller number than its children */
	for (uint32_t d = t->options.root; d < t->dirs; d++)
		if (inside[d])
			count_names(t, d, inside);
	free(inside);
	return true;
}

kpack_error_t tree_new(const struct kp_view *view, const struct tree_options *options,
		       const struct tree_taken *taken, struct tree **out,
		       struct kpackx_error *why)
{
	uint64_t nodes = (uint64_t)kp_view_dir_count(view) + kp_view_file_count(view);
	struct tree *t;

	if (nodes >= UINT32_MAX)
		return kp_fail_memory(why, nodes * sizeof(uint64_t), "inodes");
	t = calloc(1, sizeof(*t));
	if (!t)
		return kp_fail_memory(why, sizeof(*t), "inodes");
	t->view = view;
	t->options = *options;
	t->taken = taken;
	t->dirs = kp_view_dir_count(view);
	t->nodes = (uint32_t)nodes;
	t->scatter = random_odd();
	/* Between 3/8 and 3/4 full. */
	for (t->shift = 56; slot_count(t) * 3 / 4 < nodes; t->shift--)
		;
	t->inos = kp_large_alloc(nodes * sizeof(*t->inos));
	t->slots = kp_large_alloc(slot_count(t) * sizeof(*t->slots));
	if (!t->inos || !t->slots)
		goto fail;
	memset(t->slots, 0, slot_count(t) * sizeof(*t->slots));
	if (!number_nodes(t) || !count_shown(t))
		goto fail;
	t->taken = NULL;
	*out = t;
	return KPACK_SUCCESS;
fail:
	tree_free(t);
	return kp_fail_memory(why, nodes * sizeof(uint64_t), "inodes");
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	free(t->links);
	free(t->inos);
	free(t->slots);
	free(t);
}

bool tree_find(const struct tree *t, uint64_t ino, struct tree_node *out)
{
	uint32_t slot = *slot_for(t, ino);

	if (!slot)
		return false;
	*out = node_at(t, slot - 1);
	return true;
}

struct tree_node tree_root(const struct tree *t)
{
	return node_at(t, t->options.root);
}

struct tree_node tree_parent(const struct tree *t, uint32_t dir)
{
	if (dir == t->options.root)
		return tree_root(t);
	return node_at(t, kp_view_dir(t->view, dir)->parent);
}

uint32_t tree_size(const struct tree *t)
{
	return t->nodes;
}

struct tree_node tree_at(const struct tree *t, uint32_t position)
{
	return node_at(t, position);
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
	return node_at(t,
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

static void stat_dir(const struct tree *t, uint32_t dir, struct stat *out)
{
	stat_common(t, &t->options.look, out);
	/* Who may read the archives may also search the directories. */
	out->st_mode |= out->st_mode >> 2;
	out->st_nlink = 2 + kp_view_dir(t->view, dir)->subdirs;
	out->st_mode = S_IFDIR | (out->st_mode & ~t->options.mask);
}

static void stat_file(const struct tree *t, uint32_t file, struct stat *out)
{
	struct kp_entry_info info;
	struct kp_meta meta;
	size_t entry;
	struct kpack_archive *a = kp_view_entry(t->view, file, &entry);

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	stat_common(t, kp_archive_stat(a), out);
	/* Who cannot read the archive cannot execute what is in it either. */
	out->st_mode |= meta.mode & (out->st_mode >> 2);
	out->st_mode = S_IFREG | (out->st_mode & ~t->options.mask);
	out->st_nlink = t->links ? t->links[file] : kp_view_file(t->view, file)->nlink;
	out->st_size = (off_t)info.size;
	out->st_blocks = (blkcnt_t)(info.stored / 512 + (info.stored % 512 != 0));
}

void tree_stat(const struct tree *t, struct tree_node node, struct stat *out)
{
	*out = (struct stat){.st_ino = node.ino};
	if (node.is_dir)
		stat_dir(t, node.index, out);
	else
		stat_file(t, node.index, out);
}
