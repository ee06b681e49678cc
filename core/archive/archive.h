/* SPDX-License-Identifier: MIT */
/*
 * An open archive.  The file consists of:
 *
 *   0   "KPAK", u32 version 1 - 2 for the scheme "zstd-shared" - u64 offset of the table of
 *       contents (all little-endian)
 *   16  48 zero bytes
 *   64  the blob.  Scheme "none": code objects at the offsets that the table states.
 *       Scheme "zstd-per-kernel": u32 count, then per frame u32 size and the frame;
 *       frame i has ordinal i in entries.
 *       Scheme "zstd-shared": frames that objects share (core/archive/shared.h).
 *   ... the table of contents: one MessagePack map, to the end of the file
 *
 * Immutable after open: every call may run concurrently, without a lock.
 * Source of the format: rocm-kpack's three readers and its writer.
 */
#ifndef KP_CORE_ARCHIVE_ARCHIVE_H
#define KP_CORE_ARCHIVE_ARCHIVE_H

#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "toc_meta.h"
#include "unknown_fields.h"
#include "core/rocm_kpack/kpack.h"
#include "core/base/span.h"
#include "core/target/target.h"

/* One entry; spans are borrowed until close. */
struct kp_entry_info {
	struct kp_span key;  /* "lib/libx.so#0" */
	struct kp_span arch; /* "gfx90a:xnack+" */
	struct kp_span type; /* "hsaco" */
	uint32_t ordinal;
	uint64_t size; /* decoded bytes */
	/* bytes in the blob; scheme "zstd-shared": see kp_shared_object_stored */
	uint64_t stored;
};

/* Errors as for kpack_open.  The caller closes *OUT with kp_archive_close. */
kpack_error_t kp_archive_open(const char *path, struct kpack_archive **out,
			      struct kpackx_error *why);
/*
 * As kp_archive_open, for an open descriptor, which the archive then owns: it is closed
 * with the archive, and on failure at once.  PATH is its name in messages.
 */
kpack_error_t kp_archive_open_fd(int fd, const char *path, struct kpack_archive **out,
				 struct kpackx_error *why);
void kp_archive_close(struct kpack_archive *a); /* NULL is allowed */

/*
 * Free everything that kpackfs does not need.  To be called right after open, before
 * spans are borrowed; afterwards keys have no NUL after them, and kp_archive_binary must
 * not be called.
 */
void kp_archive_compact(struct kpack_archive *a);

const char *kp_archive_path(const struct kpack_archive *a);        /* as passed to open */
const struct stat *kp_archive_stat(const struct kpack_archive *a); /* when opened */

int kp_archive_fd(const struct kpack_archive *a);

/*
 * Whether A has an entry that GPU can load (kp_target_loadable) and that is not neutral.
 */
bool kp_archive_serves(const struct kpack_archive *a, const struct kp_target *gpu);

/*
 * Whether the file still has the table of contents it had at open; rereads it, and forgets
 * which entries were checked (kp_archive_check_parts).
 */
bool kp_archive_same_toc(const struct kpack_archive *a);

/* Entries are numbered in bytewise order of key, then arch. */
size_t kp_archive_entry_count(const struct kpack_archive *a);
void kp_archive_entry(const struct kpack_archive *a, size_t entry,
		      struct kp_entry_info *out);
/* Fetch the metadata of an entry, which need not exist, into the processor's cache. */
void kp_archive_fetch(const struct kpack_archive *a, size_t entry);
/* The number of the entry that is exactly KEY, ARCH; false: no such entry. */
bool kp_archive_find(const struct kpack_archive *a, struct kp_span key,
		     struct kp_span arch, size_t *entry);
/*
 * As kp_archive_find, but a key without "#n" stands for index 0 and vice versa: "x" also
 * finds "x#0", and "x#0" also finds "x", the form of key that AMD's pack_tree wrote.
 */
bool kp_archive_find_kernel(const struct kpack_archive *a, struct kp_span name,
			    struct kp_span arch, size_t *entry);
