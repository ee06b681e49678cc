/* SPDX-License-Identifier: MIT */
/*
 * How a view is built: every entry adds its names to a list of (directory, text,
 * file); directories are found through a hash of (parent, component).  The list
 * is then sorted by directory (counting) and within each by text, which puts
 * names that clash side by side.
 */
#include "view.h"
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include "limits.h"
#include "memory.h"
#include "naming.h"
#include "text.h"

/* A name's node: kind in the upper bits, number of the directory or file below. */
enum { KIND_SHIFT = 29 };
#define NODE_MAX ((UINT32_C(1) << KIND_SHIFT) - 1)

/* TEXT is an offset into the arena, where a length byte and the bytes stand. */
struct name {
	uint32_t text;
	uint32_t node;
};

struct kp_view {
	struct kpack_archive **archives;
	uint32_t *bases; /* number of the first entry of each archive; one more at the end */
	size_t n_archives;

	uint8_t *arena;
	size_t arena_size;
	struct kp_view_dir *dirs;
	uint32_t n_dirs;
	struct name *names;
	struct kp_view_file *files;
	uint32_t n_files;

	struct kp_faults conflicts;
	const char **conflict_texts;
};

/* A name before names are sorted by directory. */
struct pending {
	uint32_t parent;
	struct name name;
};

/* An open-addressing set of numbers; 0 is free, numbers are stored plus one. */
struct set {
	uint32_t *slots;
	size_t size, used;
};

struct builder {
	struct kp_view *v;
	const struct kp_view_options *options;
	bool no_memory;

	size_t arena_cap, dirs_cap, files_cap;
	struct pending *pending;
	size_t n_pending, pending_cap;
	uint32_t *dir_names; /* arena offset of each directory's name */
	size_t dir_names_cap;

	struct set dir_set;  /* by (parent, name) */
	struct set file_set; /* by content identity */
	struct set text_set; /* arena offsets by text */

	/* the path resolved last: keys are sorted, so the next shares most of it */
	uint8_t last[KP_NAME_MAX];
	size_t last_size;
	uint32_t last_root;
	uint32_t chain[KP_NAME_MAX / 2 + 2]; /* directory behind each component */
	size_t chain_ends[KP_NAME_MAX / 2 + 2];
	size_t chain_size;

	/* of the archive at hand: file of each ordinal (number + 1) */
	uint32_t *ordinal_file;
	size_t archive;
	bool has_twin; /* another archive has the same table of contents */

	/* the key handled last: most keys have several architectures */
	const uint8_t *key;
	struct kp_key split;
	bool key_ok;
	uint32_t key_dir;

	/* file names under toc/ made lately: few, and each used under many keys */
	struct {
		const uint8_t *arch, *type;
		uint32_t index;
		uint32_t text;
	} toc_names[256];

	/* is this architecture selected?  remembered by the address of its text */
	struct {
		const uint8_t *arch;
		bool selected;
	} selected[64];
};

/* --- small tools ------------------------------------------------------------------- */

static bool fail_memory(struct builder *b)
{
	b->no_memory = true;
	return false;
}

static bool reserve(struct builder *b, void *array, size_t count, size_t *cap, size_t item)
{
	size_t want = *cap ? 2 * *cap : 256;
	void *old, *bigger;

	if (count < *cap)
		return true;
	while (want <= count)
		want *= 2;
	memcpy(&old, array, sizeof(old)); /* pointers of any type */
	bigger = realloc(old, want * item);
	if (!bigger)
		return fail_memory(b);
	memcpy(array, &bigger, sizeof(bigger));
	*cap = want;
	return true;
}

static struct kp_span text_at(const struct kp_view *v, uint32_t offset)
{
	return (struct kp_span){v->arena + offset + 1, v->arena[offset]};
}

/* Room for one more: at most half full. */
static bool set_grow(struct builder *b, struct set *s,
		     uint64_t (*hash)(const struct builder *b, uint32_t number))
{
	size_t size = s->size ? 2 * s->size : 1024;
	uint32_t *slots;

	if (2 * s->used < s->size)
		return true;
	slots = calloc(size, sizeof(*slots));
	if (!slots)
		return fail_memory(b);
	for (size_t i = 0; i < s->size; i++) {
		size_t at;

		if (!s->slots[i])
			continue;
		at = hash(b, s->slots[i] - 1) & (size - 1);
		while (slots[at])
			at = (at + 1) & (size - 1);
		slots[at] = s->slots[i];
	}
	free(s->slots);
	s->slots = slots;
	s->size = size;
	return true;
}

