/* SPDX-License-Identifier: MIT */
#include "archive.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "codec.h"
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/msgpack_read.h"
#include "naming.h"
#include "toc.h"
#include "toc_compact.h"
#include "core/base/hash.h"
#include "core/base/order.h"

enum { HEADER_SIZE = 16 };

/* Version 2 is for the scheme zstd-shared, version 1 for the others. */
enum { VERSION = 1, VERSION_SHARED = 2 };

struct kpack_archive {
	char *path;
	int fd;
	struct stat st;
	struct kp_toc toc;
	uint32_t version;

	/*
	 * scheme zstd-per-kernel: see kp_frame_at; borrowed from the table, or `walked`
	 */
	const uint8_t *frames;
	uint8_t *walked;
	uint32_t n_frames;

	struct kp_shared *shared; /* scheme zstd-shared; else NULL */

	/* the objects that have hashes, in order, and where these are in piece_hashes */
	struct kp_hashed {
		uint32_t ordinal, at;
	} * hashed;
	size_t n_hashed;
	_Atomic uint8_t *checked; /* a bit for each entry: see kp_archive_has_parts */

	void *attached; /* see kp_archive_attach */
	void (*free_attached)(void *attached);
};

/* --- opening ---------------------------------------------------------------------- */

static uint64_t file_size(const struct kpack_archive *a)
{
	return (uint64_t)a->st.st_size;
}

static kpack_error_t read_header(struct kpack_archive *a, uint64_t *toc_offset,
				 struct kpackx_error *why)
{
	uint8_t h[HEADER_SIZE];

	if (file_size(a) == 0)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "header: the file is empty");
	if (file_size(a) < HEADER_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header: %llu bytes, less than 16",
			       (unsigned long long)file_size(a));
	KP_TRY(kp_file_pread(a->fd, 0, h, sizeof(h), why));
	if (memcmp(h, "KPAK", 4) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header: not a kpack archive (magic %02x%02x%02x%02x)",
			       h[0], h[1], h[2], h[3]);
	a->version = kp_le32(h + 4);
	if (a->version != VERSION && a->version != VERSION_SHARED)
		return kp_fail(why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "header: version %u is not supported, only 1 and 2",
			       a->version);
	*toc_offset = kp_le64(h + 8);
	if (*toc_offset < HEADER_SIZE || *toc_offset >= file_size(a))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header: toc_offset %llu is outside 16..%llu%s",
			       (unsigned long long)*toc_offset,
			       (unsigned long long)file_size(a) - 1,
			       *toc_offset ? "" : ": the archive was never finished");
	return KPACK_SUCCESS;
}

/* Check the first byte before reading what may be gigabytes. */
static kpack_error_t check_toc_head(const struct kpack_archive *a, uint64_t offset,
				    struct kpackx_error *why)
{
	uint8_t head;

	KP_TRY(kp_file_pread(a->fd, offset, &head, 1, why));
	if ((head & 0xf0) != 0x80 && head != 0xde && head != 0xdf)
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED,
			       "toc: byte 0 is 0x%02x: not a map", head);
	return KPACK_SUCCESS;
}

static kpack_error_t read_toc(struct kpack_archive *a, struct kpackx_error *why)
{
	uint64_t offset = 0, size;
	uint8_t *bytes;
	kpack_error_t err;

	KP_TRY(read_header(a, &offset, why));
	KP_TRY(check_toc_head(a, offset, why));
	size = file_size(a) - offset;
	if (size > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: %llu bytes, limit %llu", (unsigned long long)size,
			       (unsigned long long)KP_TOC_SIZE_MAX);
	bytes = kp_large_alloc((size_t)size + 1);
	if (!bytes)
		return kp_fail_memory(why, size, "the table of contents");
	err = kp_file_pread(a->fd, offset, bytes, (size_t)size, why);
	if (err) {
		free(bytes);
		return err;
	}
	return kp_toc_parse(bytes, (size_t)size, file_size(a), &a->toc, why);
}

