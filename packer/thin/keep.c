/* SPDX-License-Identifier: MIT */
/*
 * Keeping originals: the original of a file is compared with what takes its place in blocks; the
 * recipe copies what that has, and all other bytes go into objects of an archive.  An original that an
 * earlier run kept wins over what the file is now.  Archives get their names before the files in the
 * tree are replaced, so that a killed run has always kept enough.  Undoing is the rest of this file.
 *
 *	PATH       the recipe: blocks of the file that is there now, and ranges of
 *	PATH#0 ... pieces of PIECE bytes, each an entry: what that file has not
 *
 * A file that is changed has an archive of its own, because threads change several at once, and a run
 * that is repeated must replace just that.  If it changes a second time, the first archive is what the
 * file in the tree needs until it is replaced: so there are two names, which take turns.  Removed files
 * have archives together, by ARCHIVE_SIZE.
 *
 * Undoing trusts no name: what a recipe says of a file's hash decides whether it is the original, what
 * thin made of it, or neither, and what was restored is hashed before it gets its name.
 */
#include "keep.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "core/archive/entry.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/restore/recipe.h"
#include "core/target/target.h"
#include "core/writer/encode.h"
#include "core/writer/writer.h"
#include "packer/archives/content.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/pack/tree.h"

/* Bytes that are compared at once: code objects and segments are aligned to pages. */
#define BLOCK 4096
/* Bytes of an entry. */
#define PIECE ((size_t)4 << 20)
/* Stored bytes after which another archive is begun. */
#define ARCHIVE_SIZE (UINT64_C(1) << 30)
#define GROUP "kept"
/* The file with the path of the tree. */
#define TREE_NAME "tree"

/* --- the directory ------------------------------------------------------------------- */

kpack_error_t keep_claim(const char *dir, const char *tree, struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = below_real(tree);
	KP_AUTO_FREE char *name = xasprintf("%s/" TREE_NAME, dir);
	KP_AUTO_FREE uint8_t *text = NULL;
	size_t size;
	kpack_error_t err;

	if (!path)
		return kp_fail_errno(why, errno, "%s: cannot find its path", tree);
	err = below_file_load(name, PATH_MAX, "the path of a tree", &text, &size, why);
	if (err == KPACK_ERROR_FILE_NOT_FOUND)
		return below_file_write(name, 0600, kp_span_str(path), why);
	if (!err && strcmp((char *)text, path) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "keeps what %s lost: give %s a directory of its own",
			       size ? (char *)text : "another tree", path);
	return err;
}

/* --- blocks -------------------------------------------------------------------------- */

struct block {
	uint64_t hash, offset;
};

/* The blocks of the changed file, by hash. */
struct blocks {
	const struct kp_source *file;
	struct block *items;
	size_t count;
};

/* Whether the changed file has BYTES at OFFSET. */
static bool has_block(const struct blocks *list, uint64_t offset, const uint8_t *bytes)
{
	uint8_t there[BLOCK];

	return offset <= list->file->size && list->file->size - offset >= BLOCK &&
	       !kp_source_read(list->file, offset, there, BLOCK, NULL) &&
	       memcmp(there, bytes, BLOCK) == 0;
}

/*
 * Find BYTES in the changed file, if possible where the last part of R ends: then the part grows, and
 * the recipe of a large file has a few parts instead of one for each block.
 */
static bool find_block(const struct blocks *list, const struct kp_recipe *r,
		       const uint8_t *bytes, uint64_t *offset)
{
	const struct kp_part *last = r->n_parts ? &r->parts[r->n_parts - 1] : NULL;
	struct block key = {.hash = kp_hash64(bytes, BLOCK, 0)}, *found;

	*offset = last ? last->from + last->size : 0;
	if (list->count && (!last || last->kind == KP_PART_COPY) &&
	    has_block(list, *offset, bytes))
		return true;
	found = kp_find(list->items, list->count, &key, KP_BY_NUMBER(struct block, hash));
	if (!found)
		return false;
	*offset = found->offset;
	return has_block(list, *offset, bytes);
}

/* --- one file ------------------------------------------------------------------------ */

/* An archive that is being written, and the file whose bytes are added to it. */
struct keeping {
	struct kp_writer *writer;
	struct kp_encoder *encoder;
	uint8_t *piece, *frame;
	size_t used, frame_cap;
	const char *path;
};

