/* SPDX-License-Identifier: MIT */
/*
 * Opening an archive: header, table of contents, and for each scheme where the objects are.
 * Then each entry is compared with that; one that cannot be read is refused, with its reason,
 * and the others stay.
 *
 * Whether an archive is refused or an entry depends on what is wrong: without header, table or
 * frame index nothing can be found, but a wrong ordinal or size is of one entry alone.  After
 * opening, each entry that is left has an ordinal below the number of objects, an object inside
 * the file, and a size that its stored bytes can decode to and that is below the limits: callers
 * allocate that many bytes.  Of the blob only a count is read, the length words
 * of an archive that has no frame index, and headers of frames whose entries state no size.
 */
#include "archive.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "frames.h"
#include "internal.h"
#include "naming.h"

typedef unsigned long long ull;

/* --- header and table of contents ---------------------------------------------------- */

/* Version 2 is for the scheme zstd-shared, version 1 for the others. */
enum { HEADER_SIZE = 16, VERSION = 1, VERSION_SHARED = 2 };

static uint64_t file_size(const struct kpack_archive *a)
{
	return (uint64_t)a->st.st_size;
}

static kpack_error_t read_header(struct kpack_archive *a, uint64_t *toc_offset,
				 struct kpackx_error *why)
{
	uint8_t h[HEADER_SIZE] = {0};
	size_t size = file_size(a) < HEADER_SIZE ? (size_t)file_size(a) : HEADER_SIZE;

	if (size == 0)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "header: the file is empty");
	KP_TRY(kp_file_pread(a->fd, 0, h, size, why));
	if (memcmp(h, "KPAK", size < 4 ? size : 4) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header: not a kpack archive (magic %02x%02x%02x%02x)",
			       h[0], h[1], h[2], h[3]);
	if (size < HEADER_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "truncated: it has %zu bytes, less than the 16 of its "
			       "header: copy or download it again",
			       size);
	a->version = kp_le32(h + 4);
	if (a->version != VERSION && a->version != VERSION_SHARED)
		return kp_fail(why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "header: version %u is not supported, only 1 and 2",
			       a->version);
	*toc_offset = kp_le64(h + 8);
	/* no file is so long that its table could be there */
	if (*toc_offset < HEADER_SIZE || *toc_offset > INT64_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header: toc_offset %llu is outside 16..%llu%s",
			       (ull)*toc_offset, (ull)file_size(a) - 1,
			       *toc_offset ? "" : ": the archive was never finished");
	if (*toc_offset >= file_size(a))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "truncated: it has %llu bytes, and its table of contents "
			       "begins at %llu: copy or download it again",
			       (ull)file_size(a), (ull)*toc_offset);
	return KPACK_SUCCESS;
}

static kpack_error_t read_toc(struct kpack_archive *a, struct kpackx_error *why)
{
	uint64_t offset = 0, size;
	uint8_t *bytes, head;
	kpack_error_t err;
	uint32_t want;

	KP_TRY(read_header(a, &offset, why));
	/* the first byte, before reading what may be a gigabyte of something else */
	KP_TRY(kp_file_pread(a->fd, offset, &head, 1, why));
	if ((head & 0xf0) != 0x80 && head != 0xde && head != 0xdf)
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED,
			       "toc: byte 0 is 0x%02x: not a map", head);
	size = file_size(a) - offset;
	if (size > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: %llu bytes, limit %llu", (ull)size,
			       (ull)KP_TOC_SIZE_MAX);
	bytes = kp_large_alloc((size_t)size + 1);
	if (!bytes)
		return kp_fail_memory(why, size, "the table of contents");
	err = kp_file_pread(a->fd, offset, bytes, (size_t)size, why);
	if (err) {
		free(bytes);
		return err;
	}
	KP_TRY(kp_toc_parse(bytes, (size_t)size, file_size(a), &a->toc, why));
	want = a->toc.scheme == KP_COMPRESSION_ZSTD_SHARED ? VERSION_SHARED : VERSION;
	if (a->version != want)
		return kp_fail(why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "header: version %u is not supported with the scheme %s, "
			       "only %u",
			       a->version, kp_scheme_name(a->toc.scheme), want);
	return KPACK_SUCCESS;
}

