/* SPDX-License-Identifier: MIT */
#include "keep.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "core/archive/entry.h"
#include "core/archive/naming.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/writer/encode.h"
#include "core/target/target.h"
#include "core/restore/apply.h"
#include "core/writer/writer.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Bytes that are compared at once: code objects and segments are aligned to pages. */
#define BLOCK 4096
/* Bytes of an entry. */
#define PIECE ((size_t)4 << 20)
/* Stored bytes after which another archive is begun. */
#define ARCHIVE_SIZE (UINT64_C(1) << 30)
#define GROUP "kept"

/* --- the directory ------------------------------------------------------------------- */

/* Compare PATH, that of the tree, with the contents of the file NAME. */
static kpack_error_t check_claim(const char *name, const char *path,
				 struct kpackx_error *why)
{
	uint8_t *text;
	size_t size;
	kpack_error_t err =
		below_file_load(name, PATH_MAX, "the path of a tree", &text, &size, why);

	if (!err && strcmp((char *)text, path) != 0)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "keeps what %s lost: give %s a directory of its own",
			      size ? (char *)text : "another tree", path);
	free(text);
	return err;
}

kpack_error_t keep_claim(const char *dir, const char *tree, struct kpackx_error *why)
{
	char *path = below_real(tree), *name;
	kpack_error_t err;

	if (!path)
		return kp_fail_errno(why, errno, "%s: cannot find its path", tree);
	name = xasprintf("%s/tree", dir);
	err = check_claim(name, path, why);
	if (err == KPACK_ERROR_FILE_NOT_FOUND)
		err = below_file_write(name, 0600, kp_span_str(path), why);
	free(name);
	free(path);
	return err;
}

/* --- hashes and blocks --------------------------------------------------------------- */

kpack_error_t keep_hash(const struct kp_source *source, uint8_t hash[16],
			struct kpackx_error *why)
{
	size_t cap = 1 << 20;
	struct kp_hasher *h = kp_hasher_new();
	uint8_t *buf = xmalloc(cap);
	kpack_error_t err = h ? KPACK_SUCCESS : kp_fail_memory(why, 0, "a hash");

	for (uint64_t at = 0; !err && at < source->size;) {
		struct kp_span span;

		err = kp_source_head(source, at, buf, cap, &span, why);
		if (err)
			break;
		kp_hasher_add(h, span.data, span.size);
		at += span.size;
	}
	if (!err)
		memcpy(hash, kp_hasher_value(h).bytes, 16);
	kp_hasher_free(h);
	free(buf);
	return err;
}

struct block {
	uint64_t hash, offset;
};

/* The blocks of the changed file, by hash. */
struct blocks {
	const struct kp_source *file;
	struct block *items;
	size_t count;
};

static kpack_error_t read_blocks(const struct kp_source *file, struct blocks *out,
				 struct kpackx_error *why)
{
	struct kp_window *w = xmalloc(sizeof(*w));
	kpack_error_t err = KPACK_SUCCESS;

	kp_window_init(w, file);
	out->file = file;
	out->items = xcalloc((size_t)(file->size / BLOCK) + 1, sizeof(*out->items));
	for (uint64_t at = 0; !err && file->size - at >= BLOCK; at += BLOCK) {
		const uint8_t *bytes;

		err = kp_window_get(w, at, BLOCK, &bytes, why);
		if (!err)
			out->items[out->count++] =
				(struct block){kp_hash64(bytes, BLOCK, 0), at};
	}
	kp_sort(out->items, out->count, KP_BY_NUMBER(struct block, hash),
		KP_BY_NUMBER(struct block, offset));
	free(w);
	return err;
}

/* Whether the changed file has BYTES at OFFSET. */
static bool has_block(const struct blocks *list, uint64_t offset, const uint8_t *bytes)
{
	uint8_t there[BLOCK];

	return offset <= list->file->size && list->file->size - offset >= BLOCK &&
	       !kp_source_read(list->file, offset, there, BLOCK, NULL) &&
	       memcmp(there, bytes, BLOCK) == 0;
}

/* Find BYTES in the changed file, if possible where the last part of R ends. */
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
				struct kp_span data, struct kpackx_error *why)
{
	const struct kp_hash hash = kp_hash_of(data.data, data.size);
	struct kp_meta meta = {.has_xxh3 = true};
	struct kp_writer_entry entry = {.type = kp_span_str(type), .size = data.size};
	size_t cap = kp_encode_bound(data.size, 0), size;
	uint8_t *map = NULL;
	kpack_error_t err;