static kpack_error_t keeping_open(struct keeping *k, const char *dir, const char *name,
				  struct kpackx_error *why)
{
	const struct kp_writer_options options = {
		.scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL,
		.group = GROUP,
		.family = KP_ARCH_GENERIC,
	};

	if (!k->encoder)
		KP_TRY(kp_encoder_new(3, &k->encoder, why));
	if (!k->piece)
		k->piece = xmalloc(PIECE);
	return below_writer_open(dir, name, &options, &k->writer, why);
}

static kpack_error_t keeping_publish(struct keeping *k, struct kpackx_error *why)
{
	kpack_error_t err = kp_writer_finish(k->writer, why);

	if (!err)
		err = kp_writer_publish(k->writer, why);
	kp_writer_close(k->writer);
	k->writer = NULL;
	return err;
}

static void keeping_fini(struct keeping *k)
{
	kp_writer_close(k->writer);
	kp_encoder_free(k->encoder);
	free(k->piece);
	free(k->frame);
}

static kpack_error_t add_object(struct keeping *k, const char *key, const char *type,
				struct kp_span data, struct kp_hash *hash,
				struct kpackx_error *why)
{
	struct kp_meta meta = {.has_xxh3 = true};
	struct kp_writer_entry entry = {.type = kp_span_str(type), .size = data.size};
	size_t cap = kp_encode_bound(data.size, 0), size;
	KP_AUTO_FREE uint8_t *map = NULL;

	if (cap > k->frame_cap) {
		k->frame = xrealloc(k->frame, cap);
		k->frame_cap = cap;
	}
	*hash = kp_hash_of(data.data, data.size);
	memcpy(meta.xxh3, hash->bytes, sizeof(meta.xxh3));
	KP_TRY(kp_encode(k->encoder, data, 0, k->frame, cap, &size, why));
	KP_TRY(kp_writer_add_stored(k->writer, (struct kp_span){k->frame, size},
				    &entry.ordinal, why));
	KP_TRY(kp_metadata_write(&meta, NULL, &map, &size, why));
	entry.metadata = (struct kp_span){map, size};
	return kp_writer_add_entry(k->writer, kp_span_str(key),
				   kp_span_str(KP_ARCH_GENERIC), &entry, why);
}

/* Add the piece to the archive, as the next object of R. */
static kpack_error_t flush_piece(struct keeping *k, struct kp_recipe *r,
				 struct kpackx_error *why)
{
	KP_AUTO_FREE char *key = xasprintf("%s#%zu", k->path, r->n_images);
	struct kp_recipe_image *image;
	struct kp_hash hash;

	if (k->used == 0)
		return KPACK_SUCCESS;
	KP_TRY(add_object(k, key, "bin", (struct kp_span){k->piece, k->used}, &hash,
			  why));
	KP_TRY(kp_recipe_add_image(r, NULL, KP_ARCH_GENERIC, false, &image, why));
	image->size = k->used;
	image->has_xxh3 = true;
	memcpy(image->xxh3, hash.bytes, sizeof(image->xxh3));
	k->used = 0;
	return KPACK_SUCCESS;
}

/*
 * Add PATH, whose original is ORIGINAL, and whose other facts R has.  R describes the original block by
 * block: what CHANGED (NULL: nothing took its place) has is copied from there, the rest is kept.
 */
