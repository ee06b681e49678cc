/* SPDX-License-Identifier: MIT */
/*
 * Reading entries.  This is the only way to their bytes: it knows how each scheme stores
 * them, and gives none away that a hash or a checksum of the archive contradicts.
 */
#ifndef KP_CORE_ARCHIVE_ENTRY_H
#define KP_CORE_ARCHIVE_ENTRY_H

#include "archive.h"

/* --- in one call ------------------------------------------------------------------- */

/*
 * Compare an entry's size with the sizes in its frames' headers, if these state them; for
 * callers that are about to allocate memory of that size.  DECOMPRESSION_FAILED,
 * INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_entry_check_size(const struct kpack_archive *a, size_t entry,
				  struct kpackx_error *why);

/*
 * Decode a whole entry into BUF, which has room for its size.  Thread-safe.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_entry_read(const struct kpack_archive *a, size_t entry, void *buf,
			    struct kpackx_error *why);

/*
 * Decode SIZE bytes from OFFSET of an entry into BUF, fewer at its end; *GOT is their
 * number.  Holds as little of the rest in memory as the scheme allows.  Thread-safe.
 */
kpack_error_t kp_entry_read_range(const struct kpack_archive *a, size_t entry,
				  uint64_t offset, void *buf, size_t size, size_t *got,
				  struct kpackx_error *why);

/* Whether WHY says that an entry's bytes do not have the xxh3 of its metadata. */
bool kp_entry_differs(const struct kpackx_error *why);

/* --- may a part be given away? ------------------------------------------------------- */

/*
 * Our writer notes hashes of short pieces of the stored bytes, which reading compares, so
 * that any part can be decoded alone.  What other writers note - a checksum at the end of
 * a zstd frame, a hash of all decoded bytes - covers the whole entry: that is decoded once
 * before the first of its bytes is given away.
 *
 * Whether parts may be given away when only they were decoded: there are hashes of pieces,
 * or no checksum covers more than the part, or all of the entry was decoded before.
 */
bool kp_entry_has_parts(const struct kpack_archive *a, size_t entry);
/*
 * Decode the whole entry and compare it with its checksums, unless kp_entry_has_parts; that
 * is remembered until close.  To be called before a part of a larger entry than KP_WHOLE_MAX
 * is given away.  Fails if that takes a window of more than MOST bytes.  Errors of
 * kp_entry_read.
 */
kpack_error_t kp_entry_check_parts(const struct kpack_archive *a, size_t entry,
				   uint64_t most, struct kpackx_error *why);

/* Whether the table of contents has hashes of the entry's stored bytes. */
bool kp_entry_has_hashes(const struct kpack_archive *a, size_t entry);
/*
 * Read the stored bytes of the object ORDINAL and compare them with the hashes of its pieces;
 * success, too, if it has none.  Not for a shared archive.
 */
kpack_error_t kp_archive_check_stored(const struct kpack_archive *a, uint32_t ordinal,
				      struct kpackx_error *why);

/* --- in steps ------------------------------------------------------------------------ */

/* An entry being read. */
struct kp_reader;

enum kp_read_how {
	/* from the first byte to the last, into one buffer of the entry's size */
	KP_READ_WHOLE,
	KP_READ_STEPS, /* ... of which the first bytes are wanted soon */
	/* from the first byte to the last, into any memory, which can be reused */
	KP_READ_PIECES, /* of any size; decoded through a window */
	KP_READ_VERIFY, /* of kp_reader_unit bytes; compares all checksums, also those that an
			   xxh3 makes superfluous */
	KP_READ_PARTS, /* at any offset: kp_reader_at */
};

kpack_error_t kp_reader_open(const struct kpack_archive *a, size_t entry,
			     enum kp_read_how how, struct kp_reader **out,
			     struct kpackx_error *why);
void kp_reader_close(struct kp_reader *r); /* NULL is allowed */

/*
 * Decode the next SIZE bytes, or all that are left if SIZE is more; *DONE becomes the
 * number of all decoded bytes.  It reaches the entry's size only if the entry's frames end
 * there and its bytes have its xxh3.  One thread at a time.
 *
 * If BUF is one buffer of the entry's size, it is the same in every call, and more than
 * SIZE bytes may be decoded.  KP_READ_VERIFY: SIZE is kp_reader_unit.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY; then only close is
 * allowed.
 */
kpack_error_t kp_reader_next(struct kp_reader *r, void *buf, uint64_t size,
			     uint64_t *done, struct kpackx_error *why);

/*
 * KP_READ_PARTS: decode SIZE bytes, which are inside the entry, from OFFSET on.  Thread-safe
 * for a chunked entry, whose whole chunks are decoded straight into BUF.  Of another entry one
 * thread reads parts in ascending order.
 */
kpack_error_t kp_reader_at(struct kp_reader *r, uint64_t offset, void *buf, uint64_t size,
			   struct kpackx_error *why);

/*
 * The bytes that are best read at once: those of a chunk, of a piece if the entry can be
 * decoded with less memory than all of it takes, or else all.
 */
uint64_t kp_reader_unit(const struct kp_reader *r);

/* KP_READ_PARTS: the chunks of which R holds a row each; 0: the entry is not chunked. */
uint64_t kp_reader_chunks(const struct kp_reader *r);

/* KP_READ_PIECES: refuse windows of more than MAX bytes. */
void kp_reader_limit_window(struct kp_reader *r, uint64_t max);
/* Whether decoding failed because a frame has a window of more than the limit. */
bool kp_reader_too_wide(const struct kp_reader *r);

/*
 * Let R, whose entry is not read any more, borrow nothing of the archive, and keep its
 * memory for kp_reader_reopen, which is as kp_reader_open.  Returns the bytes of that
 * memory.  After an error of reopen, leave and close are allowed.
 */
uint64_t kp_reader_leave(struct kp_reader *r);
kpack_error_t kp_reader_reopen(struct kp_reader *r, const struct kpack_archive *a,
			       size_t entry, enum kp_read_how how,
			       struct kpackx_error *why);

/* --- parts ---------------------------------------------------------------------------- */

/* What decoding a part of an entry takes. */
enum kp_form {
	KP_FORM_PLAIN,  /* reading its bytes */
	KP_FORM_FRAMES, /* decoding all bytes before it, too */
	KP_FORM_CHUNKS, /* decoding the chunks that it is in */
	KP_FORM_BLOCKS, /* ... blocks, which entries share and which stay decoded for a while */
};

/* The form of an entry; *UNIT: the bytes of a chunk, as its metadata says, or block, or 0. */
enum kp_form kp_entry_form(const struct kpack_archive *a, size_t entry, uint64_t *unit);
/* KP_FORM_BLOCKS: kp_shared_visits for the entry. */
uint64_t kp_entry_visits(const struct kpack_archive *a, size_t entry, uint64_t offset,
			 uint64_t size);

/* --- memory --------------------------------------------------------------------------- */

/*
 * Bytes of the window that KP_READ_PIECES needs, as the first frame states; 0: none, because
 * the bytes are stored uncompressed, or in blocks.
 */
kpack_error_t kp_entry_window(const struct kpack_archive *a, size_t entry,
			      uint64_t *window, struct kpackx_error *why);

/*
 * Bytes that KP_READ_STEPS will hold besides BUF; 0 too if the entry cannot be read, which
 * decoding reports.
 */
uint64_t kp_entry_memory(const struct kpack_archive *a, size_t entry);

#endif
