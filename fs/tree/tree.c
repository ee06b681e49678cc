/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/base/alloc.h"
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
	/* If there are several classes: those of the files below each directory, and the
	 * number of files of each class. */
	uint64_t *dir_classes;
	uint32_t class_files[CLASSES_MAX];
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

static int compare_node(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	return KP_ORDER(x->node, y->node);
}

static uint64_t ino_of(const struct tree *t, uint32_t node)
{
	const struct late key = {.node = node}, *late = NULL;

	if (node == t->options.root)
		return TREE_ROOT;
	if (t->n_late)
		late = bsearch(&key, t->late, t->n_late, sizeof(key), compare_node);
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

static struct tree_node node_at(const struct tree *t, uint32_t node)
{
	bool is_dir = node < t->dirs;

	return (struct tree_node){ino_of(t, node), is_dir,
				  is_dir ? node : node - t->dirs};
}

/* Give NODE the number INO; false: the number is taken. */
static bool insert_node(struct tree *t, uint32_t node, uint64_t ino)
{
	uint32_t *slot = slot_for(t, ino);

	if (*slot)
		return false;
	if (t->taken && node != t->options.root &&
	    t->taken->is(t->taken->user, ino, t->view, node_at(t, node)))
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

static struct late *late_of(const struct tree *t, uint32_t node)
{
	const struct late key = {.node = node};

	return bsearch(&key, t->late, t->n_late, sizeof(key), compare_node);
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

static bool add_late(struct tree *t, size_t *cap, uint32_t node)
{
	if (!kp_grow(&t->late, t->n_late, cap, sizeof(*t->late)))
		return false;
	t->late[t->n_late++] = (struct late){0, node};
	return true;
}

static bool number_nodes(struct tree *t)
{
	size_t cap = 0;

	for (uint32_t n = 0; n < t->nodes; n++) {
		uint64_t ino = ino_of(t, n);

		if (n + AHEAD < t->nodes)
			__builtin_prefetch(&t->slots[slot_of(t, view_id(t, n + AHEAD))],
					   1);
		if ((n == t->options.root || ino >= TREE_FIRST) && insert_node(t, n, ino))
			continue;
		if (!add_late(t, &cap, n))
			return false;
	}
	return t->n_late == 0 || insert_late(t);
}

static uint64_t random_odd(void)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
		r = UINT64_C(0x9e3779b97f4a7c15);
	return r | 1;
}

/* Count the names of DIR, a directory below the root, and mark its subdirectories. */
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

/* Count the nodes and links below the root: names elsewhere cannot be reached. */
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

static unsigned class_of(const struct tree *t, uint32_t file)
{
	size_t entry;

	return t->options.classes->of[kp_view_archive(t->view, file, &entry)];
}

static bool has_all_classes(const struct tree *t, uint32_t file)
{
	struct kp_view_bundle b;

	return kp_view_bundle(t->view, file, &b) && b.all;
}

static void find_file_classes(struct tree *t, uint32_t dir)
{
	const struct kp_view_dir *d = kp_view_dir(t->view, dir);

	for (uint32_t i = 0; i < d->count; i++) {
		struct kp_view_name name = kp_view_name(t->view, d->first + i);

		if (name.kind != KP_VIEW_DIR)
			t->dir_classes[dir] |= UINT64_C(1) << class_of(t, name.index);
	}
}

/* Find the classes of the files below each directory, if there are several. */
static bool find_classes(struct tree *t)
{
	if (!t->options.classes || t->options.classes->count < 2)
		return true;
	t->dir_classes = calloc((size_t)t->dirs + 1, sizeof(*t->dir_classes));
	if (!t->dir_classes)
		return false;
	for (uint32_t f = 0; f < t->nodes - t->dirs; f++)
		t->class_files[class_of(t, f)] += !has_all_classes(t, f);
	/* A parent has a smaller number than its children. */
	for (uint32_t d = t->dirs; d-- > 0;) {
		find_file_classes(t, d);
		if (d)
			t->dir_classes[kp_view_dir(t->view, d)->parent] |=
				t->dir_classes[d];
	}
	return true;
}

kpack_error_t tree_new(const struct kp_view *view, const struct tree_options *options,
		       const struct tree_taken *taken, struct tree **out,
		       struct kpackx_error *why)
{
	uint64_t nodes = (uint64_t)kp_view_dir_count(view) + kp_view_file_count(view);
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
	t->scatter = random_odd();
	/* Between 2/5 and 4/5 full. */
	for (t->shift = 56; slot_count(t) / 5 * 4 < nodes; t->shift--)
		;
	for (t->mask = 1; t->mask < t->nodes; t->mask = 2 * t->mask + 1)
		;
	t->slots = kp_large_alloc(slot_count(t) * sizeof(*t->slots));
	if (!t->slots)
		goto fail;
	memset(t->slots, 0, slot_count(t) * sizeof(*t->slots));
	if (!number_nodes(t) || !count_shown(t) || !find_classes(t))
		goto fail;
	t->taken = NULL;
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
	free(t->dir_classes);
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
	*out = node_at(t, node_in(t, slot));
	return true;
}

bool tree_find_near(const struct tree *t, uint64_t ino, uint32_t *position,
		    struct tree_node *out)
{
	if (*position < t->nodes && ino_of(t, *position) == ino)
		*out = node_at(t, *position);
	else if (!tree_find(t, ino, out))
		return false;
	*position = tree_position(t, *out) + 1;
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

bool tree_differs(const struct tree *t, uint32_t dir)
{
	uint64_t set = t->dir_classes ? t->dir_classes[dir] : 0;

	return set & (set - 1);
}

/* A directory without files is seen by all. */
bool tree_sees(const struct tree *t, struct tree_node node, uint64_t seen)
{
	if (!t->dir_classes)
		return !t->options.classes || !t->options.classes->count || seen & 1;
	if (!node.is_dir && has_all_classes(t, node.index))
		return seen == CLASSES_ALL;
	if (!node.is_dir)
		return seen >> class_of(t, node.index) & 1;
	return !t->dir_classes[node.index] || t->dir_classes[node.index] & seen;
}

bool tree_seen(const struct tree *t, uint32_t dir, uint32_t name, uint64_t seen,
	       struct tree_node *out, uint32_t *next)
{
	const struct kp_view_dir *d = kp_view_dir(t->view, dir);
	uint32_t end = d->first + d->count, i = name;
	bool found = false;

	do {
		struct kp_view_name n = kp_view_name(t->view, i);
		struct tree_node node = tree_named(t, &n);

		if (!found && tree_sees(t, node, seen)) {
			*out = node;
			found = true;
		}
		i++;
	} while (i < end && kp_view_repeats(t->view, dir, i));
	if (next)
		*next = i;
	return found;
}

bool tree_lookup(const struct tree *t, uint32_t dir, struct kp_span text, uint64_t seen,
		 struct tree_node *out)
{
	uint32_t name;

	return kp_view_lookup(t->view, dir, text, &name) &&
	       tree_seen(t, dir, name, seen, out, NULL);
}

uint64_t tree_seen_count(const struct tree *t, uint64_t seen)
{
	uint64_t n = 0;

	if (!t->dir_classes)
		return tree_sees(t, tree_root(t), seen)
			       ? (uint64_t)t->shown_dirs + t->shown_files
			       : 0;
	for (uint32_t d = 0; d < t->dirs; d++)
		n += !t->dir_classes[d] || t->dir_classes[d] & seen;
	for (unsigned i = 0; i < t->options.classes->count; i++)
		n += seen >> i & 1 ? t->class_files[i] : 0;
	return n;
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

/* The attributes of ST, but with the readers R. */
static struct stat read_by(struct readers r, struct stat st)
{
	st.st_uid = r.uid;
	st.st_gid = r.gid;
	st.st_mode = r.mode;
	return st;
}

/* The attributes that the files of a directory give it. */
static struct stat look_of(const struct tree *t, uint32_t dir)
{
	const struct classes *c = t->options.classes;
	struct stat st = {0};
	unsigned i;

	if (!t->dir_classes || !t->dir_classes[dir] || tree_differs(t, dir))
		return t->options.look;
	i = (unsigned)__builtin_ctzll(t->dir_classes[dir]);
	st.st_mtim = c->list[i].newest;
	return read_by(c->list[i].readers, st);
}

static void stat_dir(const struct tree *t, uint32_t dir, struct stat *out)
{
	const struct stat look = look_of(t, dir);

	stat_common(t, &look, out);
	/* A user who may read the archives may also search the directories. */
	out->st_mode |= out->st_mode >> 2;
	/* If readers see different subdirectories, none can be counted. */
	out->st_nlink = tree_differs(t, dir) ? 1 : 2 + kp_view_dir(t->view, dir)->subdirs;
	/* The root is found by users who may not search it. */
	if (dir == t->options.root && t->options.classes &&
	    (out->st_mode & 0444) != 0444) {
		out->st_nlink = 1;
		out->st_atim = out->st_mtim = out->st_ctim = (struct timespec){0};
	}
	out->st_mode = S_IFDIR | (out->st_mode & ~t->options.mask);
}

/*
 * The attributes that the archives of a bundle give it: read bits that all have, the
 * newest times, the owner of the part that has its class.
 */
static struct stat look_of_bundle(const struct tree *t, uint32_t file,
				  const struct kp_view_bundle *b)
{
	size_t entry;
	struct stat look = *kp_archive_stat(kp_view_entry(t->view, file, &entry));

	for (uint32_t i = 0; i < b->count; i++) {
		const struct stat *st =
			kp_archive_stat(kp_view_entry(t->view, b->parts[i].file, &entry));

		if (st->st_mtim.tv_sec > look.st_mtim.tv_sec ||
		    (st->st_mtim.tv_sec == look.st_mtim.tv_sec &&
		     st->st_mtim.tv_nsec > look.st_mtim.tv_nsec))
			look.st_mtim = st->st_mtim;
		look.st_mode &= st->st_mode;
	}
	if (t->options.classes)
		look = read_by(t->options.classes->list[class_of(t, file)].readers, look);
	return look;
}

static void stat_bundle(const struct tree *t, uint32_t file,
			const struct kp_view_bundle *b, struct stat *out)
{
	struct stat look = look_of_bundle(t, file, b);

	stat_common(t, &look, out);
	if (b->all) {
		/* Only root and the user who mounted are readers of all classes. */
		out->st_uid = geteuid();
		out->st_gid = getegid();
		out->st_mode = 0400;
	}
	out->st_mode = S_IFREG | (out->st_mode & ~t->options.mask);
	out->st_nlink = 1;
	out->st_size = (off_t)b->size;
	/* The objects are counted as files of toc/. */
	out->st_blocks = (blkcnt_t)((b->header.size + 511) / 512);
}

static void stat_file(const struct tree *t, uint32_t file, struct stat *out)
{
	struct kp_entry_info info;
	struct kp_meta meta;
	size_t entry;
	struct kpack_archive *a = kp_view_entry(t->view, file, &entry);
	struct stat look = *kp_archive_stat(a);

	if (t->options.classes)
		look = read_by(t->options.classes->list[class_of(t, file)].readers, look);
	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	stat_common(t, &look, out);
	/* A user who cannot read the archive cannot execute its contents either. */
	out->st_mode |= meta.mode & (out->st_mode >> 2);
	out->st_mode = S_IFREG | (out->st_mode & ~t->options.mask);
	out->st_nlink = t->links ? t->links[file] : kp_view_file(t->view, file)->nlink;
	out->st_size = (off_t)info.size;
	out->st_blocks = (blkcnt_t)(info.stored / 512 + (info.stored % 512 != 0));
}

void tree_stat(const struct tree *t, struct tree_node node, struct stat *out)
{
	struct kp_view_bundle b;

	*out = (struct stat){.st_ino = node.ino};
	if (node.is_dir)
		stat_dir(t, node.index, out);
	else if (kp_view_bundle(t->view, node.index, &b))
		stat_bundle(t, node.index, &b, out);
	else
		stat_file(t, node.index, out);
}
