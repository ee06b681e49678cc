/* SPDX-License-Identifier: MIT */
/*
 * One edition is current.  A look-up counts for its node in an array by position; when
 * editions are swapped, the counts of nodes that the new edition has, too, are carried
 * over, and a node that it has not becomes a retired inode if the kernel knows it.  Then
 * the two editions are compared, name by name, but only where the kernel has looked, and
 * it is told what differs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "inodes.h"
#include "fs/base/log.h"
#include "dir_positions.h"
#include "core/base/hash.h"

/* --- retired inodes ------------------------------------------------------------------- */

/* An inode that the kernel still holds though no name leads to it any more. */
struct retired_inode {
	struct retired_inode *next; /* in its bucket */
	uint64_t id;                /* directories: the view's ID */
	uint64_t lookups;
	struct stat st;           /* the inode's number is st.st_ino */
	struct file_content file; /* files: with a reference */
};

/* A table of them, by number.  Each keeps its archives open. */
struct retired_inodes {
	struct retired_inode **buckets;
	size_t size; /* a power of two, or 0 */
	size_t count;
	size_t archives; /* archives with retired inodes */
};

static struct retired_inode **bucket_of(const struct retired_inodes *r, uint64_t ino)
{
	return &r->buckets[kp_slot_hash(&ino, sizeof(ino), 0) & (r->size - 1)];
}

static struct retired_inode **place_of(const struct retired_inodes *r, uint64_t ino)
{
	struct retired_inode **at = bucket_of(r, ino);

	while (*at && (*at)->st.st_ino != ino)
		at = &(*at)->next;
	return at;
}

static struct retired_inode *retired_inodes_find(const struct retired_inodes *r,
						 uint64_t ino)
{
	return r->count ? *place_of(r, ino) : NULL;
}

static bool grow_table(struct retired_inodes *r)
{
	struct retired_inodes old = *r;

	if (r->count < r->size)
		return true;
	r->size = old.size ? 2 * old.size : 64;
	r->buckets = calloc(r->size, sizeof(*r->buckets));
	if (!r->buckets) {
		*r = old;
		return false;
	}
	for (size_t i = 0; i < old.size; i++) {
		struct retired_inode *next;

		for (struct retired_inode *n = old.buckets[i]; n; n = next) {
			struct retired_inode **at = bucket_of(r, n->st.st_ino);

			next = n->next;
			n->next = *at;
			*at = n;
		}
	}
	free(old.buckets);
	return true;
}

static bool retired_inodes_add(struct retired_inodes *r,
			       const struct retired_inode *inode)
{
	struct retired_inode *n = malloc(sizeof(*n)), **at;

	if (!n || !grow_table(r)) {
		free(n);
		return false;
	}
	*n = *inode;
	at = bucket_of(r, n->st.st_ino);
	n->next = *at;
	*at = n;
	r->count++;
	file_content_ref(&n->file);
	if (n->file.entry.origin)
		r->archives += n->file.entry.origin->retired++ == 0;
	for (uint32_t i = 0; n->file.bundle && i < n->file.bundle->count; i++)
		r->archives += n->file.bundle->parts[i].what.origin->retired++ == 0;
	return true;
}

/* An inode of O was removed. */
static void release_origin(struct retired_inodes *r, struct origin *o,
			   struct holdings *last)
{
	if (--o->retired)
		return;
	r->archives--;
	holdings_add(last, origin_ref(o));
}

static void retired_inodes_remove(struct retired_inodes *r, uint64_t ino,
				  struct holdings *last)
{
	struct retired_inode **at = place_of(r, ino), *n = *at;

	*at = n->next;
	r->count--;
	if (n->file.entry.origin)
		release_origin(r, n->file.entry.origin, last);
	for (uint32_t i = 0; n->file.bundle && i < n->file.bundle->count; i++)
		release_origin(r, n->file.bundle->parts[i].what.origin, last);
	file_content_unref(&n->file);
	free(n);
}

