/* SPDX-License-Identifier: MIT */
/*
 * One edition is current.  A look-up counts for its node in an array by position; when
 * editions are swapped, the counts of nodes that the new edition has, too, are carried
 * over, and a node that it has not becomes a retired inode if the kernel knows it.  Then
 * the two editions are compared, name by name, but only where the kernel has looked, and
 * it is told what differs.
 *
 * A position in a listing is the number of a name in its directory, and the edition in which
 * the name has that number.  A swap leaves a shift for each directory whose names moved: the
 * new number of each old number.  A position of an old edition goes through the shifts of all
 * swaps since; of swaps that are forgotten, the numbers are used unchanged.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "fs/base/log.h"
#include "inodes.h"

/* An inode that the kernel still holds though no name leads to it any more. */
struct retired {
	struct retired *next; /* in its bucket */
	uint64_t id;          /* directories: the view's ID */
	uint64_t lookups;
	struct stat st;           /* the inode's number is st.st_ino */
	struct file_content file; /* files: with a reference, which keeps archives open */
};

#define BUCKETS (1 << 16)

/* The moves of the names of one directory in one swap. */
struct shift {
	struct shift *next;
	uint64_t edition; /* number of the edition before the swap */
	uint64_t dir;     /* inode number of the directory */
	uint32_t count;
	uint32_t to[]; /* the new number of each name, and of the end */
};

/*
 * The low INDEX_BITS of a position are the number of the name, the bits above are the
 * edition, modulo EDITIONS.
 */
#define INDEX_BITS 40
#define EDITIONS (UINT64_C(1) << 20)
/* Names whose moves are remembered, in all swaps together. */
#define SHIFTED_MAX (1 << 20)

struct inodes {
	inodes_idle *idle;
	void *user;

	/* held for reading to use the edition, for writing to swap it */
	pthread_rwlock_t swap;
	struct edition *now;
	atomic_uint_least64_t *lookups; /* by position in the tree of `now` */
	/* where inodes_taken looks first: the next position of a file, of a directory */
	uint32_t near[2];
	uint64_t swaps;
	struct shift *shifts; /* of the latest swap first */

	pthread_mutex_t lock;     /* taken after `swap`; guards the fields below */
	struct retired **retired; /* BUCKETS lists, by number */
	size_t n_retired;
	size_t n_archives; /* that have retired inodes */
};

/* --- retired inodes, with the lock ---------------------------------------------------- */

/* Where the retired inode INO is linked, or NULL would be replaced by it. */
static struct retired **retired_at(const struct inodes *in, uint64_t ino)
{
	struct retired **at = &in->retired[kp_slot_hash(&ino, sizeof(ino), 0) % BUCKETS];

	while (*at && (*at)->st.st_ino != ino)
		at = &(*at)->next;
	return at;
}

/* The archive of entry number I of a file's content; NULL: it has no more. */
static struct origin *origin_of(const struct file_content *file, uint32_t i)
{
	if (file->bundle)
		return i < file->bundle->count ? file->bundle->parts[i].what.origin
					       : NULL;
	return i == 0 ? file->entry.origin : NULL;
}

/* Remove the inode at AT.  Archives that have no retired inode any more are added to LAST. */
static void remove_retired(struct inodes *in, struct retired **at, struct holdings *last)
{
	struct retired *r = *at;
	struct origin *o;

	*at = r->next;
	in->n_retired--;
	for (uint32_t i = 0; (o = origin_of(&r->file, i)); i++)
		if (--o->retired == 0) {
			in->n_archives--;
			holdings_add(last, origin_ref(o));
		}
	file_content_unref(&r->file);
	free(r);
}

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

static bool find_retired(struct inodes *in, uint64_t ino, struct retired *out)
{
	const struct retired *r;

	pthread_mutex_lock(&in->lock);
	r = *retired_at(in, ino);
	if (r) {
		*out = *r;
		file_content_ref(&r->file);
	}
	pthread_mutex_unlock(&in->lock);
	return r;
}