	if (cap > k->frame_cap) {
		k->frame = xrealloc(k->frame, cap);
		k->frame_cap = cap;
	}
	memcpy(meta.xxh3, hash.bytes, sizeof(meta.xxh3));
	KP_TRY(kp_encode(k->encoder, data, 0, k->frame, cap, &size, why));
	KP_TRY(kp_writer_add_stored(k->writer, (struct kp_span){k->frame, size},
				    &entry.ordinal, why));
	KP_TRY(kp_metadata_write(&meta, NULL, &map, &size, why));
	entry.metadata = (struct kp_span){map, size};
	err = kp_writer_add_entry(k->writer, kp_span_str(key),
				  kp_span_str(KP_ARCH_GENERIC), &entry, why);
	free(map);
	return err;
}

/* Add the piece to the archive, as the next object of R. */
static kpack_error_t flush_piece(struct keeping *k, struct kp_recipe *r,
				 struct kpackx_error *why)
{
	const struct kp_hash hash = kp_hash_of(k->piece, k->used);
	struct kp_recipe_image *image;
	char *key;
	kpack_error_t err;

	if (k->used == 0)
		return KPACK_SUCCESS;
	key = xasprintf("%s#%zu", k->path, r->n_images);
	err = add_object(k, key, "bin", (struct kp_span){k->piece, k->used}, why);
	free(key);
	if (!err)
		err = kp_recipe_add_image(r, NULL, KP_ARCH_GENERIC, false, &image, why);
	if (err)
		return err;
	image->size = k->used;
	image->has_xxh3 = true;
	memcpy(image->xxh3, hash.bytes, sizeof(image->xxh3));
	k->used = 0;
	return KPACK_SUCCESS;
}

static kpack_error_t keep_bytes(struct keeping *k, struct kp_span bytes,
				struct kp_recipe *r, struct kpackx_error *why)
{
	while (bytes.size) {
		size_t n = PIECE - k->used < bytes.size ? PIECE - k->used : bytes.size;

		KP_TRY(kp_recipe_add(r,
				     (struct kp_part){.kind = KP_PART_RANGE,
						      .number = (uint32_t)r->n_images,
						      .from = k->used,
						      .size = n},
				     why));
		memcpy(k->piece + k->used, bytes.data, n);
		k->used += n;
		bytes = kp_span_tail(bytes, n);
		if (k->used == PIECE)
			KP_TRY(flush_piece(k, r, why));
	}
	return KPACK_SUCCESS;
}

/* Describe ORIGINAL in R, block by block, and keep what BLOCKS do not have. */
static kpack_error_t keep_blocks(struct keeping *k, const struct kp_source *original,
				 const struct blocks *blocks, struct kp_recipe *r,
				 struct kpackx_error *why)
{
	struct kp_window *w = xmalloc(sizeof(*w));
	struct kp_hasher *h = kp_hasher_new(), *copied = kp_hasher_new();
	kpack_error_t err =
		h && copied ? KPACK_SUCCESS : kp_fail_memory(why, 0, "a hash");

	kp_window_init(w, original);
	for (uint64_t at = 0; !err && at < original->size;) {
		uint64_t left = original->size - at, offset;
		size_t n = left < BLOCK ? (size_t)left : BLOCK;
		const uint8_t *bytes;

		err = kp_window_get(w, at, n, &bytes, why);
		if (err)
			break;
		kp_hasher_add(h, bytes, n);
		if (n == BLOCK && find_block(blocks, r, bytes, &offset)) {
			kp_hasher_add(copied, bytes, n);
			err = kp_recipe_add(r,
					    (struct kp_part){.kind = KP_PART_COPY,
							     .from = offset,
							     .size = n},
					    why);
		} else {
			err = keep_bytes(k, (struct kp_span){bytes, n}, r, why);
		}
		at += n;
	}
	if (!err)
		err = flush_piece(k, r, why);
	if (!err) {
		memcpy(r->file.xxh3, kp_hasher_value(h).bytes, sizeof(r->file.xxh3));
		memcpy(r->copied, kp_hasher_value(copied).bytes, sizeof(r->copied));
	}
	kp_hasher_free(h);
	kp_hasher_free(copied);
	free(w);
	return err;
}

/* Add PATH, whose original is ORIGINAL, and whose other facts R has. */
static kpack_error_t keep_file(struct keeping *k, const char *path,
			       const struct kp_source *original,
			       const struct kp_source *changed, struct kp_recipe *r,
			       struct kpackx_error *why)
{
	struct blocks blocks = {0};
	kpack_error_t err = KPACK_SUCCESS;
	uint8_t *encoded;
	size_t size;