static void retired_inodes_fini(struct retired_inodes *r)
{
	for (size_t i = 0; i < r->size; i++) {
		struct retired_inode *next;

		for (struct retired_inode *n = r->buckets[i]; n; n = next) {
			next = n->next;
			file_content_unref(&n->file);
			free(n);
		}
	}
	free(r->buckets);
	*r = (struct retired_inodes){0};
}

/* --- the inodes ----------------------------------------------------------------------- */

struct inodes {
	inodes_idle *idle;
	void *user;

	pthread_rwlock_t
		swap; /* held for reading to use the edition, for writing to swap it */
	struct edition *now;
	atomic_uint_least64_t *lookups; /* by position in the tree of `now` */
	/* where inodes_taken looks first: the next position of a file, of a directory */
	uint32_t near[2];
	struct dir_positions positions;

	pthread_mutex_t lock; /* taken after `swap`; guards the fields below */
	struct retired_inodes retired;
};

/* --- asking ----------------------------------------------------------------------- */

const struct edition *inodes_enter(struct inodes *in)
{
	pthread_rwlock_rdlock(&in->swap);
	return in->now;
}

void inodes_leave(struct inodes *in)
{
	pthread_rwlock_unlock(&in->swap);
}

struct edition *inodes_edition(struct inodes *in)
{
	struct edition *e;

	inodes_enter(in);
	e = edition_ref(in->now);
	inodes_leave(in);
	return e;
}

static bool find_retired(struct inodes *in, uint64_t ino, struct retired_inode *out)
{
	const struct retired_inode *r;

	pthread_mutex_lock(&in->lock);
	r = retired_inodes_find(&in->retired, ino);
	if (r) {
		*out = *r;
		file_content_ref(&r->file);
	}
	pthread_mutex_unlock(&in->lock);
	return r != NULL;
}

bool inodes_find(struct inodes *in, uint64_t ino, struct inode *out)
{
	struct retired_inode r;

	*out = (struct inode){0};
	if (tree_find(in->now->tree, ino, &out->node)) {
		tree_stat(in->now->tree, out->node, &out->st);
		return true;
	}
	if (!find_retired(in, ino, &r))
		return false;
	file_content_unref(&r.file);
	out->retired = true;
	out->node.ino = ino;
	out->node.is_dir = S_ISDIR(r.st.st_mode);
	out->st = r.st;
	return true;
}

int inodes_file(struct inodes *in, uint64_t ino, struct file_content *out)
{
	struct tree_node node;
	struct retired_inode r;

	*out = (struct file_content){0};
	if (tree_find(in->now->tree, ino, &node)) {
		if (node.is_dir)
			return EISDIR;
		return edition_file(in->now, node.index, out) ? 0 : ENOMEM;
	}
	if (!find_retired(in, ino, &r))
		return ESTALE;
	*out = r.file;
	return S_ISDIR(r.st.st_mode) ? EISDIR : 0;
}

/*
 * Add N (modulo 2^64, so a negative N subtracts) to the look-ups of the edition's node
 * INO; false: the edition has no such node.
 */
static bool add_lookups(struct inodes *in, uint64_t ino, uint64_t n)
{
	struct tree_node node;

	if (!tree_find(in->now->tree, ino, &node))
		return false;
	atomic_fetch_add_explicit(&in->lookups[tree_position(in->now->tree, node)], n,
				  memory_order_relaxed);
	return true;
}

void inodes_count(struct inodes *in, uint64_t ino)
{
	struct retired_inode *r;

	if (add_lookups(in, ino, 1))
		return;
	pthread_mutex_lock(&in->lock);
	r = retired_inodes_find(&in->retired, ino);
	if (r)
		r->lookups++;
	pthread_mutex_unlock(&in->lock);
}

