/* SPDX-License-Identifier: MIT */
/*
 * The table of contents: one MessagePack map, parsed once into sorted arrays.
 *
 *   { "format_version": 1, "group_name": str, "gfx_arch_family": str,
 *     "gfx_arches": [str...],
 *     "compression_scheme": "none" | "zstd-per-kernel" | "zstd-shared",
 *     "toc": { key: { arch: entry } },
 *     "blobs": [ { "offset": n, "size": n } ],             scheme none
 *     "zstd_offset": n, "zstd_size": n,                    scheme zstd-per-kernel
 *     "frame_index": bin,                                  our addition, optional
 *     "piece_hashes": bin, ..., "table_hash": bin of 16    the same
 *     "zstd_shared": { "offset": n, "size": n, "block_size": n, "unique_size": n,
 *       "dictionary_size": n, "frames": bin, "objects": bin } }     scheme zstd-shared
 *   entry: { "type": str, "ordinal": n, "original_size": n, "metadata": map }
 *
 * The parser also accepts: entries of scheme none with their own "offset" and "size"
 * instead of blobs, entries directly under the key (the arch is then a part of the key),
 * and a missing original_size or type.  It treats equal keys like AMD's C++ reader: the
 * first of equal fields and the last of equal architectures count, and equal binaries are
 * merged.
 */
#ifndef KP_CORE_ARCHIVE_TOC_H
#define KP_CORE_ARCHIVE_TOC_H

#include "core/base/errors.h"
#include "core/base/scheme.h"
#include "core/base/span.h"
#include "shared.h"

#define KP_TOC_NO_SIZE UINT64_MAX

/* Where the length word of frame FRAME begins in its blob, as a frame index says. */
static inline uint64_t kp_frame_at(const uint8_t *index, uint32_t frame)
{
	return kp_le64(index + 8 * (size_t)frame);
}

/* A table's offsets fit in 30 bits: KP_TOC_SIZE_MAX. */
#define KP_META_AT_MAX 0x3fffffff

/* Where the metadata map of an entry is. */
struct kp_meta_place {
	uint32_t at : 30; /* its offset in the bytes; 0: none */
	/*
	 * Whether it has the fields that decoding needs.  Then the little-endian words
	 * before the map are the offsets in the map of the chunk's value, then of the
	 * xxh3's bytes.
	 */
	uint32_t has_chunk : 1, has_xxh3 : 1;
};

struct kp_toc_entry {
	uint64_t size;   /* decoded bytes, or KP_TOC_NO_SIZE: not stated */
	uint32_t binary; /* number of its key */
	uint32_t ordinal;
	struct kp_meta_place meta;
	uint16_t arch; /* numbers of strings */
	uint16_t type;
};

struct kp_toc_binary {
	uint32_t key; /* offset in the bytes; NUL-terminated there until compacted */
	uint32_t key_size;
	uint32_t first; /* its entries are [first, next binary's first) */
};

struct kp_toc_blob {
	uint64_t offset, size;
};

/* --- metadata ------------------------------------------------------------------------ */

/* The known fields of an entry's metadata; absent fields are zero. */
struct kp_meta {
	struct kp_span path;   /* of the file in its tree; data NULL: absent */
	struct kp_span target; /* bundle entry ID */
	bool has_xxh3;
	uint8_t xxh3
		[16];   /* XXH3-128 of the decoded bytes, canonical (big-endian) order */
	uint32_t mode;  /* permission bits of the packed file */
	uint64_t chunk; /* decoded bytes per part of a chunked entry; 0: not chunked */
};

/*
 * Set the path, target and mode of OUT, which are zero, to those in MAP, which may be empty.  The
 * first of equal keys counts, and a value of another type is absent.
 */
void kp_meta_texts(struct kp_span map, struct kp_meta *out);

/* The fields that decoding needs, which are found without parsing the map. */
struct kp_decoding_facts {
	uint64_t chunk; /* as in kp_meta; 0 for schemes whose objects are no frames */
	const uint8_t *xxh3; /* 16 bytes, borrowed from the table; NULL: absent */
};