/* The count at the start of the blob must equal that of the index. */
static kpack_error_t check_frame_count(const struct kpack_archive *a,
				       struct kpackx_error *why)
{
	uint8_t word[4];

	KP_TRY(kp_file_pread(a->fd, a->toc.zstd_offset, word, sizeof(word), why));
	if (kp_le32(word) != a->n_frames)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: %u frames, the blob has %u", a->n_frames,
			       kp_le32(word));
	return KPACK_SUCCESS;
}

static kpack_error_t index_frames(struct kpack_archive *a, struct kpackx_error *why)
{
	const struct kp_toc *t = &a->toc;
	struct kp_source blob;

	if (!t->has_zstd_offset || !t->has_zstd_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "toc: zstd_%s is missing",
			       t->has_zstd_offset ? "size" : "offset");
	if (t->zstd_size < 4 || t->zstd_size > KP_ZSTD_BLOB_MAX ||
	    !kp_range_ok(file_size(a), t->zstd_offset, t->zstd_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: zstd blob: %llu bytes at %llu in a file of %llu",
			       (unsigned long long)t->zstd_size,
			       (unsigned long long)t->zstd_offset,
			       (unsigned long long)file_size(a));
	if (t->frame_index.data) {
		KP_TRY(kp_frame_index_check(t->frame_index, t->zstd_size, &a->n_frames,
					    why));
		a->frames = t->frame_index.data;
		return check_frame_count(a, why);
	}
	blob = kp_source_fd(a->fd, t->zstd_offset, t->zstd_size);
	KP_TRY(kp_frame_index_walk(&blob, &a->walked, &a->n_frames, why));
	a->frames = a->walked;
	return KPACK_SUCCESS;
}

/* Take over what the table of contents has about objects. */
static kpack_error_t open_shared(struct kpack_archive *a, struct kpackx_error *why)
{
	kpack_error_t err;

	if (!a->toc.has_shared)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "toc: zstd_shared is missing, or one of its names");
	err = kp_shared_open(a->fd, file_size(a), &a->toc.shared, &a->shared, why);
	a->toc.shared.frames = a->toc.shared.objects = (struct kp_span){0};
	return err ? kp_fail_prefix(why, err, "toc") : KPACK_SUCCESS;
}

static kpack_error_t check_version(const struct kpack_archive *a,
				   struct kpackx_error *why)
{
	uint32_t want =
		a->toc.scheme == KP_COMPRESSION_ZSTD_SHARED ? VERSION_SHARED : VERSION;

	if (a->version != want)
		return kp_fail(why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "header: version %u is not supported with the scheme %s, "
			       "only %u",
			       a->version, kp_scheme_name(a->toc.scheme), want);
	return KPACK_SUCCESS;
}

/* --- entries ---------------------------------------------------------------------- */

/* The place of an object's bytes; in a shared archive they have no place of their own. */
static struct kp_toc_blob stored_place(const struct kpack_archive *a, uint32_t ordinal)
{
	uint64_t at;

	if (a->shared)
		return (struct kp_toc_blob){
			.size = kp_shared_object_stored(a->shared, ordinal)};
	if (a->toc.scheme == KPACK_COMPRESSION_NOOP)
		return a->toc.blobs[ordinal];
	at = kp_frame_at(a->frames, ordinal);
	return (struct kp_toc_blob){a->toc.zstd_offset + at + 4,
				    kp_frame_at(a->frames, ordinal + 1) - at - 4};
}

/* Find the size of an entry that states none: from its blob, or its frame's header. */
static bool find_size(const struct kpack_archive *a, struct kp_toc_entry *e,
		      struct kp_toc_blob at)
{
	uint8_t head[KP_FRAME_HEADER_MAX];
	size_t n = at.size < sizeof(head) ? (size_t)at.size : sizeof(head);