void inodes_uncount(struct inodes *in, uint64_t ino)
{
	/* A retired inode keeps the count: requests find it only by its number, so the
	 * kernel holds it anyway. */
	add_lookups(in, ino, UINT64_MAX);
}

/*
 * Whether E has O.  The search begins at *NEAR, which becomes the position behind O: two
 * editions have most archives in the same order.
 */
static bool holds_origin(const struct edition *e, const struct origin *o, size_t *near)
{
	const struct holdings *h = &e->holdings;
	size_t at = *near;

	for (size_t i = 0; i < h->count; i++, at++) {
		if (at >= h->count)
			at = 0;
		if (h->origins[at] != o)
			continue;
		*near = at + 1;
		return true;
	}
	return false;
}

/*
 * Forget N look-ups of the retired inode INO.  Archives that have no retired inode any
 * more are added to LAST.
 */
static void forget_retired(struct inodes *in, uint64_t ino, uint64_t n,
			   struct holdings *last)
{
	struct retired_inode *r;

	pthread_mutex_lock(&in->lock);
	r = retired_inodes_find(&in->retired, ino);
	if (r && r->lookups > n)
		r->lookups -= n;
	else if (r)
		retired_inodes_remove(&in->retired, ino, last);
	pthread_mutex_unlock(&in->lock);
}

void inodes_forget(struct inodes *in, uint64_t ino, uint64_t n)
{
	struct holdings last = {0};
	size_t near = 0;

	inodes_enter(in);
	if (!add_lookups(in, ino, -n))
		forget_retired(in, ino, n, &last);
	for (size_t i = 0; i < last.count; i++)
		atomic_store(&last.origins[i]->idle,
			     !holds_origin(in->now, last.origins[i], &near));
	inodes_leave(in);
	for (size_t i = 0; i < last.count; i++)
		if (atomic_load(&last.origins[i]->idle))
			in->idle(in->user, last.origins[i]);
	holdings_fini(&last);
}

uint64_t inodes_encode_position(const struct inodes *in, uint64_t index)
{
	return dir_positions_encode(&in->positions, index);
}

uint64_t inodes_position(const struct inodes *in, uint64_t dir, uint64_t position)
{
	return dir_positions_find(&in->positions, dir, position);
}

void inodes_retired(struct inodes *in, size_t *inodes, size_t *archives)
{
	pthread_mutex_lock(&in->lock);
	*inodes = in->retired.count;
	*archives = in->retired.archives;
	pthread_mutex_unlock(&in->lock);
}

/* --- numbers that are taken ------------------------------------------------------- */

/*
 * True if node A of edition E is the same directory or file as NODE of VIEW.  If users
 * share the mount, a file with other readers is another file: the kernel keeps pages for
 * its readers, and that the contents are equal is only what the archives say.
 */
static bool same_node(const struct edition *e, struct tree_node a,
		      const struct kp_view *view, struct tree_node node)
{
	struct file_content content = {0};
	struct kp_view_bundle b;
	bool same;

	if (a.is_dir != node.is_dir)
		return false;
	if (a.is_dir)
		return kp_view_dir(e->view, a.index)->id ==
		       kp_view_dir(view, node.index)->id;
	if (!kp_view_bundle(e->view, a.index, &b)) {
		content.entry = edition_entry(e, a.index); /* borrowed */
		return file_content_same(&content, view, node.index, e->shared);
	}
	if (!edition_file(e, a.index, &content))
		return false;
	same = file_content_same(&content, view, node.index, e->shared);
	file_content_unref(&content);
	return same;
}

static bool same_retired(const struct retired_inode *r, const struct kp_view *view,
			 struct tree_node node, bool shared)
{
	bool is_dir = S_ISDIR(r->st.st_mode);

	if (is_dir || node.is_dir)
		return is_dir && node.is_dir &&
		       r->id == kp_view_dir(view, node.index)->id;
	return file_content_same(&r->file, view, node.index, shared);
}