static kpack_error_t keep_file(struct keeping *k, const char *path,
			       const struct kp_source *original,
			       const struct kp_source *changed, struct kp_recipe *r,
			       struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *encoded = NULL;
	KP_AUTO_FREE struct kp_window *w = xmalloc(sizeof(*w));
	struct kp_hasher *whole = kp_hasher_new(), *copied = kp_hasher_new();
	struct blocks blocks = {0};
	kpack_error_t err = KPACK_SUCCESS;
	const uint8_t *bytes;
	struct kp_hash hash;
	size_t size;

	if (!whole || !copied)
		xalloc_fail(0);
	if (!kp_path_ok(kp_span_str(path)) || strlen(path) > KP_NAME_MAX - 16)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "its path cannot be a key of an archive");
	k->path = path;
	k->used = 0;
	r->size = original->size;
	r->has_file = true;
	clock_gettime(CLOCK_REALTIME, &r->file.kept);
	if (!err && changed) {
		kp_window_init(w, changed);
		blocks.file = changed;
		blocks.items = xcalloc((size_t)(changed->size / BLOCK) + 1,
				       sizeof(*blocks.items));
	}
	for (uint64_t at = 0; !err && changed && changed->size - at >= BLOCK;
	     at += BLOCK) {
		err = kp_window_get(w, at, BLOCK, &bytes, why);
		if (!err)
			blocks.items[blocks.count++] =
				(struct block){kp_hash64(bytes, BLOCK, 0), at};
	}
	kp_sort(blocks.items, blocks.count, KP_BY_NUMBER(struct block, hash),
		KP_BY_NUMBER(struct block, offset));
	kp_window_init(w, original);
	for (uint64_t at = 0; !err && at < original->size;) {
		uint64_t left = original->size - at, offset;
		size_t n = left < BLOCK ? (size_t)left : BLOCK;

		err = kp_window_get(w, at, n, &bytes, why);
		if (err)
			break;
		kp_hasher_add(whole, bytes, n);
		progress_add(n);
		if (n == BLOCK && find_block(&blocks, r, bytes, &offset)) {
			kp_hasher_add(copied, bytes, n);
			err = kp_recipe_add(r,
					    (struct kp_part){.kind = KP_PART_COPY,
							     .from = offset,
							     .size = n},
					    why);
		} else { /* only the last block is shorter: each fits into the piece */
			err = kp_recipe_add(
				r,
				(struct kp_part){.kind = KP_PART_RANGE,
						 .number = (uint32_t)r->n_images,
						 .from = k->used,
						 .size = n},
				why);
			memcpy(k->piece + k->used, bytes, n);
			k->used += n;
		}
		at += n;
		if (!err && (k->used == PIECE || at == original->size))
			err = flush_piece(k, r, why);
	}
	memcpy(r->file.xxh3, kp_hasher_value(whole).bytes, sizeof(r->file.xxh3));
	memcpy(r->copied, kp_hasher_value(copied).bytes, sizeof(r->copied));
	if (!err)
		err = kp_recipe_encode(r, &encoded, &size, why);
	if (!err)
		err = add_object(k, path, "recipe", (struct kp_span){encoded, size},
				 &hash, why);
	kp_hasher_free(whole);
	kp_hasher_free(copied);
	free(blocks.items);
	return err;
}

/* --- restoring ----------------------------------------------------------------------- */

static bool is_recipe(const struct kpack_archive *a, size_t entry)
{
	struct kp_entry_info info;

	kp_archive_entry(a, entry, &info);
	return kp_span_is(info.type, "recipe") && kp_span_is(info.arch, KP_ARCH_GENERIC);
}

static kpack_error_t read_recipe(const struct kpack_archive *a, size_t entry,
				 struct kp_recipe *out, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *bytes = NULL;
	struct kp_source stored;
	struct kp_span span;

	KP_TRY(content_load(a, entry, &bytes, &span, why));
	stored = kp_source_memory(bytes, span.size);
	KP_TRY(kp_recipe_read(&stored, out, why));
	out->source = kp_source_memory(NULL, 0);
	if (out->has_file && !out->has_section)
		return KPACK_SUCCESS;
	kp_recipe_fini(out);
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
		       "not a recipe of kpack thin --keep");
}

/* The kept bytes of a file. */
struct pieces {
	const struct kpack_archive *a;
	struct kp_span path;
	const struct kp_recipe *r;
};

static kpack_error_t read_piece(void *arg, size_t number, void *buf,
				struct kpackx_error *why)
{
	const struct pieces *p = arg;
	KP_AUTO_FREE char *key = xasprintf("%.*s#%zu", (int)p->path.size,
					   (const char *)p->path.data, number);
	struct kp_entry_info info;
	size_t entry;
	bool there = kp_archive_find(p->a, kp_span_str(key), kp_span_str(KP_ARCH_GENERIC),
				     &entry);

	if (there)
		kp_archive_entry(p->a, entry, &info);
	progress_add(p->r->images[number].size);
	if (!there || info.size != p->r->images[number].size)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "the archive lacks kept bytes of the file");
	return kp_entry_read(p->a, entry, buf, why);
}

/*
 * Write the original of PATH to OUT, by the recipe R and the entries of A, from CHANGED
 * (NULL: the file was removed).
 * INVALID_METADATA: the result is not the original.  Errors of reading and writing.
 */