	if (!kp_path_ok(kp_span_str(path)) || strlen(path) > KP_NAME_MAX - 16)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "its path cannot be a key of an archive");
	k->path = path;
	k->used = 0;
	r->size = original->size;
	r->has_file = true;
	clock_gettime(CLOCK_REALTIME, &r->file.kept);
	if (changed)
		err = read_blocks(changed, &blocks, why);
	if (!err)
		err = keep_blocks(k, original, &blocks, r, why);
	if (!err)
		err = kp_recipe_encode(r, &encoded, &size, why);
	free(blocks.items);
	if (err)
		return err;
	err = add_object(k, path, "recipe", (struct kp_span){encoded, size}, why);
	free(encoded);
	return err;
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

/* Read the recipe of PATH in the archive FILE; *FOUND: there is one. */
static kpack_error_t read_earlier(const char *file, const char *path,
				  struct kpack_archive **a, struct kp_recipe *r,
				  bool *found, struct kpackx_error *why)
{
	kpack_error_t err = below_archive_open(file, a, why);
	size_t entry;

	*found = false;
	if (err == KPACK_ERROR_FILE_NOT_FOUND)
		return KPACK_SUCCESS;
	if (!err &&
	    kp_archive_find(*a, kp_span_str(path), kp_span_str(KP_ARCH_GENERIC),
			    &entry) &&
	    keep_is_recipe(*a, entry)) {
		err = keep_read(*a, entry, r, why);
		*found = !err;
	}
	return err ? kp_fail_prefix(why, err, "%s", file) : KPACK_SUCCESS;
}

/* What a file was before any run. */
struct original {
	struct kp_source source; /* the file itself, or what an earlier run kept */
	struct kp_outfile out;   /* the latter, without a name */
	bool restored;           /* it is the latter */
};

/*
 * If FILE is itself the result of an earlier run, and the archive of DIR (its second one
 * with SECOND) has the original of that run, restore that one to O.
 */
static kpack_error_t restore_earlier(const char *dir, const char *path, bool second,
				     const struct kp_source *file, struct original *o,
				     struct kpackx_error *why)
{
	char *name = archive_of(path, second), *archive = xasprintf("%s/%s", dir, name);
	struct kpack_archive *a = NULL;
	struct kp_recipe r = {0};
	uint8_t hash[16];
	bool found;
	kpack_error_t err = read_earlier(archive, path, &a, &r, &found, why);

	if (err || !found || r.file.changed_size != file->size)
		goto out;
	err = keep_hash(file, hash, why);
	if (err || memcmp(hash, r.file.changed_xxh3, sizeof(hash)) != 0)
		goto out;
	err = below_outfile_open_in(&o->out, dir, "original", 0600, why);
	if (err)
		goto out;
	kp_outfile_unname(&o->out);
	o->source = kp_source_fd(o->out.fd, 0, r.size);
	o->restored = true;
	err = keep_restore(a, kp_span_str(path), &r, file, &o->out, why);
out:
	kp_recipe_fini(&r);
	kp_archive_close(a);
	free(archive);
	free(name);
	return err;
}

/*
 * Find the original O of FILE.  *SECOND becomes the archive to write, which is not the one
 * that FILE needs.
 */
static kpack_error_t find_original(const char *dir, const char *path,
				   const struct kp_source *file, struct original *o,
				   bool *second, struct kpackx_error *why)
{
	*o = (struct original){.source = *file, .out = {.fd = -1, .dir_fd = -1}};
	KP_TRY(restore_earlier(dir, path, false, file, o, why));
	*second = o->restored;
	return o->restored ? KPACK_SUCCESS
			   : restore_earlier(dir, path, true, file, o, why);
}

kpack_error_t keep_changed(const char *dir, const char *path,
			   const struct kp_source *file, const struct kp_source *changed,
			   struct kpackx_error *why)
{
	struct keeping k = {0};
	struct kp_recipe r = {.file.changed_size = changed->size};
	struct original original;
	bool second;
	char *archive = NULL;
	kpack_error_t err = find_original(dir, path, file, &original, &second, why);

	if (err)
		goto out;
	err = keep_hash(changed, r.file.changed_xxh3, why);
	if (err)
		goto out;
	archive = archive_of(path, second);
	err = keeping_open(&k, dir, archive, why);
	if (err)
		goto out;
	err = keep_file(&k, path, &original.source, changed, &r, why);
	if (!err)
		err = keeping_publish(&k, why);
out:
	keeping_fini(&k);
	kp_recipe_fini(&r);
	kp_outfile_close(&original.out);
	free(archive);
	return err;
}

/* --- files that are removed ---------------------------------------------------------- */