/* --- where the objects are ------------------------------------------------------------ */

/*
 * Make the index of an archive that has none, from the frames' length words.  Small frames
 * are read in large steps, and little of each large one, which is skipped.
 */
static kpack_error_t walk_frames(struct kpack_archive *a, struct kpackx_error *why)
{
	enum { LEAST = 4096, MOST = 1 << 20, NEAR = 16 << 10 };
	uint64_t size = a->toc.zstd_size, at = 4, begin = 0, have = 0;
	KP_AUTO_FREE uint8_t *buf = NULL;
	uint8_t word[4];
	uint32_t n, len;
	size_t cap;

	KP_TRY(kp_file_pread(a->fd, a->toc.zstd_offset, word, sizeof(word), why));
	n = kp_le32(word);
	if (n > KP_FRAMES_MAX || n > (size - 4) / 4)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "blob: %u frames in %llu bytes, limit %u", n, (ull)size,
			       KP_FRAMES_MAX);
	/* few frames take few reads even with a small buffer */
	cap = 64 * (size_t)n < LEAST ? LEAST : 64 * (size_t)n < MOST ? 64 * n : MOST;
	buf = malloc(cap);
	a->walked = kp_large_alloc(8 * ((size_t)n + 1));
	if (!buf || !a->walked)
		return kp_fail_memory(why, 8 * ((uint64_t)n + 1), "frame index");
	for (uint32_t i = 0; i < n; i++) {
		kp_put_le64(a->walked + 8 * (size_t)i, at);
		if (!kp_range_ok(size, at, 4))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "blob: length word at %llu of %llu bytes", (ull)at,
				       (ull)size);
		if (!kp_range_ok(have, at - begin, 4)) {
			uint64_t want = have && at - begin < have + NEAR ? cap : LEAST;

			begin = at;
			have = size - at < want ? size - at : want;
			KP_TRY(kp_file_pread(a->fd, a->toc.zstd_offset + at, buf,
					     (size_t)have, why));
		}
		len = kp_le32(buf + (at - begin));
		if (!kp_range_ok(size, at + 4, len))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "blob: frame %u: %u bytes at %llu of %llu", i, len,
				       (ull)at + 4, (ull)size);
		at += 4 + (uint64_t)len;
	}
	kp_put_le64(a->walked + 8 * (size_t)n, at);
	a->frames = a->walked;
	a->n_frames = n;
	return KPACK_SUCCESS;
}

/*
 * Find the objects, by scheme.  The frame index of a zstd blob, which is checked if the table has it,
 * is N+1 little-endian u64, the offsets of the frames' length words from the blob's start.  The first
 * is 4, they strictly increase, and the last is the blob's size.
 */
