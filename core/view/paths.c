/* SPDX-License-Identifier: MIT */
/*
 * Texts and directories of a view under construction.  A text is stored once, in an arena.  A
 * directory is looked up only if its name may have been seen: keys come sorted, so that nearly
 * every name is behind all before it.
 */
#include <stdlib.h>
#include "core/base/text.h"
#include "builder.h"
#include "core/base/hash.h"

/* As kp_grow, but notes a failure. */
static bool make_room(struct kp_view_builder *b, void *array, size_t count, size_t *cap,
		      size_t item)
{
	return kp_grow(array, count, cap, item) || kp_view_no_memory(b);
}

static uint64_t text_hash(const void *arg, uint32_t offset)
{
	const struct kp_view_builder *b = arg;
	struct kp_span s = kp_view_text(b->v, offset);

	return kp_slot_hash(s.data, s.size, 0);
}

/* Store S, without a look-up.  256: the most bytes of a length byte and a text. */
static bool store_text(struct kp_view_builder *b, struct kp_span s, uint32_t *offset)
{
	struct kp_view *v = b->v;

	if (v->arena_size + 256 > UINT32_MAX ||
	    !make_room(b, &v->arena, v->arena_size + 256, &b->arena_cap, 1))
		return kp_view_no_memory(b);
	*offset = (uint32_t)v->arena_size;
	v->arena[v->arena_size++] = (uint8_t)s.size;
	if (s.size)
		memcpy(v->arena + v->arena_size, s.data, s.size);
	v->arena_size += s.size;
	return true;
}

bool kp_view_intern(struct kp_view_builder *b, struct kp_span s, uint32_t *offset)
{
	uint32_t *slot;

	if (!kp_slots_grow(&b->text_set, text_hash, b))
		return kp_view_no_memory(b);
	slot = kp_slots_first(&b->text_set, kp_slot_hash(s.data, s.size, 0));
	while (*slot && !kp_span_eq(kp_view_text(b->v, *slot - 1), s))
		slot = kp_slots_next(&b->text_set, slot);
	if (!*slot) {
		if (!store_text(b, s, offset))
			return false;
		kp_slots_put(&b->text_set, slot, *offset);
	}
	*offset = *slot - 1;
	return true;
}

/* Escape REASON, too: it quotes file names of archives, which may be hostile. */
void kp_view_conflict(struct kp_view_builder *b, struct kp_span path, const char *reason)
{
	struct kp_span begin = {path.data,
				path.size < KP_NAME_MAX ? path.size : KP_NAME_MAX};
	char *name = kp_text_escape_new(begin);
	char *text = kp_text_escape_new(kp_span_str(reason));

	kp_faults_add(&b->v->conflicts, true, "%s: %s", name ? name : "?",
		      text ? text : "?");
	free(name);
	free(text);
}

uint64_t kp_view_child_id(uint64_t parent, struct kp_span name)
{
	return kp_hash64(name.data, name.size, parent);
}

static struct kp_span dir_name(const struct kp_view_builder *b, uint32_t dir)
{
	return kp_view_text(b->v, b->open_dirs[dir].text);
}