bool inodes_taken(void *inodes, uint64_t ino, const struct kp_view *view,
		  struct tree_node node)
{
	struct inodes *in = inodes;
	struct tree_node known;
	struct retired_inode r;
	bool taken;

	/* No lock is needed: only the calling thread swaps editions.  Most of an edition's
	 * nodes are in the order of the last edition. */
	if (tree_find_near(in->now->tree, ino, &in->near[node.is_dir], &known))
		return !same_node(in->now, known, view, node);
	if (!find_retired(in, ino, &r))
		return false;
	taken = !same_retired(&r, view, node, in->now->shared);
	file_content_unref(&r.file);
	return taken;
}

/* --- swapping --------------------------------------------------------------------- */

/* A swap: the last edition, and what the kernel knows of it. */
struct swap {
	struct edition *last;
	atomic_uint_least64_t *lookups;
	struct holdings revived; /* archives whose last retired inode was revived */
	bool no_memory;
};

static bool retire_node(struct inodes *in, const struct swap *s, struct tree_node node,
			uint64_t lookups)
{
	struct retired_inode r = {.lookups = lookups};
	bool ok;

	tree_stat(s->last->tree, node, &r.st);
	if (node.is_dir)
		r.id = kp_view_dir(s->last->view, node.index)->id;
	if (!node.is_dir && !edition_file(s->last, node.index, &r.file))
		return false;
	ok = retired_inodes_add(&in->retired, &r);
	file_content_unref(&r.file);
	return ok;
}

/*
 * For each node of the last edition that the kernel knows: carry its look-ups over to the
 * new edition, or retire the node if the new edition does not have it.
 */
static void carry_over_lookups(struct inodes *in, struct swap *s)
{
	const struct tree *to = in->now->tree;

	for (uint32_t i = 0; i < tree_size(s->last->tree); i++) {
		struct tree_node node, found;
		uint64_t n = s->lookups[i];

		if (!n)
			continue;
		node = tree_at(s->last->tree, i);
		if (tree_find(to, node.ino, &found))
			in->lookups[tree_position(to, found)] += n;
		else if (!retire_node(in, s, node, n))
			s->no_memory = true;
	}
}

/* Take inodes that the new edition has out of the table of retired ones. */
static void revive_inodes(struct inodes *in, struct swap *s)
{
	const struct tree *to = in->now->tree;

	for (size_t i = 0; i < in->retired.size; i++) {
		struct retired_inode *r = in->retired.buckets[i], *next;

		for (; r; r = next) {
			struct tree_node found;

			next = r->next;
			if (!tree_find(to, r->st.st_ino, &found))
				continue;
			in->lookups[tree_position(to, found)] += r->lookups;
			retired_inodes_remove(&in->retired, r->st.st_ino, &s->revived);
		}
	}
}

/* Whether the kernel knows the node at POSITION: it has looked it up, or it is the ROOT. */
static bool is_known(const atomic_uint_least64_t *lookups, uint32_t position,
		     uint32_t root)
{
	return position == root || lookups[position];
}

/*
 * The shifts of the directories that the kernel knows: only these can be in the middle of
 * a listing.
 */
static struct shift *find_shifts(struct inodes *in, const struct edition *next)
{
	const struct tree *from = in->now->tree;
	uint32_t dirs = kp_view_dir_count(in->now->view);
	uint32_t root = tree_position(from, tree_root(from));
	struct shift *list = NULL;

	for (uint32_t i = 0; i < dirs; i++) {
		struct tree_node a, b;

		if (!is_known(in->lookups, i, root))
			continue;
		a = tree_at(from, i);
		if (tree_find(next->tree, a.ino, &b))
			list = shift_joined(shift_new(in->now, a, next, b), list);
	}
	return list;
}

