/* SPDX-License-Identifier: MIT */
/*
 * Entries of archives as files and names of a view under construction.  For each entry of each
 * archive, in order of precedence:
 *
 *	its file   an entry with an ordinal of this archive that was seen has that entry's file; else
 *	           one with the same identity, of any archive, found in file_set; else a new file.
 *	           A content that only archive and ordinal identify enters the set only if another
 *	           archive is a copy of this one, or its ordinal occurs with two sizes.
 *	its names  under toc/ by its key, and its metadata.path or a legacy path; a name that cannot
 *	           be shown becomes a conflict with its reason, and the rest of the entry is shown
 *
 * A view of a million entries is made while programs wait for it.  So several entries are read
 * ahead, and what they will be compared with is fetched, because memory is slow to answer; and
 * what most entries share with the one before is kept: the key, its directory, its file name.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"
#include "builder.h"
#include "core/base/hash.h"
#include "core/archive/toc.h"

/* --- files ------------------------------------------------------------------------- */

/* The identity of a content: entries with equal identities are the same file. */
struct identity {
	uint64_t size;
	uint64_t stored;     /* all ones: CONTENT is archive and ordinal */
	uint8_t content[16]; /* xxh3, or the archive and ordinal */
};

/*
 * The table, size and time identify an archive.  The table is not enough: without
 * compression a rebuilt archive may have the same table but other code.  A package
 * unpacked twice has all three equal.
 */