/* The hash that places the directory NAME of PARENT in their set. */
static uint64_t place_hash(uint32_t parent, struct kp_span name)
{
	return kp_slot_hash(name.data, name.size, parent * UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t dir_hash(const void *arg, uint32_t dir)
{
	const struct kp_view_builder *b = arg;

	return place_hash(b->v->dirs[dir].parent, dir_name(b, dir));
}

bool kp_view_add_pending(struct kp_view_builder *b, uint32_t parent, uint32_t text,
			 enum kp_view_kind kind, uint32_t number)
{
	if (number > KP_NODE_MAX || (b->n_pending == b->pending_cap &&
				     !make_room(b, &b->pending, b->n_pending,
						&b->pending_cap, sizeof(*b->pending))))
		return kp_view_no_memory(b);
	b->pending[b->n_pending++] = (struct kp_view_pending){
		parent, {text, (uint32_t)kind << KP_NODE_SHIFT | number}};
	return true;
}

static bool new_dir(struct kp_view_builder *b, uint32_t parent, uint32_t text,
		    uint64_t id, uint32_t *dir)
{
	struct kp_view *v = b->v;

	if (!make_room(b, &v->dirs, v->n_dirs, &b->dirs_cap, sizeof(*v->dirs)) ||
	    !make_room(b, &b->open_dirs, v->n_dirs, &b->open_dirs_cap,
		       sizeof(*b->open_dirs)))
		return false;
	b->dirs_left--;
	*dir = v->n_dirs++;
	v->dirs[*dir] = (struct kp_view_dir){.parent = parent, .id = id};
	b->open_dirs[*dir] = (struct kp_view_open_dir){
		.text = text, .sibling = b->open_dirs[parent].youngest};
	if (*dir == KP_VIEW_ROOT)
		return true;
	b->open_dirs[parent].youngest = *dir;
	v->dirs[parent].subdirs++;
	return kp_view_add_pending(b, parent, text, KP_VIEW_DIR, *dir);
}

/* The number of directories in their set that lets it have room for all. */
enum { MANY_DIRS = 4096 };

/*
 * Look the directory NAME in PARENT up; *DIR: KP_VIEW_ROOT if there is none.  First the children of
 * PARENT that were made since the last look-up in it enter the set.
 */
static bool look_up_dir(struct kp_view_builder *b, uint32_t parent, struct kp_span name,
			uint32_t *dir)
{
	uint32_t *youngest = &b->open_dirs[parent].youngest, *slot;
	struct kp_slots *set = &b->dir_set;

	*dir = KP_VIEW_ROOT;
	for (; *youngest; *youngest = b->open_dirs[*youngest].sibling) {
		if ((set->used == MANY_DIRS &&
		     !kp_slots_reserve(set, b->dirs_cap, dir_hash, b)) ||
		    !kp_slots_grow(set, dir_hash, b))
			return kp_view_no_memory(b);
		slot = kp_slots_first(set, dir_hash(b, *youngest));
		while (*slot)
			slot = kp_slots_next(set, slot);
		kp_slots_put(set, slot, *youngest);
	}
	if (!set->used)
		return true;
	slot = kp_slots_first(set, place_hash(parent, name));
	for (; *slot; slot = kp_slots_next(set, slot)) {
		if (b->v->dirs[*slot - 1].parent != parent ||
		    !kp_span_eq(dir_name(b, *slot - 1), name))
			continue;
		*dir = *slot - 1;
		break;
	}
	return true;
}

/*
 * Return the directory NAME in PARENT, component number DEPTH of a path, created as needed and
 * allowed.  A name behind the greatest one is new without a look-up: keys are sorted.
 */
static bool child_dir(struct kp_view_builder *b, uint32_t parent, struct kp_span name,
		      bool below_toc, size_t depth, uint32_t *dir)
{
	uint32_t greatest = b->open_dirs[parent].greatest, text = 0;
	bool behind = !greatest || kp_span_cmp(name, dir_name(b, greatest)) > 0;
	const struct kp_view_last *key = &b->last[1];

	*dir = KP_VIEW_ROOT;
	if (!behind && !look_up_dir(b, parent, name, dir))
		return false;
	if (*dir != KP_VIEW_ROOT)
		return true;
	*dir = KP_VIEW_NO_DIR;
	if (!b->makes_dirs)
		return true;
	/* names of keys are mostly distinct; below other directories most are the last key's */
	if (!below_toc && depth < key->count &&
	    kp_span_eq(dir_name(b, key->dirs[depth]), name))
		text = b->open_dirs[key->dirs[depth]].text;
	else if (!(below_toc ? store_text(b, name, &text)
			     : kp_view_intern(b, name, &text)))
		return false;
	if (!new_dir(b, parent, text, kp_view_child_id(b->v->dirs[parent].id, name), dir))
		return false;
	if (behind)
		b->open_dirs[parent].greatest = *dir;
	return true;
}

bool kp_view_resolve(struct kp_view_builder *b, uint32_t root, struct kp_span path,
		     uint32_t *dir)
{
	struct kp_view_last *last = &b->last[root == KP_VIEW_TOC_DIR];
	size_t most = path.size < last->size ? path.size : last->size;
	size_t same = 0, n = 0, begin;

	/* the leading components that it shares with the last path */
	while (same + 8 <= most &&
	       kp_le64(last->path + same) == kp_le64(path.data + same))
		same += 8;
	while (same < most && last->path[same] == path.data[same])
		same++;
	while (last->root == root && n < last->count && last->ends[n] <= same &&
	       (last->ends[n] == path.size || path.data[last->ends[n]] == '/'))
		n++;
	begin = n ? last->ends[n - 1] + 1 : 0;
	*dir = n ? last->dirs[n - 1] : root;

	/* the others are looked up, or made: all that it needs, or none */
	b->makes_dirs = b->dirs_left > KP_PATH_DEPTH_MAX;
	last->root = root;
	while (begin < path.size) {
		const uint8_t *slash = memchr(path.data + begin, '/', path.size - begin);
		size_t end = slash ? (size_t)(slash - path.data) : path.size;

		if (!child_dir(b, *dir, (struct kp_span){path.data + begin, end - begin},
			       root == KP_VIEW_TOC_DIR, n, dir) ||
		    *dir == KP_VIEW_NO_DIR) {
			last->count = 0;
			return !b->no_memory;
		}
		last->dirs[n] = *dir;
		last->ends[n++] = end;
		begin = end + 1;
	}
	if (path.size)
		memcpy(last->path, path.data, path.size);
	last->size = path.size;
	last->count = n;
	return true;
}

bool kp_view_make_roots(struct kp_view_builder *b)
{
	const struct kp_span none = {0};
	uint32_t dir, text;

	b->dirs_left = UINT64_MAX;
	b->makes_dirs = true;
	return store_text(b, none, &text) && new_dir(b, KP_VIEW_ROOT, text, 1, &dir) &&
	       child_dir(b, KP_VIEW_ROOT, kp_span_str(KP_TOC_NAME), false, 0, &dir);
}