bool inodes_find(struct inodes *in, uint64_t ino, struct inode *out)
{
	struct retired r;

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
	struct retired r;

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
	struct retired *r;

	if (add_lookups(in, ino, 1))
		return;
	pthread_mutex_lock(&in->lock);
	r = *retired_at(in, ino);
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

void inodes_forget(struct inodes *in, uint64_t ino, uint64_t n)
{
	struct holdings last = {0};
	struct retired **at;
	size_t near = 0;

	inodes_enter(in);
	if (!add_lookups(in, ino, -n)) {
		pthread_mutex_lock(&in->lock);
		at = retired_at(in, ino);
		if (*at && (*at)->lookups > n)
			(*at)->lookups -= n;
		else if (*at)
			remove_retired(in, at, &last);
		pthread_mutex_unlock(&in->lock);
	}
	for (size_t i = 0; i < last.count; i++)
		atomic_store(&last.origins[i]->idle,
			     !holds_origin(in->now, last.origins[i], &near));
	inodes_leave(in);
	for (size_t i = 0; i < last.count; i++)
		if (atomic_load(&last.origins[i]->idle))
			in->idle(in->user, last.origins[i]);
	holdings_fini(&last);
}

void inodes_retired(struct inodes *in, size_t *inodes, size_t *archives)
{
	pthread_mutex_lock(&in->lock);
	*inodes = in->n_retired;
	*archives = in->n_archives;
	pthread_mutex_unlock(&in->lock);
}

/* --- positions in listings -------------------------------------------------------- */

uint64_t inodes_encode_position(const struct inodes *in, uint64_t index)
{
	return in->swaps % EDITIONS << INDEX_BITS | index;
}

uint64_t inodes_position(const struct inodes *in, uint64_t dir, uint64_t position)
{
	uint64_t index = position & ((UINT64_C(1) << INDEX_BITS) - 1);
	uint64_t age = (in->swaps - (position >> INDEX_BITS)) % EDITIONS;

	/* A search of the list is enough: it is short, and empty until something changes. */
	if (!in->shifts || age > in->swaps)
		return index;
	for (; age; age--)
		for (const struct shift *s = in->shifts; s; s = s->next)
			if (s->edition == in->swaps - age && s->dir == dir) {
				index = s->to[index < s->count ? index : s->count];
				break;
			}
	return index;
}

/*
 * Map the names of directory A of the edition to their numbers in B of the NEXT, in front of
 * LIST, which is returned.  Without memory, or if no number changed, nothing is added.
 */
static struct shift *add_shift(struct shift *list, const struct inodes *in,
			       struct tree_node a, const struct edition *next,
			       struct tree_node b)
{
	const struct kp_view *from = in->now->view, *to = next->view;
	const struct kp_view_dir *old = kp_view_dir(from, a.index);
	const struct kp_view_dir *new = kp_view_dir(to, b.index);
	struct shift *s = malloc(sizeof(*s) + (old->count + 1) * sizeof(*s->to));
	bool moved = old->count != new->count;
	uint32_t k = 0;

	if (!s)
		return list;
	*s = (struct shift){list, in->swaps, a.ino, old->count};
	for (uint32_t i = 0; i < old->count; i++) {
		while (k < new->count &&
		       kp_span_cmp(kp_view_name(to, new->first + k).text,
				   kp_view_name(from, old->first + i).text) < 0)
			k++;
		s->to[i] = k;
		moved = moved || k != i;
	}
	s->to[old->count] = new->count;
	if (moved)
		return s;
	free(s);
	return list;
}

static void free_shifts(struct shift *list)
{
	for (struct shift *next; list; list = next) {
		next = list->next;
		free(list);
	}
}

/* --- numbers that are taken ------------------------------------------------------- */

/*
 * If users share the mount, a file with other readers is another file: the kernel keeps pages
 * for its readers, and that the contents are equal is only what the archives say.
 */
bool inodes_taken(void *inodes, uint64_t ino, const struct kp_view *view,
		  struct tree_node node)
{
	struct inodes *in = inodes;
	struct retired known = {0};
	struct tree_node a;
	bool same;

	/* No lock is needed: only the calling thread swaps editions.  Most of an edition's
	 * nodes are in the order of the last edition. */
	if (tree_find_near(in->now->tree, ino, &in->near[node.is_dir], &a)) {
		if (a.is_dir)
			known.id = kp_view_dir(in->now->view, a.index)->id;
		else if (!edition_file(in->now, a.index, &known.file))
			return true;
	} else if (find_retired(in, ino, &known)) {
		a.is_dir = S_ISDIR(known.st.st_mode);
	} else {
		return false;
	}
	if (node.is_dir)
		same = a.is_dir && known.id == kp_view_dir(view, node.index)->id;
	else
		same = !a.is_dir &&
		       file_content_same(&known.file, view, node.index, in->now->shared);
	file_content_unref(&known.file);
	return !same;
}

/* --- reporting what changed -------------------------------------------------------- */

/* Whether the kernel knows the node at POSITION: it has looked it up, or it is the ROOT. */
static bool is_known(const atomic_uint_least64_t *lookups, uint32_t position,
		     uint32_t root)
{
	return position == root || lookups[position];
}

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
		struct stat x, y;

		if (!is_known(lookups, i, root))
			continue;
		a = tree_at(from, i);
		if (!tree_find(n->to->tree, a.ino, &b)) {
			if (a.is_dir)
				take_back_names(n, a, lookups);
			continue;
		}
		if (a.is_dir)
			compare_names(n, a, b);
		tree_stat(from, a, &x);
		tree_stat(n->to->tree, b, &y);
		if (x.st_mode != y.st_mode || x.st_uid != y.st_uid ||
		    x.st_gid != y.st_gid || x.st_nlink != y.st_nlink ||
		    x.st_size != y.st_size || x.st_blocks != y.st_blocks ||
		    x.st_mtim.tv_sec != y.st_mtim.tv_sec ||
		    x.st_mtim.tv_nsec != y.st_mtim.tv_nsec)
			n->notify(n->user,
				  &(struct change){.what = CHANGED_STAT, .ino = a.ino});
	}
}