/* --- texts ------------------------------------------------------------------------- */

static uint64_t text_hash(const struct builder *b, uint32_t offset)
{
	struct kp_span s = text_at(b->v, offset);

	return XXH3_64bits(s.data, s.size);
}

/* Arena offset of a component's text, each stored once. */
static bool intern(struct builder *b, struct kp_span s, uint32_t *offset)
{
	struct kp_view *v = b->v;
	size_t at;

	if (!set_grow(b, &b->text_set, text_hash))
		return false;
	at = XXH3_64bits(s.data, s.size) & (b->text_set.size - 1);
	for (; b->text_set.slots[at]; at = (at + 1) & (b->text_set.size - 1)) {
		*offset = b->text_set.slots[at] - 1;
		if (kp_span_eq(text_at(v, *offset), s))
			return true;
	}
	if (v->arena_size + 256 > UINT32_MAX ||
	    !reserve(b, &v->arena, v->arena_size + 256, &b->arena_cap, 1))
		return fail_memory(b);
	*offset = (uint32_t)v->arena_size;
	v->arena[v->arena_size++] = (uint8_t)s.size;
	if (s.size)
		memcpy(v->arena + v->arena_size, s.data, s.size);
	v->arena_size += s.size;
	b->text_set.slots[at] = *offset + 1;
	b->text_set.used++;
	return true;
}

/* --- conflicts --------------------------------------------------------------------- */

static void conflict(struct builder *b, struct kp_span path, const char *reason)
{
	char *text = kp_text_escape_new(path);

	kp_faults_add(&b->v->conflicts, true, "%s: %s", text ? text : "?", reason);
	free(text);
}

/* --- directories ------------------------------------------------------------------- */

static uint64_t child_id(uint64_t parent, struct kp_span name)
{
	return XXH3_64bits_withSeed(name.data, name.size, parent);
}

static uint64_t dir_hash(const struct builder *b, uint32_t dir)
{
	return b->v->dirs[dir].id;
}

static bool add_pending(struct builder *b, uint32_t parent, uint32_t text,
			enum kp_view_kind kind, uint32_t number)
{
	if (number > NODE_MAX ||
	    !reserve(b, &b->pending, b->n_pending, &b->pending_cap, sizeof(*b->pending)))
		return fail_memory(b);
	b->pending[b->n_pending++] =
		(struct pending){parent, {text, (uint32_t)kind << KIND_SHIFT | number}};
	return true;
}

static bool new_dir(struct builder *b, uint32_t parent, struct kp_span name, uint64_t id,
		    uint32_t *dir)
{
	struct kp_view *v = b->v;
	size_t cap = b->dirs_cap;
	uint32_t text = 0;

	if (!intern(b, name, &text) ||
	    !reserve(b, &v->dirs, v->n_dirs, &b->dirs_cap, sizeof(*v->dirs)) ||
	    !reserve(b, &b->dir_names, v->n_dirs, &cap, sizeof(*b->dir_names)))
		return false;
	*dir = v->n_dirs++;
	v->dirs[*dir] = (struct kp_view_dir){.parent = parent, .id = id};
	b->dir_names[*dir] = text;
	if (*dir == 0)
		return true;
	v->dirs[parent].subdirs++;
	return add_pending(b, parent, text, KP_VIEW_DIR, *dir);
}

/* The directory NAME in PARENT, made when it is not there. */
static bool child_dir(struct builder *b, uint32_t parent, struct kp_span name, uint32_t *dir)
{
	uint64_t id = child_id(b->v->dirs[parent].id, name);
	struct set *s = &b->dir_set;
	size_t at;

	if (!set_grow(b, s, dir_hash))
		return false;
	for (at = id & (s->size - 1); s->slots[at]; at = (at + 1) & (s->size - 1)) {
		*dir = s->slots[at] - 1;
		if (b->v->dirs[*dir].parent == parent &&
		    kp_span_eq(text_at(b->v, b->dir_names[*dir]), name))
			return true;
	}
	if (!new_dir(b, parent, name, id, dir))
		return false;
	s->slots[at] = *dir + 1;
	s->used++;
	return true;
}