static void exchange_editions(struct inodes *in, struct edition *next,
			      atomic_uint_least64_t *lookups, struct swap *s)
{
	struct shift *shifts = find_shifts(in, next);

	pthread_rwlock_wrlock(&in->swap);
	pthread_mutex_lock(&in->lock);
	*s = (struct swap){.last = in->now, .lookups = in->lookups};
	in->now = next;
	in->lookups = lookups;
	dir_positions_advance(&in->positions, shifts);
	revive_inodes(in, s);
	carry_over_lookups(in, s);
	pthread_mutex_unlock(&in->lock);
	pthread_rwlock_unlock(&in->swap);
}

/* --- reporting what changed -------------------------------------------------------- */

struct notifier {
	const struct edition *from, *to;
	void (*notify)(void *user, const struct change *c);
	void *user;
	size_t names;
};

static void report_name(struct notifier *n, uint64_t dir, struct kp_span name)
{
	struct change c = {.what = CHANGED_NAME, .ino = dir};

	if (name.size >= sizeof(c.name))
		return;
	memcpy(c.name, name.data, name.size);
	n->names++;
	n->notify(n->user, &c);
}

/*
 * Report the names that differ between directory A of the last edition and B of the new.
 * Both lists are in bytewise order.
 */
static void compare_names(struct notifier *n, struct tree_node a, struct tree_node b)
{
	const struct kp_view_dir *x = kp_view_dir(n->from->view, a.index);
	const struct kp_view_dir *y = kp_view_dir(n->to->view, b.index);
	size_t before = n->names;

	for (uint32_t i = 0, k = 0; i < x->count || k < y->count;) {
		struct kp_view_name old = {0}, new = {0};
		int c = 0;

		if (i < x->count)
			old = kp_view_name(n->from->view, x->first + i);
		if (k < y->count)
			new = kp_view_name(n->to->view, y->first + k);
		if (i == x->count || k == y->count)
			c = i == x->count ? 1 : -1;
		else
			c = kp_span_cmp(old.text, new.text);
		if (c || tree_named(n->from->tree, &old).ino !=
				 tree_named(n->to->tree, &new).ino)
			report_name(n, a.ino, c > 0 ? new.text : old.text);
		i += c <= 0;
		k += c >= 0;
	}
	if (n->names > before)
		n->notify(n->user, &(struct change){.what = CHANGED_NAMES, .ino = a.ino});
}

static void compare_node(struct notifier *n, struct tree_node a, struct tree_node b)
{
	struct stat x, y;

	if (a.is_dir)
		compare_names(n, a, b);
	tree_stat(n->from->tree, a, &x);
	tree_stat(n->to->tree, b, &y);
	if (x.st_mode != y.st_mode || x.st_uid != y.st_uid || x.st_gid != y.st_gid ||
	    x.st_nlink != y.st_nlink || x.st_size != y.st_size ||
	    x.st_blocks != y.st_blocks || x.st_mtim.tv_sec != y.st_mtim.tv_sec ||
	    x.st_mtim.tv_nsec != y.st_mtim.tv_nsec)
		n->notify(n->user, &(struct change){.what = CHANGED_STAT, .ino = a.ino});
}

/*
 * The directory A has gone.  With its name the kernel drops the names below, but not those
 * of files that are open, or of a working directory: when the directory comes back, it would
 * have them again.
 */
static void take_back_names(struct notifier *n, struct tree_node a,
			    const atomic_uint_least64_t *lookups)
{
	const struct kp_view_dir *dir = kp_view_dir(n->from->view, a.index);
	const struct tree *from = n->from->tree;
	size_t names = n->names; /* the directory's name stands for these */

	for (uint32_t i = 0; i < dir->count; i++) {
		struct kp_view_name name = kp_view_name(n->from->view, dir->first + i);

		if (lookups[tree_position(from, tree_named(from, &name))])
			report_name(n, a.ino, name.text);
	}
	n->names = names;
}

/*
 * Report all changes.  Only nodes that the kernel has looked up matter: it can have
 * cached nothing about other nodes.
 */