static uint64_t archive_id(const struct kpack_archive *a)
{
	const struct stat *st = kp_archive_stat(a);
	uint64_t facts[4] = {kp_archive_toc(a)->hash, (uint64_t)st->st_size,
			     (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec};

	return kp_hash64(facts, sizeof(facts), 0);
}

/* The identity of an entry of A, whose archive_id is ID. */
static void identify_content(const struct kpack_archive *a, uint64_t id,
			     const struct kp_entry_info *info, const struct kp_meta *meta,
			     struct identity *out)
{
	*out = (struct identity){.size = info->size, .stored = UINT64_MAX};
	/*
	 * reading single chunks checks no hash, so a chunked entry's hash is not trusted
	 */
	if (meta->has_xxh3 && !meta->chunk) {
		/* in a shared archive it depends on the other entries */
		out->stored = kp_archive_shared(a) ? 0 : info->stored;
		memcpy(out->content, meta->xxh3, sizeof(meta->xxh3));
		return;
	}
	kp_put_le64(out->content, id);
	kp_put_le32(out->content + 8, info->ordinal);
}

static void identify_entry(const struct kpack_archive *a, size_t entry,
			   struct identity *out)
{
	struct kp_entry_info info;
	struct kp_meta meta;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	identify_content(a, archive_id(a), &info, &meta, out);
}

bool kp_view_same_readers(const struct kpack_archive *a, const struct kpack_archive *b)
{
	const struct stat *x = kp_archive_stat(a), *y = kp_archive_stat(b);

	return x->st_uid == y->st_uid && x->st_gid == y->st_gid &&
	       (x->st_mode & 0444) == (y->st_mode & 0444);
}

/* True if FILE has the content WANT of the current archive. */
static bool same_content(const struct kp_view_builder *b, uint32_t file,
			 const struct identity *want)
{
	struct identity have;
	size_t entry;
	struct kpack_archive *a = kp_view_entry(b->v, file, &entry);

	if (!kp_view_same_readers(a, b->v->archives[b->archive]))
		return false;
	identify_entry(a, entry, &have);
	return memcmp(&have, want, sizeof(have)) == 0;
}

bool kp_view_same_content(struct kpack_archive *a, size_t in_a, struct kpack_archive *b,
			  size_t in_b)
{
	struct identity x, y;

	identify_entry(a, in_a, &x);
	identify_entry(b, in_b, &y);
	return memcmp(&x, &y, sizeof(x)) == 0;
}

bool kp_view_same_bytes(struct kpack_archive *a, size_t in_a, struct kpack_archive *b,
			size_t in_b)
{
	struct kp_entry_info x_info, y_info;
	struct kp_meta x, y;

	if (kp_view_same_content(a, in_a, b, in_b))
		return true;
	kp_archive_entry(a, in_a, &x_info);
	kp_archive_entry(b, in_b, &y_info);
	kp_archive_meta(a, in_a, &x);
	kp_archive_meta(b, in_b, &y);
	return x.has_xxh3 && y.has_xxh3 && x_info.size == y_info.size &&
	       memcmp(x.xxh3, y.xxh3, sizeof(x.xxh3)) == 0;
}

bool kp_view_new_file(struct kp_view_builder *b, uint64_t id, uint32_t global,
		      uint32_t *file)
{
	struct kp_view *v = b->v;

	if (!kp_grow(&v->files, v->n_files, &b->files_cap, sizeof(*v->files)))
		return kp_view_no_memory(b);
	*file = v->n_files++;
	v->files[*file] = (struct kp_view_file){.id = id, .global = global};
	return true;
}

/* An entry of the current archive, read ahead. */
struct entry {
	size_t number;
	struct kp_entry_info info;
	struct kp_meta meta;
	struct identity content;
	uint64_t id;    /* of the content */
	uint64_t place; /* of the content in the set; see find_file */
};

/* Whether only archive and ordinal identify the content of E. */
static bool is_unhashed(const struct entry *e)
{
	return e->content.stored == UINT64_MAX;
}

/*
 * Return the file with the content of E, created as needed.  Entries of one ordinal and size are
 * one file.
 */
static bool find_file(struct kp_view_builder *b, struct entry *e, uint32_t *file)
{
	uint32_t known = b->ordinal_file[e->info.ordinal], *slot;
	struct kp_view *v = b->v;
	uint32_t global = v->bases[b->archive] + (uint32_t)e->number;

	if (known) {
		struct kp_entry_info other;
		size_t first;
		struct kpack_archive *a = kp_view_entry(v, known - 1, &first);

		*file = known - 1;
		kp_archive_entry(a, first, &other);
		if (other.size == e->info.size)
			return true;
	}
	if (is_unhashed(e) && !known && !b->has_twin) {
		if (!kp_view_new_file(b, e->id, global, file))
			return false;
		b->ordinal_file[e->info.ordinal] = *file + 1;
		return true;
	}
	/* room for all entries: the set never grows */
	if (!b->file_set.size &&
	    !kp_slots_reserve(&b->file_set, v->bases[v->n_archives], NULL, NULL))
		return kp_view_no_memory(b);
	if (is_unhashed(e))
		e->place = kp_slot_hash(&e->content, sizeof(e->content), 0);
	slot = kp_slots_first(&b->file_set, e->place);
	while (*slot && (v->files[*slot - 1].id != e->id ||
			 !same_content(b, *slot - 1, &e->content)))
		slot = kp_slots_next(&b->file_set, slot);
	if (!*slot) {
		if (!kp_view_new_file(b, e->id, global, file))
			return false;
		kp_slots_put(&b->file_set, slot, *file);
	}
	*file = *slot - 1;
	b->ordinal_file[e->info.ordinal] = *file + 1;
	return true;
}

/* --- the names of an entry --------------------------------------------------------- */

/* Note that NAME, of an entry of the current archive, cannot be shown. */
static void refuse_name(struct kp_view_builder *b, struct kp_span name, const char *why)
{
	char *reason = NULL;
	int n = asprintf(&reason, "%s (%s)", why,
			 kp_archive_path(b->v->archives[b->archive]));

	kp_view_conflict(b, name, n < 0 ? why : reason);
	if (n >= 0)
		free(reason);
}

/* Note that the path NAME needs more directories than its archive may make. */
static void refuse_dirs(struct kp_view_builder *b, struct kp_span name)
{
	const struct kp_toc *toc = kp_archive_toc(b->v->archives[b->archive]);
	char why[128];

	snprintf(why, sizeof(why),
		 "paths before it have as many directories as %zu bytes of a table of "
		 "contents may have: %zu",
		 toc->in_file, KP_DIRS_SPARE + toc->in_file / KP_DIRS_RATIO);
	refuse_name(b, name, why);
}

static bool add_toc_name(struct kp_view_builder *b, const struct kp_entry_info *info,
			 enum kp_view_kind kind, uint32_t file)
{
	struct kp_view_toc_name *known;
	char name[256];
	size_t size;

	if (b->key != info->key.data) {
		b->key = info->key.data;
		b->split = kp_key_split(info->key);
		/* keys are valid text */
		b->key_ok = !kp_path_shape_fault(b->split.binary);
		b->key_dir = KP_VIEW_ROOT;
	}
	if (!b->key_ok) {
		refuse_name(b, info->key, "key is no path inside the mount");
		return true;
	}
	known = &b->toc_names[((uintptr_t)info->arch.data +
			       31 * (uintptr_t)info->type.data + 7 * b->split.index) %
			      KP_COUNT(b->toc_names)];
	if (known->arch != info->arch.data || known->type != info->type.data ||
	    known->index != b->split.index) {
		if (!kp_toc_file_name(info->arch, b->split.index, info->type, name,
				      &size)) {
			refuse_name(b, info->key,
				    "architecture and type give no file name");
			return true;
		}
		if (!kp_view_intern(b, (struct kp_span){(uint8_t *)name, size},
				    &known->text))
			return false;
		known->arch = info->arch.data;
		known->type = info->type.data;
		known->index = b->split.index;
	}
	if (b->key_dir == KP_VIEW_ROOT &&
	    !kp_view_resolve(b, KP_VIEW_TOC_DIR, b->split.binary, &b->key_dir))
		return false;
	if (b->key_dir != KP_VIEW_NO_DIR)
		return kp_view_add_pending(b, b->key_dir, known->text, kind, file);
	b->key_dir = KP_VIEW_ROOT;
	refuse_dirs(b, info->key);
	return true;
}

static bool add_path(struct kp_view_builder *b, struct kp_span path,
		     enum kp_view_kind kind, uint32_t file)
{
	bool is_key = b->key_ok && kp_span_eq(path, b->split.binary);
	const uint8_t *slash;
	struct kp_span name;
	uint32_t dir, text;
	size_t cut;

	if (!(is_key || kp_path_ok(path)) || kp_path_reserved(path)) {
		refuse_name(b, path,
			    "is no path inside the mount, or lies in toc or .kpackfs");
		return true;
	}
	if (b->options && b->options->bundles && kp_path_within(path, KP_BUNDLES_NAME)) {
		refuse_name(b, path, "lies in hipfb, which has the bundles");
		return true;
	}
	slash = memrchr(path.data, '/', path.size);
	cut = slash ? (size_t)(slash + 1 - path.data) : 0;
	if (!kp_view_resolve(b, KP_VIEW_ROOT,
			     (struct kp_span){path.data, cut ? cut - 1 : 0}, &dir))
		return false;
	if (dir == KP_VIEW_NO_DIR) {
		refuse_dirs(b, path);
		return true;
	}
	/* most keys are the path, so the name is that of the key's last directory */
	name = (struct kp_span){path.data + cut, path.size - cut};
	text = b->open_dirs[b->key_dir].text;
	return (kp_span_eq(kp_view_text(b->v, text), name) ||
		kp_view_intern(b, name, &text)) &&
	       kp_view_add_pending(b, dir, text, kind, file);
}

static bool add_entry(struct kp_view_builder *b, struct entry *e)
{
	bool has_path = e->meta.path.data;
	char legacy[KP_NAME_MAX + 64];
	uint32_t file;
	size_t size;

	if (!find_file(b, e, &file) ||
	    !add_toc_name(b, &e->info, has_path ? KP_VIEW_TOC_ALSO : KP_VIEW_TOC, file))
		return false;
	if (has_path && e->meta.path.size)
		return add_path(b, e->meta.path, KP_VIEW_PATH, file);
	if (has_path) {
		refuse_name(b, e->info.key, "metadata.path is empty");
		return true;
	}
	if (!kp_legacy_path(e->info.key, e->info.arch, legacy, sizeof(legacy), &size))
		return kp_view_note_code(b, &e->info, &e->meta, (uint32_t)e->number,
					 file);
	return add_path(b, (struct kp_span){(uint8_t *)legacy, size}, KP_VIEW_LEGACY,
			file);
}

static bool add_archive(struct kp_view_builder *b, size_t archive)
{
	/* entries that are read before the first of them is added: memory is slow to answer */
	enum { AHEAD = 16 };
	struct kpack_archive *a = b->v->archives[archive];
	size_t count = kp_archive_entry_count(a);
	KP_AUTO_FREE uint32_t *ordinal_file = NULL;
	struct entry entries[AHEAD];
	bool select =
		b->options && b->options->select && !kp_choice_is_all(b->options->select);

	/* what was noted is of another archive */
	b->archive = archive;
	b->key = NULL;
	memset(b->toc_names, 0, sizeof(b->toc_names));
	memset(b->selected, 0, sizeof(b->selected));
	if (b->options && b->options->shared) {
		const struct stat *st = kp_archive_stat(a);
		const uint32_t facts[] = {st->st_uid, st->st_gid, st->st_mode & 0444};

		b->readers = kp_hash64(facts, sizeof(facts), 0);
	}
	b->dirs_left = KP_DIRS_SPARE + kp_archive_toc(a)->in_file / KP_DIRS_RATIO;
	b->has_twin = false;
	for (size_t i = 0; i < b->v->n_archives; i++)
		b->has_twin |=
			i != archive && b->archive_ids[i] == b->archive_ids[archive];
	ordinal_file = kp_large_zeroed(((size_t)kp_archive_ordinal_count(a) + 1) *
				       sizeof(*ordinal_file));
	if (!ordinal_file)
		return kp_view_no_memory(b);
	b->ordinal_file = ordinal_file;

	for (size_t next = 0; next < count;) {
		size_t n = 0;

		/* read entries, and fetch the slots that find_file will read first */
		for (; next < count && n < AHEAD; next++) {
			struct entry *e = &entries[n];
			size_t at;

			kp_archive_fetch(a, next + AHEAD);
			kp_archive_entry(a, next, &e->info);
			at = ((uintptr_t)e->info.arch.data >> 3) % KP_COUNT(b->selected);
			if (select && b->selected[at].arch != e->info.arch.data) {
				b->selected[at].arch = e->info.arch.data;
				b->selected[at].selected =
					kp_view_selects(b->options, e->info.arch);
			}
			if (select && !b->selected[at].selected)
				continue;
			e->number = next;
			kp_archive_meta(a, next, &e->meta);
			identify_content(a, b->archive_ids[archive], &e->info, &e->meta,
					 &e->content);
			e->id = kp_hash64(&e->content, sizeof(e->content), b->readers);
			n++;
			if (is_unhashed(e))
				continue;
			e->place = kp_slot_hash(&e->content, sizeof(e->content), 0);
			if (b->file_set.size)
				__builtin_prefetch(kp_slots_first(&b->file_set, e->place),
						   1);
		}
		/* ... and the files that it will compare first */
		for (size_t i = 0; i < n && b->file_set.size; i++) {
			uint32_t file =
				is_unhashed(&entries[i])
					? 0
					: *kp_slots_first(&b->file_set, entries[i].place);

			if (file)
				__builtin_prefetch(&b->v->files[file - 1]);
		}
		for (size_t i = 0; i < n; i++)
			if (!add_entry(b, &entries[i]))
				return false;
	}
	return true;
}

bool kp_view_add_entries(struct kp_view_builder *b)
{
	const struct kp_view *v = b->v;

	b->archive_ids = malloc((v->n_archives + 1) * sizeof(*b->archive_ids));
	if (!b->archive_ids)
		return kp_view_no_memory(b);
	for (size_t i = 0; i < v->n_archives; i++)
		b->archive_ids[i] = archive_id(v->archives[i]);
	for (size_t i = 0; i < v->n_archives; i++)
		if (!add_archive(b, i))
			return false;
	return true;
}