/* How many components PATH shares with the path resolved last. */
static size_t shared_components(const struct builder *b, uint32_t root, struct kp_span path)
{
	size_t n = 0;

	if (b->last_root != root)
		return 0;
	while (n < b->chain_size) {
		size_t end = b->chain_ends[n];

		if (end > path.size || (end < path.size && path.data[end] != '/'))
			break;
		n++;
	}
	while (n && memcmp(b->last, path.data, b->chain_ends[n - 1]) != 0)
		n--;
	return n;
}

/* The directory PATH below ROOT, made as needed.  PATH is kp_path_ok. */
static bool resolve(struct builder *b, uint32_t root, struct kp_span path, uint32_t *dir)
{
	size_t n = shared_components(b, root, path);
	size_t begin = n ? b->chain_ends[n - 1] + 1 : 0;

	b->last_root = root;
	*dir = n ? b->chain[n - 1] : root;
	while (begin < path.size) {
		size_t end = begin;

		while (end < path.size && path.data[end] != '/')
			end++;
		if (!child_dir(b, *dir, (struct kp_span){path.data + begin, end - begin},
			       dir)) {
			b->chain_size = 0;
			return false;
		}
		b->chain[n] = *dir;
		b->chain_ends[n++] = end;
		begin = end + 1;
	}
	memcpy(b->last, path.data, path.size);
	b->last_size = path.size;
	b->chain_size = n;
	return true;
}

/* --- files ------------------------------------------------------------------------- */

/* What makes two entries the same file. */
struct identity {
	uint64_t size;
	uint64_t stored;    /* all ones when the archive and ordinal say it */
	uint8_t content[16]; /* xxh3, or hash of the table and ordinal */
};

static void identify(struct kpack_archive *a, size_t entry, struct identity *out)
{
	struct kp_entry_info info;
	struct kp_meta meta;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	*out = (struct identity){.size = info.size, .stored = UINT64_MAX};
	if (meta.has_xxh3) {
		out->stored = info.stored;
		memcpy(out->content, meta.xxh3, sizeof(meta.xxh3));
		return;
	}
	kp_put_le64(out->content, kp_archive_toc_hash(a));
	kp_put_le32(out->content + 8, info.ordinal);
}

static uint64_t file_hash(const struct builder *b, uint32_t file)
{
	return b->v->files[file].id; /* the identity's hash until the view is finished */
}

static bool same_content(const struct builder *b, uint32_t file, const struct identity *want)
{
	struct identity have;
	size_t entry;
	struct kpack_archive *a = kp_view_entry(b->v, file, &entry);

	identify(a, entry, &have);
	return memcmp(&have, want, sizeof(have)) == 0;
}

static bool new_file(struct builder *b, size_t entry, uint64_t hash, uint32_t *file)
{
	struct kp_view *v = b->v;

	if (!reserve(b, &v->files, v->n_files, &b->files_cap, sizeof(*v->files)))
		return false;
	*file = v->n_files++;
	v->files[*file] = (struct kp_view_file){
		.id = hash, .global = v->bases[b->archive] + (uint32_t)entry};
	return true;
}

/* The file with the content of ENTRY, made when it is not there. */
static bool find_file(struct builder *b, size_t entry, bool first, uint32_t *file)
{
	struct kp_view *v = b->v;
	struct set *s = &b->file_set;
	struct identity want;
	uint64_t hash;
	size_t at;

	identify(v->archives[b->archive], entry, &want);
	hash = XXH3_64bits(&want, sizeof(want));
	/* without a hash, content is only known by its archive and ordinal */
	if (want.stored == UINT64_MAX && first && !b->has_twin)
		return new_file(b, entry, hash, file);
	if (!set_grow(b, s, file_hash))
		return false;
	for (at = hash & (s->size - 1); s->slots[at]; at = (at + 1) & (s->size - 1)) {
		*file = s->slots[at] - 1;
		if (v->files[*file].id == hash && same_content(b, *file, &want))
			return true;
	}
	if (!new_file(b, entry, hash, file))
		return false;
	s->slots[at] = *file + 1;
	s->used++;
	return true;
}

/* Entries of one ordinal are one file, unless they disagree about its size. */
static bool file_of(struct builder *b, size_t entry, const struct kp_entry_info *info,
		    uint32_t *file)
{
	uint32_t known = b->ordinal_file[info->ordinal];

	if (known) {
		struct kp_entry_info other;
		size_t first;
		struct kpack_archive *a = kp_view_entry(b->v, known - 1, &first);

		kp_archive_entry(a, first, &other);
		if (other.size == info->size) {
			*file = known - 1;
			return true;
		}
	}
	if (!find_file(b, entry, !known, file))
		return false;
	b->ordinal_file[info->ordinal] = *file + 1;
	return true;
}