/* --- unknown pairs -------------------------------------------------------------------- */

/*
 * Unknown pairs of MessagePack maps, which a later version wrote for an entry or for an
 * archive.  We do not use them, but preserve them when rewriting an archive.
 */

/* Adjacent unknown pairs of one map. */
struct kp_more_run {
	uint32_t at, size; /* offset and size in the table's bytes */
	uint32_t count;    /* pairs */
	/* owner of the pairs in a table, see kp_toc_entry_more */
	uint32_t key, entry;
	uint16_t arch;
};

/* All unknown pairs of one map.  Borrowed; all zero: none. */
struct kp_more {
	const uint8_t *bytes;
	const struct kp_more_run *runs;
	size_t n_runs;
};

static inline struct kp_span kp_more_run(const struct kp_more *p, size_t run)
{
	return (struct kp_span){p->bytes + p->runs[run].at, p->runs[run].size};
}

static inline uint32_t kp_more_count(const struct kp_more *p)
{
	uint32_t count = 0;

	for (size_t i = 0; i < p->n_runs; i++)
		count += p->runs[i].count;
	return count;
}

static inline size_t kp_more_size(const struct kp_more *p)
{
	size_t size = 0;

	for (size_t i = 0; i < p->n_runs; i++)
		size += p->runs[i].size;
	return size;
}

/* Whether A and B have the same bytes, even in different runs. */
static inline bool kp_more_same(const struct kp_more *a, const struct kp_more *b)
{
	struct kp_span x = {0}, y = {0};
	size_t i = 0, k = 0, n;

	do {
		if (x.size == 0 && i < a->n_runs)
			x = kp_more_run(a, i++);
		if (y.size == 0 && k < b->n_runs)
			y = kp_more_run(b, k++);
		n = x.size < y.size ? x.size : y.size;
		if (n && memcmp(x.data, y.data, n) != 0)
			return false;
		x = (struct kp_span){x.data + n, x.size - n};
		y = (struct kp_span){y.data + n, y.size - n};
	} while (n);
	return x.size == y.size;
}

/* Copy the pairs to TO, which has room for kp_more_size bytes. */
static inline void kp_more_copy(const struct kp_more *p, uint8_t *to)
{
	for (size_t i = 0; i < p->n_runs; i++) {
		struct kp_span run = kp_more_run(p, i);

		memcpy(to, run.data, run.size);
		to += run.size;
	}
}

/* --- the table ----------------------------------------------------------------------- */

/* Runs of unknown pairs, in the order of the file. */
struct kp_toc_more {
	struct kp_more_run *runs;
	size_t n, cap;
};

struct kp_toc {
	uint8_t *bytes; /* owned; spans borrow from it */
	size_t size;
	size_t used;    /* bytes of the map; bytes after it are ignored */
	size_t in_file; /* the same, whether the map is compacted or not */

	kpack_compression_t scheme;
	bool has_scheme;
	struct kp_span group, family; /* NUL-terminated in place; data NULL: absent */
	bool has_group, has_family, has_arches, has_toc;
	uint64_t format_version; /* 0: absent */

	struct kp_span *arches; /* gfx_arches, NUL-terminated in place */
	size_t n_arches;

	struct kp_toc_blob *blobs; /* scheme none */
	uint32_t n_blobs;
	bool has_blobs;

	uint64_t zstd_offset, zstd_size;
	bool has_zstd_offset, has_zstd_size;
	struct kp_span frame_index;  /* empty: absent */
	struct kp_span piece_hashes; /* data NULL: absent */
	bool has_table_hash;         /* at its end, and matches it */
	bool copied_hashes;          /* it has those of another archive: ignored */
	uint64_t hash;               /* see kp_toc_hash */

	struct kp_shared_layout shared; /* scheme zstd-shared */
	bool has_shared;                /* with all of its fields */