/*
 * Why the entry NAME, ARCH was refused at open: the text of its fault, borrowed until
 * close.  NULL: no such entry was refused, or its fault exceeded KP_FAULTS_MAX and was
 * not kept.
 */
const char *kp_archive_refusal(const struct kpack_archive *a, struct kp_span name,
			       struct kp_span arch);
void kp_archive_meta(const struct kpack_archive *a, size_t entry, struct kp_meta *out);
/* The fields of the metadata that decoding needs: as kp_archive_meta, but fast. */
struct kp_decoding_facts kp_archive_decoding_facts(const struct kpack_archive *a,
						   size_t entry);
/* The metadata map as stored (MessagePack); empty: none. */
struct kp_span kp_archive_meta_raw(const struct kpack_archive *a, size_t entry);

/* The unknown pairs of an entry, and of the archive itself; borrowed until close. */
struct kp_more kp_archive_entry_more(const struct kpack_archive *a, size_t entry);
struct kp_more kp_archive_more(const struct kpack_archive *a);
/*
 * Whether the archive's blobs have unknown pairs; the archive's format_version, 0: none.
 */
bool kp_archive_blobs_more(const struct kpack_archive *a);
uint64_t kp_archive_format_version(const struct kpack_archive *a);

/* Keys and declared architectures (gfx_arches), NUL-terminated, borrowed until close. */
size_t kp_archive_binary_count(const struct kpack_archive *a);
const char *kp_archive_binary(const struct kpack_archive *a, size_t binary);
size_t kp_archive_arch_count(const struct kpack_archive *a);
const char *kp_archive_arch(const struct kpack_archive *a, size_t arch);

/* "none", "zstd-per-kernel" or "zstd-shared"; group_name and gfx_arch_family, empty: absent. */
const char *kp_archive_scheme(const struct kpack_archive *a);
struct kp_span kp_archive_group(const struct kpack_archive *a);
struct kp_span kp_archive_family(const struct kpack_archive *a);
/* Whether the scheme is "none": entries are stored as they are. */
bool kp_archive_is_plain(const struct kpack_archive *a);
bool kp_archive_has_frame_index(const struct kpack_archive *a);
/* The number of frames, blobs or objects, and the bytes of the blob region. */
uint32_t kp_archive_ordinal_count(const struct kpack_archive *a);
uint64_t kp_archive_blob_size(const struct kpack_archive *a);

/*
 * Refused entries and broken rules, in file order; *COUNTED, unless COUNTED is NULL, also
 * counts those that were not kept.
 */
const struct kp_fault *kp_archive_faults(const struct kpack_archive *a, size_t *kept,
					 size_t *counted);

/*
 * Attach DATA to the archive; closing the archive calls FREE_DATA while its table is
 * still valid.  At most once per archive, before another thread uses it.
 */
void kp_archive_attach(struct kpack_archive *a, void *data,
		       void (*free_data)(void *data));
void *kp_archive_attached(const struct kpack_archive *a); /* NULL: nothing attached */

/* The table of contents, for use in core. */
struct kp_toc;
const struct kp_toc *kp_archive_toc(const struct kpack_archive *a);

/* The bytes of scheme zstd-shared; NULL: A has another scheme. */
struct kp_shared;
const struct kp_shared *kp_archive_shared(const struct kpack_archive *a);

/* See kp_toc_hash. */
uint64_t kp_archive_toc_hash(const struct kpack_archive *a);

/*
 * Decode a whole entry into BUF (as many bytes as the entry's size), directly from the
 * file.  Checks the xxh3 if the metadata has one.  Thread-safe.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_archive_read(const struct kpack_archive *a, size_t entry, void *buf,
			      struct kpackx_error *why);

/*
 * As kp_archive_read, for callers that need only the bytes and do not verify the archive:
 * if an entry has an xxh3, the checksums of its frames are not checked, because the xxh3
 * covers more.
 */
kpack_error_t kp_archive_read_fast(const struct kpack_archive *a, size_t entry, void *buf,
				   struct kpackx_error *why);