static void report_changes(struct notifier *n, const atomic_uint_least64_t *lookups)
{
	const struct tree *from = n->from->tree;
	uint32_t root = tree_position(from, tree_root(from)), nodes = tree_size(from);

	for (uint32_t i = 0; i < nodes; i++) {
		struct tree_node a, b;

		if (!is_known(lookups, i, root))
			continue;
		a = tree_at(from, i);
		if (tree_find(n->to->tree, a.ino, &b))
			compare_node(n, a, b);
		else if (a.is_dir)
			take_back_names(n, a, lookups);
	}
}

/* Mark those archives of H as idle that neither the edition nor a retired inode needs. */
static void mark_idle_origins(struct inodes *in, const struct holdings *h)
{
	size_t near = 0;

	for (size_t i = 0; i < h->count; i++) {
		struct origin *o = h->origins[i];
		bool needed;

		pthread_mutex_lock(&in->lock);
		needed = o->retired;
		pthread_mutex_unlock(&in->lock);
		if (needed || holds_origin(in->now, o, &near))
			continue;
		atomic_store(&o->idle, true);
		in->idle(in->user, o);
	}
}

/* --- counts ----------------------------------------------------------------------- */

static size_t counts_size(const struct edition *e)
{
	return ((size_t)tree_size(e->tree) + 1) * sizeof(atomic_uint_least64_t);
}

/* Mapped, so that counts of nodes that the kernel never asks for take no memory. */
static atomic_uint_least64_t *counts_for(const struct edition *e)
{
	void *counts = mmap(NULL, counts_size(e), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (counts == MAP_FAILED)
		return NULL;
	madvise(counts, counts_size(e), MADV_NOHUGEPAGE); /* only advice */
	return counts;
}

static void free_counts(atomic_uint_least64_t *counts, const struct edition *e)
{
	munmap((void *)counts, counts_size(e));
}

/* --- the calls -------------------------------------------------------------------- */

bool inodes_swap(struct inodes *in, struct edition *next,
		 void (*notify)(void *user, const struct change *c), void *user,
		 size_t *names)
{
	struct notifier n = {.to = next, .notify = notify, .user = user};
	atomic_uint_least64_t *lookups = counts_for(next);
	struct swap s;

	if (!lookups) {
		log_print(LOG_ERR, "out of memory");
		edition_unref(next);
		return false;
	}
	exchange_editions(in, next, lookups, &s);
	if (s.no_memory)
		log_print(LOG_ERR, "out of memory: some open files cannot be read now");
	n.from = s.last;
	report_changes(&n, s.lookups);
	mark_idle_origins(in, &s.last->holdings);
	mark_idle_origins(in, &s.revived);
	holdings_fini(&s.revived);
	free_counts(s.lookups, s.last);
	edition_unref(s.last);
	*names = n.names;
	return true;
}

struct inodes *inodes_new(struct edition *first, inodes_idle *idle, void *user)
{
	struct inodes *in = calloc(1, sizeof(*in));
	pthread_rwlockattr_t attr;

	if (!in || !(in->lookups = counts_for(first))) {
		free(in);
		edition_unref(first);
		return NULL;
	}
	in->idle = idle;
	in->user = user;
	in->now = first;
	/* Writers first: on a busy mount there is always a reader, and a swap that waited
	 * for a moment without readers would starve. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr,
				      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&in->swap, &attr);
	pthread_rwlockattr_destroy(&attr);
	pthread_mutex_init(&in->lock, NULL);
	return in;
}

void inodes_free(struct inodes *in)
{
	if (!in)
		return;
	retired_inodes_fini(&in->retired);
	dir_positions_fini(&in->positions);
	free_counts(in->lookups, in->now);
	edition_unref(in->now);
	pthread_mutex_destroy(&in->lock);
	pthread_rwlock_destroy(&in->swap);
	free(in);
}