static kpack_error_t find_objects(struct kpack_archive *a, struct kpackx_error *why)
{
	struct kp_toc *t = &a->toc;
	size_t n = t->frame_index.size / 8;
	uint64_t last = 4;
	kpack_error_t err;
	uint8_t word[4];

	if (t->scheme == KPACK_COMPRESSION_NOOP)
		return KPACK_SUCCESS;
	if (t->scheme == KP_COMPRESSION_ZSTD_SHARED) {
		if (!t->has_shared)
			return kp_fail(
				why, KPACK_ERROR_INVALID_FORMAT,
				"toc: zstd_shared is missing, or one of its names");
		err = kp_shared_open(a->fd, file_size(a), &t->shared, &a->shared, why);
		t->shared.frames = t->shared.objects = (struct kp_span){0};
		return err ? kp_fail_prefix(why, err, "toc") : KPACK_SUCCESS;
	}
	if (!t->has_zstd_offset || !t->has_zstd_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "toc: zstd_%s is missing",
			       t->has_zstd_offset ? "size" : "offset");
	if (t->zstd_size < 4 || t->zstd_size > KP_ZSTD_BLOB_MAX ||
	    !kp_range_ok(file_size(a), t->zstd_offset, t->zstd_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: zstd blob: %llu bytes at %llu in a file of %llu",
			       (ull)t->zstd_size, (ull)t->zstd_offset, (ull)file_size(a));
	if (!t->frame_index.data)
		return walk_frames(a, why);
	if (t->frame_index.size % 8 || n == 0 || n - 1 > KP_FRAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: %zu bytes are not 1 to %u offsets",
			       t->frame_index.size, KP_FRAMES_MAX + 1);
	a->frames = t->frame_index.data;
	a->n_frames = (uint32_t)(n - 1);
	if (kp_frame_at(a->frames, 0) != 4 ||
	    kp_frame_at(a->frames, a->n_frames) != t->zstd_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: runs from %llu to %llu, not from 4 to %llu",
			       (ull)kp_frame_at(a->frames, 0),
			       (ull)kp_frame_at(a->frames, a->n_frames),
			       (ull)t->zstd_size);
	for (uint32_t i = 1; i < n; i++) {
		uint64_t at = kp_frame_at(a->frames, i);

		if (at < last || at - last < 4 || at - last - 4 > UINT32_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "frame_index: offset %u is %llu after %llu", i,
				       (ull)at, (ull)last);
		last = at;
	}
	KP_TRY(kp_file_pread(a->fd, t->zstd_offset, word, sizeof(word), why));
	if (kp_le32(word) != a->n_frames)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: %u frames, the blob has %u", a->n_frames,
			       kp_le32(word));
	return KPACK_SUCCESS;
}

struct kp_toc_blob kp_stored_place(const struct kpack_archive *a, uint32_t ordinal)
{
	uint64_t at;

	if (a->shared)
		return (struct kp_toc_blob){.size = a->shared->objects[ordinal].stored};
	if (a->toc.scheme == KPACK_COMPRESSION_NOOP)
		return a->toc.blobs[ordinal];
	at = kp_frame_at(a->frames, ordinal);
	return (struct kp_toc_blob){a->toc.zstd_offset + at + 4,
				    kp_frame_at(a->frames, ordinal + 1) - at - 4};
}

/* Bytes of the hashes of an object's pieces: the last one may be shorter. */
static uint64_t hashes_size(const struct kpack_archive *a, uint32_t ordinal)
{
	return 8 * ((kp_stored_place(a, ordinal).size + KP_PIECE - 1) / KP_PIECE);
}

/*
 * piece_hashes has, for some objects in order, a u32 ordinal and a u64 for each KP_PIECE of the
 * stored bytes.  Where an object's hashes end follows from its size, so that a look-up needs a list
 * of where each begins.
 */
static kpack_error_t index_hashes(struct kpack_archive *a, struct kpackx_error *why)
{
	struct kp_span s = a->toc.piece_hashes;
	uint32_t n = kp_archive_ordinal_count(a), next = 0;
	size_t cap = 0;

	if (a->shared)
		return KPACK_SUCCESS;
	for (size_t at = 0; at < s.size; at += (size_t)hashes_size(a, next++)) {
		if (s.size - at >= 4) {
			uint32_t ordinal = kp_le32(s.data + at);

			next = ordinal < next ? n : ordinal;
			at += 4;
		} else {
			next = n;
		}
		if (next >= n || hashes_size(a, next) > s.size - at)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "toc: piece_hashes: byte %zu of %zu is not in the "
				       "hashes of one of %u objects, in order",
				       at, s.size, n);
		KP_TRY(kp_room(&a->hashed, a->n_hashed, &cap, "piece_hashes", why));
		a->hashed[a->n_hashed++] = (struct kp_hashed){next, (uint32_t)at};
	}
	return KPACK_SUCCESS;
}

/* --- entries ---------------------------------------------------------------------- */