/*
 * Compare an entry's size with the sizes in its frames' headers, if these state them; for
 * callers that are about to allocate memory of that size.  DECOMPRESSION_FAILED,
 * INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_archive_check_size(const struct kpack_archive *a, size_t entry,
				    struct kpackx_error *why);

/*
 * Decode SIZE bytes from OFFSET of an entry into BUF, fewer at its end; *GOT is their
 * number.  As kpackx_read_range.  Thread-safe.
 */
kpack_error_t kp_archive_read_range(const struct kpack_archive *a, size_t entry,
				    uint64_t offset, void *buf, size_t size, size_t *got,
				    struct kpackx_error *why);

/*
 * The stored bytes of an entry are about to be read from their start, in steps: as
 * kp_source_expect.
 */
void kp_archive_expect(const struct kpack_archive *a, size_t entry);

/*
 * Whether parts of an entry may be given away when only they were decoded: the archive has
 * hashes of its pieces, which reading compares; or it has no checksum that covers more; or
 * the whole entry was decoded before and is as its checksums say.
 */
bool kp_archive_has_parts(const struct kpack_archive *a, size_t entry);
/*
 * Decode the whole entry and compare it with its checksums, unless kp_archive_has_parts; that
 * is remembered until close.  To be called before a part of a larger entry than KP_WHOLE_MAX
 * is given away.  Fails if that takes a window of more than MOST bytes.  Errors of
 * kp_archive_read.
 */
kpack_error_t kp_archive_check_parts(const struct kpack_archive *a, size_t entry,
				     uint64_t most, struct kpackx_error *why);

/*
 * Read the stored bytes of the object ORDINAL and compare them with the hashes of its pieces;
 * success, too, if it has none.  Not for a shared archive.
 */
kpack_error_t kp_archive_check_stored(const struct kpack_archive *a, uint32_t ordinal,
				      struct kpackx_error *why);

/* For these calls: does the table have hashes of the stored bytes; was the entry decoded? */
bool kp_archive_has_hashes(const struct kpack_archive *a, size_t entry);
bool kp_archive_is_checked(const struct kpack_archive *a, size_t entry);
void kp_archive_set_checked(const struct kpack_archive *a, size_t entry);

/*
 * The stored bytes of an entry, for kp_source_read.  Borrowed until close.
 * INVALID_FORMAT: the frame's length word contradicts the frame index.
 * NOT_IMPLEMENTED: scheme zstd-shared, of which objects have no bytes of their own.
 */
kpack_error_t kp_archive_source(const struct kpack_archive *a, size_t entry,
				struct kp_source *out, struct kpackx_error *why);
/*
 * As kp_archive_source, for the object ORDINAL, which is below kp_archive_ordinal_count.
 */
kpack_error_t kp_archive_ordinal_source(const struct kpack_archive *a, uint32_t ordinal,
					struct kp_source *out, struct kpackx_error *why);

/*
 * A chunked entry (core/archive/seekable.h): chunk k holds the decoded bytes
 * [k * chunk, min((k + 1) * chunk, size)) and decodes alone.  Opening reads and checks
 * the seek table.  Reading is thread-safe.
 */
struct kp_chunks;
kpack_error_t kp_chunks_open(const struct kpack_archive *a, size_t entry,
			     struct kp_chunks **out, struct kpackx_error *why);
uint64_t kp_chunks_count(const struct kp_chunks *c);
uint64_t kp_chunks_size(const struct kp_chunks *c); /* decoded bytes of a full chunk */
/*
 * Whether the chunks are parts of one frame with a checksum, which covers all of them and
 * which kp_chunks_read cannot compare.
 */
bool kp_chunks_have_sum(const struct kp_chunks *c, uint32_t *sum);
kpack_error_t kp_chunks_read(const struct kp_chunks *c, uint64_t k, void *buf,
			     struct kpackx_error *why);
void kp_chunks_close(struct kp_chunks *c); /* NULL is allowed */

#endif