	if (a->toc.scheme == KPACK_COMPRESSION_NOOP) {
		e->size = at.size;
		return true;
	}
	return !e->meta.has_chunk && /* its first frame is only the first chunk */
	       !kp_file_pread(a->fd, at.offset, head, n, NULL) &&
	       kp_zstd_content_size((struct kp_span){head, n}, &e->size);
}

static uint64_t size_limit(const struct kp_toc_entry *e)
{
	return e->meta.has_chunk ? KP_CHUNKED_MAX : KP_OBJECT_MAX;
}

/* As refuse_entry, for a shared archive. */
static bool refuse_shared(struct kp_toc *toc, struct kp_toc_entry *e, void *arg)
{
	const struct kpack_archive *a = arg;
	uint32_t n = kp_shared_count(a->shared);
	uint64_t size;

	if (e->ordinal >= n) {
		kp_toc_entry_fault(toc, e, true, "ordinal %u of %u objects", e->ordinal,
				   n);
		return true;
	}
	size = kp_shared_object_size(a->shared, e->ordinal);
	if (e->size == KP_TOC_NO_SIZE)
		e->size = size;
	if (e->size == size)
		return false;
	kp_toc_entry_fault(toc, e, true, "original_size %llu of an object of %llu bytes",
			   (unsigned long long)e->size, (unsigned long long)size);
	return true;
}

/* Whether the entry must be refused; adds the fault. */
static bool refuse_entry(struct kp_toc *toc, struct kp_toc_entry *e, void *arg)
{
	const struct kpack_archive *a = arg;
	bool none = toc->scheme == KPACK_COMPRESSION_NOOP;
	uint32_t n = none ? toc->n_blobs : a->n_frames;
	struct kp_toc_blob at;

	if (e->ordinal >= n) {
		kp_toc_entry_fault(toc, e, true, "ordinal %u of %u %s", e->ordinal, n,
				   none ? "blobs" : "frames");
		return true;
	}
	at = stored_place(a, e->ordinal);
	if (none && !kp_range_ok(file_size(a), at.offset, at.size)) {
		kp_toc_entry_fault(toc, e, true, "%llu bytes at %llu in a file of %llu",
				   (unsigned long long)at.size,
				   (unsigned long long)at.offset,
				   (unsigned long long)file_size(a));
		return true;
	}
	if (e->size == KP_TOC_NO_SIZE && !find_size(a, e, at)) {
		kp_toc_entry_fault(toc, e, true,
				   "no original_size, and none in the frame's header");
		return true;
	}
	if (none ? e->size != at.size : !kp_zstd_plausible(at.size, e->size)) {
		kp_toc_entry_fault(
			toc, e, true, "original_size %llu of %llu stored bytes",
			(unsigned long long)e->size, (unsigned long long)at.size);
		return true;
	}
	if (e->size > size_limit(e)) {
		kp_toc_entry_fault(toc, e, true, "original_size %llu, limit %llu",
				   (unsigned long long)e->size,
				   (unsigned long long)size_limit(e));
		return true;
	}
	return false;
}

/* Bytes of the hashes of an object's pieces. */
static uint64_t hashes_size(const struct kpack_archive *a, uint32_t ordinal)
{
	return 8 * ((stored_place(a, ordinal).size + KP_PIECE - 1) / KP_PIECE);
}

/* Find the objects in piece_hashes: the ordinal of each, and its hashes. */
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
		if (!kp_grow(&a->hashed, a->n_hashed, &cap, sizeof(*a->hashed)))
			return kp_fail_memory(why, s.size, "piece_hashes");
		a->hashed[a->n_hashed++] = (struct kp_hashed){next, (uint32_t)at};
	}
	return KPACK_SUCCESS;
}