static kpack_error_t restore_original(const struct kpack_archive *a, struct kp_span path,
				      const struct kp_recipe *r,
				      const struct kp_source *changed,
				      struct kp_outfile *out, struct kpackx_error *why)
{
	struct pieces pieces = {a, path, r};
	const struct kp_recipe_source source = {
		.changed = changed, .read = read_piece, .arg = &pieces};
	struct kp_source written = kp_source_fd(out->fd, 0, r->size);
	struct kp_recipe_result result;
	struct kp_hash hash;

	KP_TRY(kp_recipe_restore(r, &source, out, &result, why));
	KP_TRY(content_hash_source(&written, &hash, why));
	progress_add(r->size);
	return kp_hash_is(&hash, r->file.xxh3)
		       ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_INVALID_METADATA,
				 "what is kept does not give the original");
}

/* --- a file that is changed ---------------------------------------------------------- */

/*
 * The name of an archive for the file PATH: its last component, and a hash.  There are two,
 * for a file that changes again: SECOND is the other one than what the file needs until it
 * is replaced.
 */
static char *archive_of(const char *path, bool second)
{
	const char *name = kp_path_name(path);

	return xasprintf("%.100s-%016llx%s" KP_ARCHIVE_SUFFIX, name + strspn(name, "."),
			 (unsigned long long)kp_hash64(path, strlen(path), 0),
			 second ? "-2" : "");
}

/* What a file was before any run. */
struct original {
	struct kp_source source; /* the file itself, or what an earlier run kept */
	struct kp_outfile out;   /* the latter, without a name */
	bool second; /* the archive to write, which is not the one that it needs */
};

static void original_fini(struct original *o)
{
	kp_outfile_close(&o->out);
}

/*
 * Find the original of FILE.  If FILE is itself the result of an earlier run, and one of its two
 * archives in DIR has the original of that run, that one is restored.
 */
static kpack_error_t find_original(const char *dir, const char *path,
				   const struct kp_source *file, struct original *o,
				   struct kpackx_error *why)
{
	*o = (struct original){.source = *file, .out = {.fd = -1, .dir_fd = -1}};
	for (int second = 0; second < 2; second++) {
		KP_AUTO_FREE char *name = archive_of(path, second);
		KP_AUTO_FREE char *archive = xasprintf("%s/%s", dir, name);
		KP_AUTO(kp_recipe) r = {0};
		struct kpack_archive *a = NULL;
		kpack_error_t err = below_archive_open(archive, &a, why);
		struct kp_hash hash;
		bool found = false;
		size_t entry;

		if (err == KPACK_ERROR_FILE_NOT_FOUND)
			continue;
		if (!err &&
		    kp_archive_find(a, kp_span_str(path), kp_span_str(KP_ARCH_GENERIC),
				    &entry) &&
		    is_recipe(a, entry)) {
			err = read_recipe(a, entry, &r, why);
			found = !err && r.file.changed_size == file->size;
		}
		if (err)
			kp_fail_prefix(why, err, "%s", archive);
		if (found) {
			err = content_hash_source(file, &hash, why);
			found = !err && kp_hash_is(&hash, r.file.changed_xxh3);
		}
		if (found) {
			err = below_outfile_open_in(&o->out, dir, "original", 0600, why);
			if (!err) {
				kp_outfile_unname(&o->out);
				o->source = kp_source_fd(o->out.fd, 0, r.size);
				o->second = !second;
				err = restore_original(a, kp_span_str(path), &r, file,
						       &o->out, why);
			}
		}
		kp_archive_close(a);
		if (err || found)
			return err;
	}
	return KPACK_SUCCESS;
}

kpack_error_t keep_changed(const char *dir, const char *path,
			   const struct kp_source *file, const struct kp_source *changed,
			   struct kpackx_error *why)
{
	KP_AUTO(kp_recipe) r = {.file.changed_size = changed->size};
	KP_AUTO(original) original = {.out = {.fd = -1, .dir_fd = -1}};
	KP_AUTO(keeping) k = {0};
	KP_AUTO_FREE char *archive = NULL;
	struct kp_hash hash;

	KP_TRY(find_original(dir, path, file, &original, why));
	KP_TRY(content_hash_source(changed, &hash, why));
	memcpy(r.file.changed_xxh3, hash.bytes, sizeof(hash.bytes));
	archive = archive_of(path, original.second);
	KP_TRY(keeping_open(&k, dir, archive, why));
	KP_TRY(keep_file(&k, path, &original.source, changed, &r, why));
	return keeping_publish(&k, why);
}

/* --- files that are removed ---------------------------------------------------------- */