/*
 * Whether an entry must be refused; adds the fault, or the size if the entry states none:
 * then its only frame's header may have it.
 */
static bool refuse_entry(struct kp_toc *toc, struct kp_toc_entry *e, void *arg)
{
	const struct kpack_archive *a = arg;
	bool none = toc->scheme == KPACK_COMPRESSION_NOOP;
	uint64_t limit = e->meta.has_chunk ? KP_CHUNKED_MAX : KP_OBJECT_MAX, size;
	uint32_t n = kp_archive_ordinal_count(a);
	uint8_t head[KP_FRAME_HEADER_MAX];
	struct kp_toc_blob at;

	if (e->ordinal >= n)
		return kp_toc_entry_fault(toc, e, true, "ordinal %u of %u %s", e->ordinal,
					  n,
					  a->shared ? "objects"
					  : none    ? "blobs"
						    : "frames");
	if (a->shared) {
		size = a->shared->objects[e->ordinal].size;
		if (e->size == KP_TOC_NO_SIZE)
			e->size = size;
		return e->size != size &&
		       kp_toc_entry_fault(toc, e, true,
					  "original_size %llu of an object of %llu bytes",
					  (ull)e->size, (ull)size);
	}
	at = kp_stored_place(a, e->ordinal);
	if (none && !kp_range_ok(file_size(a), at.offset, at.size))
		return kp_toc_entry_fault(
			toc, e, true, "%llu bytes at %llu in a file of %llu",
			(ull)at.size, (ull)at.offset, (ull)file_size(a));
	if (e->size == KP_TOC_NO_SIZE && none) {
		e->size = at.size;
	} else if (e->size == KP_TOC_NO_SIZE) {
		struct kp_span s = {head, at.size < sizeof(head) ? (size_t)at.size
								 : sizeof(head)};

		/* the first frame of chunks is only the first chunk */
		if (e->meta.has_chunk ||
		    kp_file_pread(a->fd, at.offset, head, s.size, NULL) ||
		    !kp_zstd_content_size(s, &e->size))
			return kp_toc_entry_fault(
				toc, e, true,
				"no original_size, and none in the frame's header");
	}
	if (none ? e->size != at.size : !kp_zstd_plausible(at.size, e->size))
		return kp_toc_entry_fault(toc, e, true,
					  "original_size %llu of %llu stored bytes",
					  (ull)e->size, (ull)at.size);
	return e->size > limit &&
	       kp_toc_entry_fault(toc, e, true, "original_size %llu, limit %llu",
				  (ull)e->size, (ull)limit);
}

/* --- opening ---------------------------------------------------------------------- */

kpack_error_t kp_archive_open(const char *path, struct kpack_archive **out,
			      struct kpackx_error *why)
{
	return kp_archive_open_fd(-1, path, out, why);
}

kpack_error_t kp_archive_open_fd(int fd, const char *path, struct kpack_archive **out,
				 struct kpackx_error *why)
{
	struct kpack_archive *a = calloc(1, sizeof(*a));
	kpack_error_t err;

	if (!a) {
		if (fd >= 0)
			close(fd);
		return kp_fail_memory(why, sizeof(*a), "an archive");
	}
	a->fd = fd;
	a->path = strdup(path);
	if (!a->path)
		err = kp_fail_memory(why, strlen(path), "a path");
	else
		err = fd < 0 ? kp_file_open(path, &a->fd, &a->st, why)
			     : kp_file_check(fd, &a->st, why);
	if (!err)
		err = read_toc(a, why);
	if (!err)
		err = find_objects(a, why);
	if (!err)
		err = index_hashes(a, why);
	if (!err) {
		kp_toc_filter(&a->toc, refuse_entry, a);
		err = kp_new_items(&a->checked, a->toc.n_entries / 8 + 1, 1, "an archive",
				   why);
	}
	if (err)
		kp_archive_close(a);
	else
		*out = a;
	return err;
}

void kp_archive_compact(struct kpack_archive *a)
{
	kp_toc_compact(&a->toc);
	if (a->frames && !a->walked)
		a->frames = a->toc.frame_index.data;
}