/* --- the names of an entry --------------------------------------------------------- */

static const uint32_t ROOT = 0, TOC = 1;

static bool add_name(struct builder *b, uint32_t dir, struct kp_span text,
		     enum kp_view_kind kind, uint32_t file)
{
	uint32_t offset = 0;

	return intern(b, text, &offset) && add_pending(b, dir, offset, kind, file);
}

/* Split the key and find its directory, unless it is that of the entry before. */
static bool take_key(struct builder *b, struct kp_span key)
{
	if (b->key == key.data)
		return true;
	b->key = NULL;
	b->split = kp_key_split(key);
	b->key_ok = kp_path_ok(b->split.binary);
	if (b->key_ok && !resolve(b, TOC, b->split.binary, &b->key_dir))
		return false;
	b->key = key.data;
	return true;
}

/* Arena offset of the file name under toc/; NO_NAME when it would be none. */
static const uint32_t NO_NAME = UINT32_MAX;

static bool toc_name(struct builder *b, const struct kp_entry_info *info, uint32_t *text)
{
	size_t at = ((uintptr_t)info->arch.data + 31 * (uintptr_t)info->type.data +
		     7 * b->split.index) % 256;
	char name[256];
	size_t size;

	if (b->toc_names[at].arch == info->arch.data &&
	    b->toc_names[at].type == info->type.data &&
	    b->toc_names[at].index == b->split.index) {
		*text = b->toc_names[at].text;
		return true;
	}
	*text = NO_NAME;
	if (!kp_toc_file_name(info->arch, b->split.index, info->type, name, &size))
		return true;
	if (!intern(b, (struct kp_span){(uint8_t *)name, size}, text))
		return false;
	b->toc_names[at].arch = info->arch.data;
	b->toc_names[at].type = info->type.data;
	b->toc_names[at].index = b->split.index;
	b->toc_names[at].text = *text;
	return true;
}

static bool add_toc_name(struct builder *b, const struct kp_entry_info *info,
			 enum kp_view_kind kind, uint32_t file)
{
	uint32_t text;

	if (!take_key(b, info->key))
		return false;
	if (!b->key_ok) {
		conflict(b, info->key, "key is no path inside the mount");
		return true;
	}
	if (!toc_name(b, info, &text))
		return false;
	if (text == NO_NAME) {
		conflict(b, info->key, "architecture and type give no file name");
		return true;
	}
	return add_pending(b, b->key_dir, text, kind, file);
}

static bool is_reserved(struct kp_span path)
{
	static const char *const reserved[] = {"toc", ".kpackfs"};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(reserved[i]);
		if (kp_span_starts(path, reserved[i], n) &&
		    (path.size == n || path.data[n] == '/'))
			return true;
	}
	return false;
}

static bool add_path(struct builder *b, struct kp_span path, enum kp_view_kind kind,
		     uint32_t file)
{
	size_t cut = path.size;
	uint32_t dir;

	if (!kp_path_ok(path) || is_reserved(path)) {
		conflict(b, path, "is no path inside the mount, or lies in toc or .kpackfs");
		return true;
	}
	while (cut && path.data[cut - 1] != '/')
		cut--;
	return resolve(b, ROOT, (struct kp_span){path.data, cut ? cut - 1 : 0}, &dir) &&
	       add_name(b, dir, (struct kp_span){path.data + cut, path.size - cut}, kind,
			file);
}

static bool is_selected(struct builder *b, struct kp_span arch)
{
	size_t at = ((uintptr_t)arch.data >> 3) % 64;
	struct kp_target target;
	bool selected = false;

	if (!b->options || !b->options->n_select)
		return true;
	if (b->selected[at].arch == arch.data)
		return b->selected[at].selected;
	if (!kp_target_parse(arch, &target, NULL))
		for (size_t i = 0; i < b->options->n_select && !selected; i++)
			selected = kp_target_selected(&b->options->select[i], &target);
	b->selected[at].arch = arch.data;
	b->selected[at].selected = selected;
	return selected;
}