	/* in bytewise order of key, then arch; a sentinel follows the last binary */
	struct kp_toc_binary *binaries;
	size_t n_binaries;
	struct kp_toc_entry *entries;
	size_t n_entries;
	struct kp_span *strings; /* distinct architectures and types; NUL-terminated */
	size_t n_strings;
	uint8_t *texts; /* owned; the bytes of `strings` */

	/* unknown pairs of the table itself and of entries; none once compacted */
	struct kp_toc_more more, entries_more;
	bool blobs_more; /* blobs have unknown pairs, too */

	struct kp_faults faults;
};

/*
 * Parse the SIZE bytes at BYTES, a heap block of at least SIZE + 1 bytes, whose ownership
 * passes to this call on success and on failure.  Blobs must lie inside FILE_SIZE bytes.
 *
 * MSGPACK_PARSE_FAILED  not a map, or not MessagePack; a number of another type
 * INVALID_FORMAT        blobs outside the file; a table that its own hash contradicts
 * NOT_IMPLEMENTED       unknown compression scheme
 * OUT_OF_MEMORY
 */
kpack_error_t kp_toc_parse(uint8_t *bytes, size_t size, uint64_t file_size,
			   struct kp_toc *toc, struct kpackx_error *why);
void kp_toc_fini(struct kp_toc *toc);

/*
 * Keep only the bytes of keys, metadata and the table's own fields, about half of all
 * bytes.  Afterwards a key may lie inside its metadata, without a NUL after it.  To be
 * called before anything is borrowed from the table.  A table with faults, whose texts
 * quote it, stays as it is, and so does the table when memory runs out.
 */
void kp_toc_compact(struct kp_toc *toc);

/* 64 bits of the hash of a table, as it is in the file. */
uint64_t kp_toc_hash(const uint8_t *bytes, size_t size);

static inline struct kp_span kp_toc_key(const struct kp_toc *toc, size_t binary)
{
	const struct kp_toc_binary *b = &toc->binaries[binary];

	return (struct kp_span){toc->bytes + b->key, b->key_size};
}

/* The metadata map of an entry and all bytes after it; empty: none. */
static inline struct kp_span kp_toc_meta_map(const struct kp_toc *toc,
					     const struct kp_toc_entry *e)
{
	if (e->meta.at == 0)
		return (struct kp_span){0};
	return (struct kp_span){toc->bytes + e->meta.at, toc->used - e->meta.at};
}

/* Number of the first binary whose key is not less than KEY. */
size_t kp_toc_lower_bound(const struct kp_toc *toc, struct kp_span key);

/* The number of the entry KEY, ARCH; false: no such entry. */
bool kp_toc_find(const struct kp_toc *toc, struct kp_span key, struct kp_span arch,
		 size_t *entry);

/* The fields of E that decoding needs. */
struct kp_decoding_facts kp_toc_decoding_facts(const struct kp_toc *toc,
					       const struct kp_toc_entry *e);

/* The unknown pairs of an entry. */
struct kp_more kp_toc_entry_more(const struct kp_toc *toc, const struct kp_toc_entry *e);

/* Add a fault of an entry, with its key and arch; returns REFUSED: the caller drops the entry. */
bool kp_toc_entry_fault(struct kp_toc *toc, const struct kp_toc_entry *e, bool refused,
			const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Remove the entries for which DROP returns true; DROP adds the fault itself. */
void kp_toc_filter(struct kp_toc *toc,
		   bool (*drop)(struct kp_toc *toc, struct kp_toc_entry *e, void *arg),
		   void *arg);

/*
 * For kp_toc_parse: sort binaries by key and entries by arch, merge equal keys, drop all but
 * the last of equal architectures, and add the sentinel after the last binary.  A sorted
 * table takes only one pass.  OUT_OF_MEMORY.
 */
kpack_error_t kp_toc_index(struct kp_toc *toc, struct kpackx_error *why);

#endif