void kp_archive_close(struct kpack_archive *a)
{
	if (!a)
		return;
	kp_shared_close(a->shared);
	if (a->fd >= 0)
		close(a->fd);
	if (a->free_attached) /* before the table, from which it may borrow */
		a->free_attached(a->attached);
	kp_toc_fini(&a->toc);
	free(a->walked);
	free(a->hashed);
	free(a->checked);
	free(a->path);
	free(a);
}

/* --- asking ----------------------------------------------------------------------- */

const char *kp_archive_path(const struct kpack_archive *a)
{
	return a->path;
}

const struct stat *kp_archive_stat(const struct kpack_archive *a)
{
	return &a->st;
}

int kp_archive_fd(const struct kpack_archive *a)
{
	return a->fd;
}

bool kp_archive_same_toc(const struct kpack_archive *a)
{
	struct kpack_archive now = {.fd = a->fd}; /* for the header alone */
	uint64_t offset, size;
	uint8_t *bytes;
	bool same = false;

	if (kp_file_check(a->fd, &now.st, NULL) || now.st.st_size != a->st.st_size ||
	    read_header(&now, &offset, NULL))
		return false;
	size = file_size(&now) - offset;
	bytes = size <= KP_TOC_SIZE_MAX ? malloc((size_t)size) : NULL;
	if (bytes && !kp_file_pread(a->fd, offset, bytes, (size_t)size, NULL))
		same = kp_toc_hash(bytes, (size_t)size) == a->toc.hash;
	/* who asks has seen the file change: its bytes may be others under the same table */
	for (size_t i = 0; i <= a->toc.n_entries / 8; i++)
		atomic_store(&a->checked[i], 0);
	free(bytes);
	return same;
}

size_t kp_archive_entry_count(const struct kpack_archive *a)
{
	return a->toc.n_entries;
}

void kp_archive_entry(const struct kpack_archive *a, size_t entry,
		      struct kp_entry_info *out)
{
	const struct kp_toc_entry *e = &a->toc.entries[entry];

	*out = (struct kp_entry_info){
		.key = kp_toc_key(&a->toc, e->binary),
		.arch = a->toc.strings[e->arch],
		.type = a->toc.strings[e->type],
		.ordinal = e->ordinal,
		.size = e->size,
		.stored = kp_stored_place(a, e->ordinal).size,
	};
}

void kp_archive_fetch(const struct kpack_archive *a, size_t entry)
{
	const uint8_t *map;

	if (entry >= a->toc.n_entries)
		return;
	map = a->toc.bytes + a->toc.entries[entry].meta.at;
	__builtin_prefetch(map);
	__builtin_prefetch(map + 64);
}

bool kp_archive_find(const struct kpack_archive *a, struct kp_span key,
		     struct kp_span arch, size_t *entry)
{
	return kp_toc_find(&a->toc, key, arch, entry);
}

bool kp_archive_find_kernel(const struct kpack_archive *a, struct kp_span name,
			    struct kp_span arch, size_t *entry)
{
	struct kp_key key = kp_key_split(name);
	uint8_t buf[KP_NAME_MAX + 2];

	/* as it is named, or with the other form of index 0 */
	if (kp_archive_find(a, name, arch, entry))
		return true;
	if (key.index == 0 && key.binary.size < name.size)
		return kp_archive_find(a, key.binary, arch, entry);
	if (key.binary.size < name.size || name.size > KP_NAME_MAX)
		return false;
	memcpy(buf, name.data, name.size);
	memcpy(buf + name.size, "#0", 2);
	return kp_archive_find(a, (struct kp_span){buf, name.size + 2}, arch, entry);
}

const char *kp_archive_refusal(const struct kpack_archive *a, struct kp_span name,
			       struct kp_span arch)
{
	const struct kp_faults *faults = &a->toc.faults;
	struct kp_key want = kp_key_split(name), has;

