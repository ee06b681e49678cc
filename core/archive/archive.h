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
 *       Scheme "zstd-shared": frames that objects share (shared.h).
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
#include "toc.h"
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
 * spans are borrowed; afterwards keys have no NUL after them.
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
 * which entries were checked (kp_entry_check_parts).
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

/* Declared architectures (gfx_arches), NUL-terminated, borrowed until close. */
size_t kp_archive_arch_count(const struct kpack_archive *a);
const char *kp_archive_arch(const struct kpack_archive *a, size_t arch);

/* "none", "zstd-per-kernel" or "zstd-shared". */
const char *kp_archive_scheme(const struct kpack_archive *a);
/* group_name; empty: absent. */
struct kp_span kp_archive_group(const struct kpack_archive *a);
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

/* The table of contents, borrowed until close: what has no call of its own is read there. */
const struct kp_toc *kp_archive_toc(const struct kpack_archive *a);

/* The bytes of scheme zstd-shared; NULL: A has another scheme. */
const struct kp_shared *kp_archive_shared(const struct kpack_archive *a);

/*
 * The stored bytes of the object ORDINAL, which is below kp_archive_ordinal_count, for
 * kp_source_read.  Borrowed until close.
 * INVALID_FORMAT: the frame's length word contradicts the frame index.
 * NOT_IMPLEMENTED: scheme zstd-shared, of which objects have no bytes of their own.
 */
kpack_error_t kp_archive_source(const struct kpack_archive *a, uint32_t ordinal,
				struct kp_source *out, struct kpackx_error *why);

#endif