static bool add_entry(struct builder *b, struct kpack_archive *a, size_t entry)
{
	char legacy[KP_NAME_MAX + 64];
	struct kp_entry_info info;
	struct kp_meta meta;
	uint32_t file;
	size_t size;

	kp_archive_entry(a, entry, &info);
	if (!is_selected(b, info.arch))
		return true;
	if (!file_of(b, entry, &info, &file))
		return false;
	kp_archive_meta(a, entry, &meta);
	if (!add_toc_name(b, &info, meta.path.size ? KP_VIEW_TOC_ALSO : KP_VIEW_TOC, file))
		return false;
	if (meta.path.size)
		return add_path(b, meta.path, KP_VIEW_PATH, file);
	if (!kp_legacy_path(info.key, info.arch, legacy, sizeof(legacy), &size))
		return true;
	return add_path(b, (struct kp_span){(uint8_t *)legacy, size}, KP_VIEW_LEGACY, file);
}

static bool has_twin(const struct kp_view *v, size_t archive)
{
	uint64_t hash = kp_archive_toc_hash(v->archives[archive]);

	for (size_t i = 0; i < v->n_archives; i++)
		if (i != archive && kp_archive_toc_hash(v->archives[i]) == hash)
			return true;
	return false;
}

static bool add_archive(struct builder *b, size_t archive)
{
	struct kpack_archive *a = b->v->archives[archive];
	size_t n = kp_archive_entry_count(a);
	bool ok = true;

	b->archive = archive;
	b->key = NULL;
	b->has_twin = has_twin(b->v, archive);
	memset(b->toc_names, 0, sizeof(b->toc_names)); /* pointers of another archive */
	b->ordinal_file = calloc((size_t)kp_archive_ordinal_count(a) + 1, sizeof(uint32_t));
	if (!b->ordinal_file)
		return fail_memory(b);
	memset(b->selected, 0, sizeof(b->selected));
	for (size_t i = 0; i < n && ok; i++)
		ok = add_entry(b, a, i);
	free(b->ordinal_file);
	b->ordinal_file = NULL;
	return ok;
}

/* --- sorting and settling ---------------------------------------------------------- */

static enum kp_view_kind kind_of(uint32_t node)
{
	return (enum kp_view_kind)(node >> KIND_SHIFT);
}

static uint32_t number_of(uint32_t node)
{
	return node & NODE_MAX;
}

/* Counting sort by directory: names of one directory side by side, in order of adding. */
static bool gather(struct builder *b)
{
	struct kp_view *v = b->v;
	uint32_t at = 0;

	v->names = kp_large_alloc((b->n_pending + 1) * sizeof(*v->names));
	if (!v->names)
		return fail_memory(b);
	for (size_t i = 0; i < b->n_pending; i++)
		v->dirs[b->pending[i].parent].count++;
	for (uint32_t d = 0; d < v->n_dirs; d++) {
		v->dirs[d].first = at;
		at += v->dirs[d].count;
		v->dirs[d].count = 0;
	}
	for (size_t i = 0; i < b->n_pending; i++) {
		struct kp_view_dir *dir = &v->dirs[b->pending[i].parent];
		v->names[dir->first + dir->count++] = b->pending[i].name;
	}
	free(b->pending);
	b->pending = NULL;
	return true;
}

/* By text; directories before files; then in order of adding. */
struct sort_item {
	struct name name;
	uint32_t position;
};

static int cmp_item(const void *a, const void *b, void *arg)
{
	const struct sort_item *x = a, *y = b;
	const struct kp_view *v = arg;
	bool x_dir = kind_of(x->name.node) == KP_VIEW_DIR;
	bool y_dir = kind_of(y->name.node) == KP_VIEW_DIR;
	int c = x->name.text == y->name.text ? 0
					     : kp_span_cmp(text_at(v, x->name.text),
							   text_at(v, y->name.text));

	if (c)
		return c;
	if (x_dir != y_dir)
		return x_dir ? -1 : 1;
	return (x->position > y->position) - (x->position < y->position);
}

static bool in_order(const struct kp_view *v, const struct kp_view_dir *dir)
{
	const struct name *n = v->names + dir->first;

	for (uint32_t i = 1; i < dir->count; i++)
		if (kp_span_cmp(text_at(v, n[i - 1].text), text_at(v, n[i].text)) >= 0)
			return false;
	return true;
}