kpack_error_t keep_removed(const char *dir, const struct keep_file *files, size_t n,
			   struct kpackx_error *why)
{
	KP_AUTO(keeping) k = {0};

	for (size_t i = 0; i < n; i++) {
		const struct keep_file *f = &files[i];
		KP_AUTO(kp_recipe) r = {.file.removed = true};
		KP_AUTO(original) original = {.out = {.fd = -1, .dir_fd = -1}};
		KP_AUTO_CLOSE int fd = -1;
		kpack_error_t err = KPACK_SUCCESS;
		struct kp_source file;
		struct stat st;

		if (!k.writer) {
			KP_AUTO_FREE char *name = NULL;
			uint64_t hash = 0;

			/* the same files give this name again */
			for (const struct keep_file *g = f; g < files + n; g++) {
				hash = kp_hash64(g->path, strlen(g->path), hash);
				hash = kp_hash64(&g->id->size, sizeof(g->id->size), hash);
				hash = kp_hash64(&g->id->mtime, sizeof(g->id->mtime),
						 hash);
			}
			name = xasprintf("removed-%016llx" KP_ARCHIVE_SUFFIX,
					 (unsigned long long)hash);
			err = keeping_open(&k, dir, name, why);
		}
		if (!err)
			err = below_file_open_again(f->disk, f->id, &fd, why);
		if (!err && fstat(fd, &st) < 0)
			err = kp_fail_errno(why, errno, "cannot stat");
		if (!err) {
			r.file.mode = st.st_mode & 07777;
			r.file.uid = st.st_uid;
			r.file.gid = st.st_gid;
			r.file.mtime = st.st_mtim;
			file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
			err = find_original(dir, f->path, &file, &original, why);
		}
		if (!err)
			err = keep_file(&k, f->path, &original.source, NULL, &r, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", f->disk);
		if (kp_writer_blob_size(k.writer) > ARCHIVE_SIZE || i + 1 == n)
			KP_TRY(keeping_publish(&k, why));
	}
	return KPACK_SUCCESS;
}

/* --- undoing ------------------------------------------------------------------------- */

/*
 * kpack thin --undo.  The directory has recipes of files, perhaps several of one path; for each path
 * the file in the tree is compared with what the recipes say: it is the original already, or what
 * thin made of it, which is rewritten, or it was removed, which is made again.  Anything else is left
 * as it is, with a message.
 */

/*
 * Read the recipes of the directory: by path, the last that was kept first.  false: a fault, which
 * was reported.
 */
static bool open_kept(struct undo *u)
{
	const char *dir = u->args.dir;
	KP_AUTO_FREE char *name = xasprintf("%s/" TREE_NAME, dir);
	struct dirent **all = NULL;
	struct stat st;
	int n = below_scandir(dir, &all, NULL);
	/* ".", ".." and the name of the tree: a run that changed nothing */
	bool nothing = n == 3 && below_lstat(name, &st) == 0;

	while (n > 0)
		free(all[--n]);
	free(all);
	if (nothing)
		return true;
	archives_open(&u->kept, 1, (char **)&u->args.dir);
	u->n_faults += u->kept.failed;
	for (size_t i = 0; i < u->kept.count; i++) {
		const struct kpack_archive *a = u->kept.items[i];

		for (size_t k = 0; k < kp_archive_entry_count(a); k++) {
			struct undo_file f = {.archive = a, .entry = SIZE_MAX};
			struct kpackx_error why = {0};
			struct kp_entry_info info;
			const struct timespec *kept;

			kp_archive_entry(a, k, &info);
			f.path = info.key;
			if (!is_recipe(a, k))
				continue;
			if (!kp_path_ok(f.path))
				kp_fail(&why, KPACK_ERROR_INVALID_METADATA,
					"a key is not the path of a file");
			if (why.code || read_recipe(a, k, &f.recipe, &why)) {
				report_why(kp_archive_path(a), &why);
				u->n_faults++;
				continue;
			}
			kept = &f.recipe.file.kept;
			f.age = UINT64_MAX - (uint64_t)kept->tv_sec * 1000000000 -
				(uint64_t)kept->tv_nsec;
			xgrow(&u->files, u->n_files, &u->files_cap, sizeof(*u->files));
			u->files[u->n_files++] = f;
		}
	}
	kp_sort(u->files, u->n_files, KP_BY_SPAN(struct undo_file, path),
		KP_BY_NUMBER(struct undo_file, age));
	if (u->n_faults == 0 && u->n_files == 0)
		report_error(dir, "nothing in it was kept by kpack thin --keep");
	return u->n_faults == 0 && u->n_files;
}

/* --- what is in the tree ------------------------------------------------------------- */

static char *path_of(const struct undo *u, const struct undo_file *f)
{
	return xasprintf("%s/%.*s", u->args.tree, (int)f->path.size,
			 (const char *)f->path.data);
}

static void refuse_file(struct undo *u, struct undo_file *f, const char *reason)
{
	KP_AUTO_FREE char *path = path_of(u, f);

	report_error(path, "left as it is: %s", reason);
	f->state = UNDO_REFUSED;
}

static bool is_original(const struct kp_recipe *r, uint64_t size,
			const struct kp_hash *hash)
{
	return size == r->size && kp_hash_is(hash, r->file.xxh3);
}

static bool is_changed(const struct kp_recipe *r, const struct kp_hash *hash)
{
	return !r->file.removed && kp_hash_is(hash, r->file.changed_xxh3);
}

/* Choose what is done with the file at ENTRY, by one of the N recipes at F. */
static kpack_error_t choose_existing(struct undo *u, struct undo_file *f, size_t n,
				     size_t entry, struct kpackx_error *why)
{
	const struct scan_entry *e = &u->scan.entries[entry];
	struct kp_recipe *r = &f->recipe;
	KP_AUTO_CLOSE int fd = -1;
	struct kp_source file;
	struct kp_hash hash;

	if (!S_ISREG(e->mode)) {
		refuse_file(u, f, "it is not a file any more");
		return KPACK_SUCCESS;
	}
	KP_TRY(below_file_open_again(e->path, &e->id, &fd, why));
	file = kp_source_fd(fd, 0, e->id.size);
	KP_TRY(content_hash_source(&file, &hash, why));
	progress_add(file.size);
	/* a killed run has kept the original for a file that it did not write */
	for (size_t i = 0; i < n; i++) {
		struct undo_file first = f[0];

		if (!is_original(&f[i].recipe, e->id.size, &hash) &&
		    !is_changed(&f[i].recipe, &hash))
			continue;
		f[0] = f[i];
		f[i] = first;
		break;
	}
	f->entry = e->first;
	if (is_original(r, e->id.size, &hash)) {
		f->state = UNDO_ORIGINAL;
		return KPACK_SUCCESS;
	}
	if (!is_changed(r, &hash)) {
		refuse_file(u, f, "it is another file now");
		return KPACK_SUCCESS;
	}
	for (size_t i = 0; i < u->n_restored; i++)
		if (u->restored[i]->entry == f->entry) {
			f->state = UNDO_LINK;
			return KPACK_SUCCESS;
		}
	/* a file that lost all code is no input for a scan */
	if (!u->scan.entries[f->entry].input)
		KP_TRY(scan_add_plain(&u->scan, f->entry, why));
	u->dispositions.items[f->entry].fate = FATE_CONVERTED;
	u->restored[u->n_restored++] = u->scan.entries[f->entry].input;
	return KPACK_SUCCESS;
}

static bool open_tree(struct undo *u)
{
	struct kpackx_error why = {0};
	size_t entry, n = 0;
	uint64_t bytes = 0;

	u->scan.progress = u->args.progress;
	if (scan_open(u->args.tree, "", SCAN_CONVERTIBLE, &u->args.libraries,
		      SCAN_IDENTIFY, &u->scan, &why)) {
		report_why(u->args.tree, &why);
		return false;
	}
	u->n_faults = u->scan.n_faults;
	dispositions_open(&u->scan, true, &u->dispositions);
	u->restored = xcalloc(u->n_files, sizeof(*u->restored));
	/* a file in the tree is hashed when it is chosen and when it is read, and the original at last */
	for (size_t i = 0; i < u->n_files; i++) {
		const struct kp_recipe *r = &u->files[i].recipe;

		bytes += r->size + (r->file.removed ? 0 : 2 * r->file.changed_size);
		for (size_t k = 0; k < r->n_images; k++)
			bytes += r->images[k].size;
	}
	progress_begin("restoring", bytes, u->args.progress);
	for (size_t i = 0, end; i < u->n_files; i = end) {
		struct undo_file *f = &u->files[i];
		KP_AUTO_FREE char *dir = path_of(u, f);
		struct stat st = {0};

		for (end = i + 1;
		     end < u->n_files && kp_span_eq(f->path, u->files[end].path);)
			end++;
		*strrchr(dir, '/') = '\0';
		if (scan_find(&u->scan, f->path, &entry)) {
			if (choose_existing(u, f, end - i, entry, &why)) {
				report_why(u->scan.entries[entry].path, &why);
				u->n_faults++;
			}
		} else if (!f->recipe.file.removed) {
			refuse_file(u, f, "it does not exist any more");
		} else if (below_lstat(dir, &st) < 0 && errno != ENOENT &&
			   errno != ENOTDIR) {
			refuse_file(u, f, strerror(errno));
		} else if (!S_ISDIR(st.st_mode)) {
			refuse_file(u, f, "its directory does not exist any more");
		}
		/* only the recipe that was chosen stays */
		for (size_t k = i + 1; k < end; k++)
			kp_recipe_fini(&u->files[k].recipe);
		u->files[n++] = *f;
	}
	u->n_files = n;
	return true;
}

/* --- writing ------------------------------------------------------------------------- */

/* The converter's: write the original of IN to OUT. */
static kpack_error_t restore_file(void *arg, struct input *in, int fd,
				  struct kp_outfile *out, struct kpackx_error *why)
{
	const struct undo *u = arg;
	const struct undo_file *f = u->files;
	struct kp_source changed = kp_source_fd(fd, 0, (uint64_t)in->st.st_size);
	struct kp_hash hash;