static kpack_error_t keep_one(struct keeping *k, const char *dir,
			      const struct keep_file *f, struct kpackx_error *why)
{
	struct original original = {.out = {.fd = -1, .dir_fd = -1}};
	struct kp_recipe r = {.file.removed = true};
	struct kp_source file;
	struct stat st;
	kpack_error_t err;
	bool second;
	int fd;

	KP_TRY(below_file_open_again(f->disk, f->id, &fd, why));
	if (fstat(fd, &st) < 0) {
		err = kp_fail_errno(why, errno, "cannot stat");
	} else {
		r.file.mode = st.st_mode & 07777;
		r.file.uid = st.st_uid;
		r.file.gid = st.st_gid;
		r.file.mtime = st.st_mtim;
		file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
		err = find_original(dir, f->path, &file, &original, &second, why);
		if (!err)
			err = keep_file(k, f->path, &original.source, NULL, &r, why);
	}
	kp_outfile_close(&original.out);
	close(fd);
	kp_recipe_fini(&r);
	return err;
}

/* A name that the same files give again. */
static char *removed_archive(const struct keep_file *files, size_t n)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < n; i++) {
		const struct file_identity *id = files[i].id;

		hash = kp_hash64(files[i].path, strlen(files[i].path), hash);
		hash = kp_hash64(&id->size, sizeof(id->size), hash);
		hash = kp_hash64(&id->mtime, sizeof(id->mtime), hash);
	}
	return xasprintf("removed-%016llx" KP_ARCHIVE_SUFFIX, (unsigned long long)hash);
}

kpack_error_t keep_removed(const char *dir, const struct keep_file *files, size_t n,
			   struct kpackx_error *why)
{
	struct keeping k = {0};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < n && !err; i++) {
		if (!k.writer) {
			char *name = removed_archive(files + i, n - i);

			err = keeping_open(&k, dir, name, why);
			free(name);
		}
		if (!err)
			err = keep_one(&k, dir, &files[i], why);
		if (err)
			kp_fail_prefix(why, err, "%s", files[i].disk);
		else if (kp_writer_blob_size(k.writer) > ARCHIVE_SIZE || i + 1 == n)
			err = keeping_publish(&k, why);
	}
	keeping_fini(&k);
	return err;
}

/* --- restoring ----------------------------------------------------------------------- */

bool keep_is_recipe(const struct kpack_archive *a, size_t entry)
{
	struct kp_entry_info info;

	kp_archive_entry(a, entry, &info);
	return kp_span_is(info.type, "recipe") && kp_span_is(info.arch, KP_ARCH_GENERIC);
}

static kpack_error_t read_object(const struct kpack_archive *a, size_t entry,
				 uint8_t **out, size_t *size, struct kpackx_error *why)
{
	struct kp_entry_info info;
	kpack_error_t err;

	kp_archive_entry(a, entry, &info);
	KP_TRY(kp_entry_check_size(a, entry, why));
	*out = malloc((size_t)info.size + 1);
	if (!*out)
		return kp_fail_memory(why, info.size, "an object");
	*size = (size_t)info.size;
	err = kp_entry_read(a, entry, *out, why);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

kpack_error_t keep_read(const struct kpack_archive *a, size_t entry,
			struct kp_recipe *out, struct kpackx_error *why)
{
	struct kp_source stored;
	uint8_t *bytes;
	size_t size = 0;
	kpack_error_t err;

	KP_TRY(read_object(a, entry, &bytes, &size, why));
	stored = kp_source_memory(bytes, size);
	err = kp_recipe_read(&stored, out, why);
	free(bytes);
	if (err)
		return err;
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
	char *key = xasprintf("%.*s#%zu", (int)p->path.size, (const char *)p->path.data,
			      number);
	struct kp_entry_info info;
	size_t entry;
	bool there = kp_archive_find(p->a, kp_span_str(key), kp_span_str(KP_ARCH_GENERIC),
				     &entry);

	free(key);
	if (there)
		kp_archive_entry(p->a, entry, &info);
	if (!there || info.size != p->r->images[number].size)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "the archive lacks kept bytes of the file");
	return kp_entry_read(p->a, entry, buf, why);
}

kpack_error_t keep_restore(const struct kpack_archive *a, struct kp_span path,
			   const struct kp_recipe *r, const struct kp_source *changed,
			   struct kp_outfile *out, struct kpackx_error *why)
{
	struct pieces pieces = {a, path, r};
	const struct kp_recipe_source source = {
		.changed = changed, .read = read_piece, .arg = &pieces};
	struct kp_source written = kp_source_fd(out->fd, 0, r->size);
	struct kp_recipe_result result;
	uint8_t hash[16];

	KP_TRY(kp_recipe_restore(r, &source, out, &result, why));
	KP_TRY(keep_hash(&written, hash, why));
	if (memcmp(hash, r->file.xxh3, sizeof(hash)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "what is kept does not give the original");
	return KPACK_SUCCESS;
}