static bool sort_names(struct builder *b, struct kp_view_dir *dir)
{
	struct name *n = b->v->names + dir->first;
	struct sort_item *items = malloc(dir->count * sizeof(*items));

	if (!items)
		return fail_memory(b);
	for (uint32_t i = 0; i < dir->count; i++)
		items[i] = (struct sort_item){n[i], i};
	qsort_r(items, dir->count, sizeof(*items), cmp_item, b->v);
	for (uint32_t i = 0; i < dir->count; i++)
		n[i] = items[i].name;
	free(items);
	return true;
}

/* The path of a name, "/"-separated, in BUF; cut when it is too long. */
static struct kp_span path_of(const struct builder *b, uint32_t dir, uint32_t text,
			      uint8_t *buf, size_t cap)
{
	size_t at = cap;

	for (;;) {
		struct kp_span s = text_at(b->v, text);
		if (s.size + 1 > at)
			break;
		at -= s.size;
		memcpy(buf + at, s.data, s.size);
		if (dir == 0)
			break;
		buf[--at] = '/';
		text = b->dir_names[dir];
		dir = b->v->dirs[dir].parent;
	}
	return (struct kp_span){buf + at, cap - at};
}

static void clash(struct builder *b, uint32_t dir, const struct name *kept,
		  const struct name *lost)
{
	uint8_t buf[KP_NAME_MAX + 512];
	char reason[320];
	size_t entry;

	if (kept->node == lost->node ||
	    (kind_of(kept->node) != KP_VIEW_DIR &&
	     number_of(kept->node) == number_of(lost->node)))
		return; /* the same content twice is no clash */
	if (kind_of(kept->node) == KP_VIEW_DIR)
		snprintf(reason, sizeof(reason),
			 "a directory has this name; the file of %.200s is not shown",
			 kp_archive_path(kp_view_entry(b->v, number_of(lost->node), &entry)));
	else
		snprintf(reason, sizeof(reason),
			 "%.110s comes first; other content of %.110s is not shown",
			 kp_archive_path(kp_view_entry(b->v, number_of(kept->node), &entry)),
			 kp_archive_path(kp_view_entry(b->v, number_of(lost->node), &entry)));
	conflict(b, path_of(b, dir, kept->text, buf, sizeof(buf)), reason);
}

/* Of equal names the first stays. */
static void settle(struct builder *b, uint32_t d)
{
	struct kp_view_dir *dir = &b->v->dirs[d];
	struct name *n = b->v->names + dir->first;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < dir->count; i++) {
		if (kept && n[kept - 1].text == n[i].text)
			clash(b, d, &n[kept - 1], &n[i]);
		else
			n[kept++] = n[i];
	}
	dir->count = kept;
}

/* Names are final: count each file's, and let its first path make its id. */
static void number_files(struct kp_view *v)
{
	for (uint32_t d = 0; d < v->n_dirs; d++) {
		for (uint32_t i = 0; i < v->dirs[d].count; i++) {
			const struct name *n = &v->names[v->dirs[d].first + i];
			struct kp_view_file *f;

			if (kind_of(n->node) == KP_VIEW_DIR)
				continue;
			f = &v->files[number_of(n->node)];
			if (f->nlink++ == 0)
				f->id ^= child_id(v->dirs[d].id, text_at(v, n->text));
		}
	}
}

static bool finish(struct builder *b)
{
	struct kp_view *v = b->v;

	if (!gather(b))
		return false;
	for (uint32_t d = 0; d < v->n_dirs; d++) {
		if (in_order(v, &v->dirs[d]))
			continue;
		if (!sort_names(b, &v->dirs[d]))
			return false;
		settle(b, d);
	}
	number_files(v);
	v->conflict_texts = malloc((v->conflicts.kept + 1) * sizeof(*v->conflict_texts));
	if (!v->conflict_texts)
		return fail_memory(b);
	for (size_t i = 0; i < v->conflicts.kept; i++)
		v->conflict_texts[i] = v->conflicts.items[i].text;
	return true;
}

/* --- the calls --------------------------------------------------------------------- */

static bool take_archives(struct builder *b, struct kpack_archive *const *archives, size_t n)
{
	struct kp_view *v = b->v;
	uint64_t total = 0;

	v->archives = malloc((n + 1) * sizeof(struct kpack_archive *));
	v->bases = malloc((n + 1) * sizeof(*v->bases));
	if (!v->archives || !v->bases)
		return fail_memory(b);
	v->n_archives = n;
	for (size_t i = 0; i < n; i++) {
		v->archives[i] = archives[i];
		v->bases[i] = (uint32_t)total;
		total += kp_archive_entry_count(archives[i]);
		if (total > NODE_MAX)
			return fail_memory(b);
	}
	v->bases[n] = (uint32_t)total;
	return true;
}