	while (f->entry != in->entry || f->state != UNDO_RESTORED)
		f++;
	KP_TRY(content_hash_source(&changed, &hash, why));
	progress_add(changed.size);
	if (!kp_hash_is(&hash, f->recipe.file.changed_xxh3))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	return restore_original(f->archive, f->path, &f->recipe, &changed, out, why);
}

int undo_run(struct undo *u)
{
	struct converter c = {.scan = &u->scan,
			      .dispositions = &u->dispositions,
			      .jobs = u->args.jobs,
			      .rewrite = restore_file,
			      .arg = u};
	struct kpackx_error why = {0};
	size_t refused = 0;
	kpack_error_t err;

	if (!open_kept(u) || !open_tree(u))
		return EXIT_FAULT;
	c.inputs = u->restored;
	c.n_inputs = u->n_restored;
	converter_check(&c, &u->n_faults);
	if (u->n_faults) {
		progress_end();
		return report_error(u->args.tree,
				    "nothing was restored because of the faults above");
	}
	err = output_write(&c, u->args.tree, NULL, &why);
	for (size_t i = 0; i < u->n_files && !err; i++) {
		const struct undo_file *f = &u->files[i];
		const struct kp_recipe *r = &f->recipe;
		const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, r->file.mtime};
		KP_AUTO(kp_outfile) out = {.fd = -1, .dir_fd = -1};
		KP_AUTO_FREE char *path = path_of(u, f);

		refused += f->state == UNDO_REFUSED;
		if (f->state != UNDO_RESTORED || !r->file.removed)
			continue;
		/* a file that was removed is made again */
		err = below_outfile_open(&out, path, 0600, &why);
		out.keep = true;
		out.mode = 0;
		if (!err)
			err = restore_original(f->archive, f->path, r, NULL, &out, &why);
		/* the file of an ordinary user stays that user's */
		if (!err && geteuid() == 0 &&
		    fchown(out.fd, r->file.uid, r->file.gid) < 0)
			err = kp_fail_errno(&why, errno, "cannot give it its owner");
		if (!err && (fchmod(out.fd, r->file.mode & 0777) < 0 ||
			     futimens(out.fd, times) < 0))
			err = kp_fail_errno(&why, errno, "cannot give it its attributes");
		if (!err)
			err = kp_outfile_publish(&out, &why);
		if (err)
			kp_fail_prefix(&why, err, "%s", path);
	}
	progress_end();
	if (err)
		return report_why(NULL, &why);
	u->done = true;
	return refused ? EXIT_FAULT : EXIT_OK;
}

void undo_close(struct undo *u)
{
	for (size_t i = 0; i < u->n_files; i++)
		kp_recipe_fini(&u->files[i].recipe);
	free(u->files);
	free(u->restored);
	dispositions_close(&u->dispositions);
	scan_close(&u->scan);
	archives_close(&u->kept);
	library_set_close(&u->args.libraries);
	*u = (struct undo){0};
}