	for (size_t i = 0; i < faults->kept; i++) {
		const struct kp_fault *f = &faults->items[i];

		if (!f->refused || !kp_span_eq(f->arch, arch))
			continue;
		has = kp_key_split(f->key);
		if (has.index == want.index && kp_span_eq(has.binary, want.binary))
			return f->text;
	}
	return NULL;
}

size_t kp_archive_arch_count(const struct kpack_archive *a)
{
	return a->toc.n_arches;
}

const char *kp_archive_arch(const struct kpack_archive *a, size_t arch)
{
	return (const char *)a->toc.arches[arch].data;
}

const char *kp_archive_scheme(const struct kpack_archive *a)
{
	return kp_scheme_name(a->toc.scheme);
}

struct kp_span kp_archive_group(const struct kpack_archive *a)
{
	return a->toc.group;
}

uint32_t kp_archive_ordinal_count(const struct kpack_archive *a)
{
	if (a->shared)
		return a->shared->n_objects;
	return a->toc.scheme == KPACK_COMPRESSION_NOOP ? a->toc.n_blobs : a->n_frames;
}

uint64_t kp_archive_blob_size(const struct kpack_archive *a)
{
	uint64_t sum = 0;

	if (a->toc.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		return a->toc.zstd_size;
	if (a->shared)
		return a->toc.shared.size;
	for (uint32_t i = 0; i < a->toc.n_blobs; i++)
		sum += a->toc.blobs[i].size;
	return sum;
}

const struct kp_fault *kp_archive_faults(const struct kpack_archive *a, size_t *kept,
					 size_t *counted)
{
	*kept = a->toc.faults.kept;
	if (counted)
		*counted = a->toc.faults.counted;
	return a->toc.faults.items;
}

void kp_archive_attach(struct kpack_archive *a, void *data, void (*free_data)(void *data))
{
	a->attached = data;
	a->free_attached = free_data;
}

void *kp_archive_attached(const struct kpack_archive *a)
{
	return a->attached;
}

const struct kp_shared *kp_archive_shared(const struct kpack_archive *a)
{
	return a->shared;
}

const struct kp_toc *kp_archive_toc(const struct kpack_archive *a)
{
	return &a->toc;
}

/* --- metadata --------------------------------------------------------------------- */

void kp_archive_meta(const struct kpack_archive *a, size_t entry, struct kp_meta *out)
{
	struct kp_decoding_facts facts = kp_archive_decoding_facts(a, entry);

	*out = (struct kp_meta){.has_xxh3 = facts.xxh3, .chunk = facts.chunk};
	if (facts.xxh3)
		memcpy(out->xxh3, facts.xxh3, sizeof(out->xxh3));
	kp_meta_texts(kp_toc_meta_map(&a->toc, &a->toc.entries[entry]), out);
}

struct kp_decoding_facts kp_archive_decoding_facts(const struct kpack_archive *a,
						   size_t entry)
{
	return kp_toc_decoding_facts(&a->toc, &a->toc.entries[entry]);
}

struct kp_span kp_archive_meta_raw(const struct kpack_archive *a, size_t entry)
{
	struct kp_span map = kp_toc_meta_map(&a->toc, &a->toc.entries[entry]);
	struct kp_mp c = kp_mp_over(map);

	if (map.size && kp_mp_skip(&c))
		map.size = kp_mp_offset(&c);
	return map;
}

bool kp_archive_serves(const struct kpack_archive *a, const struct kp_target *gpu)
{
	const uint8_t *last =
		NULL; /* equal archs share one text, and are often adjacent */

	for (size_t i = 0; i < a->toc.n_entries; i++) {
		struct kp_span arch = a->toc.strings[a->toc.entries[i].arch];
		struct kp_target code;

		if (arch.data == last)
			continue;
		last = arch.data;
		if (!kp_target_parse(arch, &code, NULL) && !kp_target_neutral(&code) &&
		    kp_target_loadable(gpu, &code))
			return true;
	}
	return false;
}