/* Take room for one name and one file an entry, in large pages; more grows. */
static bool reserve_room(struct builder *b)
{
	struct kp_view *v = b->v;
	size_t n = v->bases[v->n_archives];

	b->pending_cap = n + n / 4 + 256;
	b->pending = kp_large_alloc(b->pending_cap * sizeof(*b->pending));
	b->files_cap = n + 1;
	v->files = kp_large_alloc(b->files_cap * sizeof(*v->files));
	return (b->pending && v->files) || fail_memory(b);
}

static bool build(struct builder *b, struct kpack_archive *const *archives, size_t n)
{
	uint32_t dir;

	if (!take_archives(b, archives, n) || !reserve_room(b))
		return false;
	if (!new_dir(b, 0, (struct kp_span){0}, 1, &dir) ||
	    !child_dir(b, ROOT, kp_span_str("toc"), &dir))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!add_archive(b, i))
			return false;
	return finish(b);
}

/* Give back what doubling reserved and was not needed. */
static void trim(struct kp_view *v)
{
	v->arena = kp_large_trim(v->arena, v->arena_size);
	v->files = kp_large_trim(v->files, v->n_files * sizeof(*v->files));
	v->dirs = kp_large_trim(v->dirs, v->n_dirs * sizeof(*v->dirs));
}

kpack_error_t kp_view_new(struct kpack_archive *const *archives, size_t n,
			  const struct kp_view_options *options, struct kp_view **out,
			  struct kpackx_error *why)
{
	struct builder *b = calloc(1, sizeof(*b));
	struct kp_view *v = calloc(1, sizeof(*v));
	bool ok = b && v;

	if (ok) {
		b->v = v;
		b->options = options;
		b->last_root = UINT32_MAX;
		ok = build(b, archives, n);
	}
	if (b) {
		free(b->pending);
		free(b->dir_names);
		free(b->dir_set.slots);
		free(b->file_set.slots);
		free(b->text_set.slots);
		free(b->ordinal_file);
	}
	free(b);
	if (!ok) {
		kp_view_free(v);
		return kp_fail_memory(why, 0, "the tree");
	}
	trim(v);
	*out = v;
	return KPACK_SUCCESS;
}

void kp_view_free(struct kp_view *v)
{
	if (!v)
		return;
	kp_faults_fini(&v->conflicts);
	free(v->conflict_texts);
	free(v->archives);
	free(v->bases);
	free(v->arena);
	free(v->dirs);
	free(v->names);
	free(v->files);
	free(v);
}

uint32_t kp_view_dir_count(const struct kp_view *v)
{
	return v->n_dirs;
}

uint32_t kp_view_file_count(const struct kp_view *v)
{
	return v->n_files;
}

const struct kp_view_dir *kp_view_dir(const struct kp_view *v, uint32_t dir)
{
	return &v->dirs[dir];
}

const struct kp_view_file *kp_view_file(const struct kp_view *v, uint32_t file)
{
	return &v->files[file];
}

struct kp_view_name kp_view_name(const struct kp_view *v, uint32_t name)
{
	const struct name *n = &v->names[name];

	return (struct kp_view_name){text_at(v, n->text), kind_of(n->node),
				     number_of(n->node)};
}

bool kp_view_lookup(const struct kp_view *v, uint32_t dir, struct kp_span text,
		    uint32_t *name)
{
	uint32_t low = v->dirs[dir].first, high = low + v->dirs[dir].count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = kp_span_cmp(text_at(v, v->names[mid].text), text);

		if (c == 0) {
			*name = mid;
			return true;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

struct kpack_archive *kp_view_entry(const struct kp_view *v, uint32_t file, size_t *entry)
{
	uint32_t global = v->files[file].global;
	size_t low = 0, high = v->n_archives;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;
		if (v->bases[mid] <= global)
			low = mid;
		else
			high = mid;
	}
	*entry = global - v->bases[low];
	return v->archives[low];
}

const char *const *kp_view_conflicts(const struct kp_view *v, size_t *kept, size_t *counted)
{
	*kept = v->conflicts.kept;
	if (counted)
		*counted = v->conflicts.counted;
	return v->conflict_texts;
}