/* Open PATH, unless A->fd is already open (not -1), and read it. */
static kpack_error_t open_file(struct kpack_archive *a, const char *path,
			       struct kpackx_error *why)
{
	a->path = strdup(path);
	if (!a->path)
		return kp_fail_memory(why, strlen(path), "a path");
	if (a->fd < 0)
		KP_TRY(kp_file_open(path, &a->fd, &a->st, why));
	else
		KP_TRY(kp_file_check(a->fd, &a->st, why));
	KP_TRY(read_toc(a, why));
	KP_TRY(check_version(a, why));
	if (a->toc.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		KP_TRY(index_frames(a, why));
	if (a->toc.scheme == KP_COMPRESSION_ZSTD_SHARED)
		KP_TRY(open_shared(a, why));
	KP_TRY(index_hashes(a, why));
	kp_toc_filter(&a->toc, a->shared ? refuse_shared : refuse_entry, a);
	a->checked = calloc(a->toc.n_entries / 8 + 1, 1);
	return a->checked ? KPACK_SUCCESS : kp_fail_memory(why, 0, "an archive");
}

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
	err = open_file(a, path, why);
	if (err)
		kp_archive_close(a);
	else
		*out = a;
	return err;
}

void kp_archive_compact(struct kpack_archive *a)
{
	bool borrowed = a->frames && !a->walked;

	kp_toc_compact(&a->toc);
	if (borrowed)
		a->frames = a->toc.frame_index.data;
}