/* --- swapping --------------------------------------------------------------------- */

/* Keep NODE of the edition LAST, which the kernel has looked up, with the locks. */
static bool retire_node(struct inodes *in, const struct edition *last,
			struct tree_node node, uint64_t lookups)
{
	struct retired *r = calloc(1, sizeof(*r)), **at;
	struct origin *o;

	if (!r || (!node.is_dir && !edition_file(last, node.index, &r->file))) {
		free(r);
		return false;
	}
	tree_stat(last->tree, node, &r->st);
	if (node.is_dir)
		r->id = kp_view_dir(last->view, node.index)->id;
	r->lookups = lookups;
	at = retired_at(in, node.ino);
	*at = r;
	in->n_retired++;
	for (uint32_t i = 0; (o = origin_of(&r->file, i)); i++)
		in->n_archives += o->retired++ == 0;
	return true;
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

bool inodes_swap(struct inodes *in, struct edition *next,
		 void (*notify)(void *user, const struct change *c), void *user,
		 size_t *names)
{
	struct edition *last = in->now;
	struct notifier n = {.from = last, .to = next, .notify = notify, .user = user};
	atomic_uint_least64_t *lookups = counts_for(next), *before = in->lookups;
	uint32_t root = tree_position(last->tree, tree_root(last->tree));
	struct holdings revived = {0}; /* archives without retired inodes now */
	struct tree_node node, found;
	struct shift *shifts = NULL, **last_shift;
	size_t shifted = 0;
	bool fine = true;

	if (!lookups) {
		log_print(LOG_ERR, "out of memory");
		edition_unref(next);
		return false;
	}
	/* only directories that the kernel knows can be in the middle of a listing */
	for (uint32_t i = 0; i < kp_view_dir_count(last->view); i++) {
		if (!is_known(before, i, root))
			continue;
		node = tree_at(last->tree, i);
		if (tree_find(next->tree, node.ino, &found))
			shifts = add_shift(shifts, in, node, next, found);
	}

	pthread_rwlock_wrlock(&in->swap);
	pthread_mutex_lock(&in->lock);
	in->now = next;
	in->lookups = lookups;
	/*
	 * The shifts of this swap come before those of earlier ones, of which the oldest are
	 * forgotten, as far as all together have more than SHIFTED_MAX names.
	 */
	for (last_shift = &shifts; *last_shift;)
		last_shift = &(*last_shift)->next;
	*last_shift = in->shifts;
	in->shifts = shifts;
	in->swaps++;
	for (last_shift = &in->shifts; *last_shift; last_shift = &(*last_shift)->next) {
		shifted += (*last_shift)->count;
		if (shifted > SHIFTED_MAX && last_shift != &in->shifts)
			break;
	}
	free_shifts(*last_shift);
	*last_shift = NULL;
	/* Carry the look-ups over to the new edition.  A retired inode that it has is revived; a
	 * node of the last edition that it has not is retired. */
	for (size_t i = 0; in->n_retired && i < BUCKETS; i++)
		for (struct retired **at = &in->retired[i]; *at;) {
			if (!tree_find(next->tree, (*at)->st.st_ino, &found)) {
				at = &(*at)->next;
				continue;
			}
			lookups[tree_position(next->tree, found)] += (*at)->lookups;
			remove_retired(in, at, &revived);
		}
	for (uint32_t i = 0; i < tree_size(last->tree); i++) {
		uint64_t n_lookups = before[i];

		if (!n_lookups)
			continue;
		node = tree_at(last->tree, i);
		if (tree_find(next->tree, node.ino, &found))
			lookups[tree_position(next->tree, found)] += n_lookups;
		else
			fine &= retire_node(in, last, node, n_lookups);
	}
	pthread_mutex_unlock(&in->lock);
	pthread_rwlock_unlock(&in->swap);

	if (!fine)
		log_print(LOG_ERR, "out of memory: some open files cannot be read now");
	report_changes(&n, before);
	mark_idle_origins(in, &last->holdings);
	mark_idle_origins(in, &revived);
	holdings_fini(&revived);
	free_counts(before, last);
	edition_unref(last);
	*names = n.names;
	return true;
}

struct inodes *inodes_new(struct edition *first, inodes_idle *idle, void *user)
{
	struct inodes *in = calloc(1, sizeof(*in));
	pthread_rwlockattr_t attr;

	if (!in || !(in->retired = calloc(BUCKETS, sizeof(struct retired *))) ||
	    !(in->lookups = counts_for(first))) {
		if (in)
			free(in->retired);
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
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct retired *r = in->retired[i], *next; r; r = next) {
			next = r->next;
			file_content_unref(&r->file);
			free(r);
		}
	free(in->retired);
	free_shifts(in->shifts);
	free_counts(in->lookups, in->now);
	edition_unref(in->now);
	pthread_mutex_destroy(&in->lock);
	pthread_rwlock_destroy(&in->swap);
	free(in);
}