void kp_archive_close(struct kpack_archive *a)
{
	if (!a)
		return;
	kp_shared_close(a->shared);
	if (a->fd >= 0)
		close(a->fd);
	if (a->free_attached)
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
	struct kpack_archive now = {.fd = a->fd};
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
	for (size_t i = 0; i <= a->toc.n_entries / 8; i++)
		atomic_store(&a->checked[i], 0); /* the bytes may be others */
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
		.stored = stored_place(a, e->ordinal).size,
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

/* NAME without its "#0", or with "#0" added.  BUF has KP_NAME_MAX + 2 bytes. */
static bool other_name(struct kp_span name, uint8_t *buf, struct kp_span *out)
{
	struct kp_key key = kp_key_split(name);

	if (key.index == 0 && key.binary.size < name.size) {
		*out = key.binary;
		return true;
	}
	if (key.binary.size < name.size || name.size > KP_NAME_MAX)
		return false;
	memcpy(buf, name.data, name.size);
	memcpy(buf + name.size, "#0", 2);
	*out = (struct kp_span){buf, name.size + 2};
	return true;
}

bool kp_archive_find_kernel(const struct kpack_archive *a, struct kp_span name,
			    struct kp_span arch, size_t *entry)
{
	uint8_t buf[KP_NAME_MAX + 2];
	struct kp_span other;

	return kp_archive_find(a, name, arch, entry) ||
	       (other_name(name, buf, &other) && kp_archive_find(a, other, arch, entry));
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

size_t kp_archive_binary_count(const struct kpack_archive *a)
{
	return a->toc.n_binaries;
}

const char *kp_archive_binary(const struct kpack_archive *a, size_t binary)
{
	return (const char *)kp_toc_key(&a->toc, binary).data;
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

bool kp_archive_is_plain(const struct kpack_archive *a)
{
	return a->toc.scheme == KPACK_COMPRESSION_NOOP;
}

struct kp_span kp_archive_group(const struct kpack_archive *a)
{
	return a->toc.group;
}

struct kp_span kp_archive_family(const struct kpack_archive *a)
{
	return a->toc.family;
}

bool kp_archive_has_frame_index(const struct kpack_archive *a)
{
	return a->toc.frame_index.data != NULL;
}

uint32_t kp_archive_ordinal_count(const struct kpack_archive *a)
{
	if (a->shared)
		return kp_shared_count(a->shared);
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

uint64_t kp_archive_toc_hash(const struct kpack_archive *a)
{
	return a->toc.hash;
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
	kp_toc_meta(&a->toc, &a->toc.entries[entry], out);
}

struct kp_decoding_facts kp_archive_decoding_facts(const struct kpack_archive *a,
						   size_t entry)
{
	return kp_toc_decoding_facts(&a->toc, &a->toc.entries[entry]);
}

struct kp_span kp_archive_meta_raw(const struct kpack_archive *a, size_t entry)
{
	struct kp_span map = kp_toc_meta_map(&a->toc, &a->toc.entries[entry]);
	struct kp_mp c;

	if (map.size == 0)
		return map;
	c = kp_mp_over(map);
	if (kp_mp_skip(&c))
		map.size = kp_mp_offset(&c);
	return map;
}

struct kp_more kp_archive_entry_more(const struct kpack_archive *a, size_t entry)
{
	return kp_toc_entry_more(&a->toc, &a->toc.entries[entry]);
}

struct kp_more kp_archive_more(const struct kpack_archive *a)
{
	return (struct kp_more){a->toc.bytes, a->toc.more.runs, a->toc.more.n};
}

bool kp_archive_blobs_more(const struct kpack_archive *a)
{
	return a->toc.blobs_more;
}

uint64_t kp_archive_format_version(const struct kpack_archive *a)
{
	return a->toc.format_version;
}

/* --- reading ---------------------------------------------------------------------- */

void kp_archive_expect(const struct kpack_archive *a, size_t entry)
{
	struct kp_toc_blob at = stored_place(a, a->toc.entries[entry].ordinal);
	struct kp_source s = kp_source_fd(a->fd, at.offset, at.size);
	uint64_t end = 0;

	if (!a->shared)
		kp_source_expect(&s, 0, &end);
}

kpack_error_t kp_archive_source(const struct kpack_archive *a, size_t entry,
				struct kp_source *out, struct kpackx_error *why)
{
	return kp_archive_ordinal_source(a, a->toc.entries[entry].ordinal, out, why);
}

/* The hashes of an object's pieces; NULL: it has none. */
static const uint8_t *hashes_of(const struct kpack_archive *a, uint32_t ordinal)
{
	const struct kp_hashed probe = {.ordinal = ordinal};
	const struct kp_hashed *found = kp_find(a->hashed, a->n_hashed, &probe,
						KP_BY_NUMBER(struct kp_hashed, ordinal));

	return found ? a->toc.piece_hashes.data + found->at : NULL;
}

bool kp_archive_has_hashes(const struct kpack_archive *a, size_t entry)
{
	return a->shared ? kp_shared_has_hashes(a->shared)
			 : hashes_of(a, a->toc.entries[entry].ordinal) != NULL;
}

bool kp_archive_is_checked(const struct kpack_archive *a, size_t entry)
{
	return atomic_load_explicit(&a->checked[entry / 8], memory_order_relaxed) >>
		       entry % 8 &
	       1;
}

void kp_archive_set_checked(const struct kpack_archive *a, size_t entry)
{
	atomic_fetch_or(&a->checked[entry / 8], (uint8_t)(1u << entry % 8));
}

kpack_error_t kp_archive_ordinal_source(const struct kpack_archive *a, uint32_t ordinal,
					struct kp_source *out, struct kpackx_error *why)
{
	struct kp_toc_blob at = stored_place(a, ordinal);
	uint8_t word[4];

	if (a->shared)
		return kp_fail(
			why, KPACK_ERROR_NOT_IMPLEMENTED,
			"an object of the scheme %s has no stored bytes of its own",
			kp_scheme_name(a->toc.scheme));
	*out = kp_source_fd(a->fd, at.offset, at.size);
	out->hashes = hashes_of(a, ordinal);
	out->begin = at.offset;
	out->end = at.offset + at.size;
	if (!kp_archive_has_frame_index(a) || a->toc.scheme == KPACK_COMPRESSION_NOOP)
		return KPACK_SUCCESS;
	KP_TRY(kp_file_pread(a->fd, at.offset - 4, word, sizeof(word), why));
	if (kp_le32(word) != at.size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: %llu bytes for frame %u, the blob says %u",
			       (unsigned long long)at.size, ordinal, kp_le32(word));
	return KPACK_SUCCESS;
}
