/* SPDX-License-Identifier: MIT */
/* Internals of the writer, shared by its files: its state, and buffered output. */
#ifndef KP_CORE_WRITER_INTERNAL_H
#define KP_CORE_WRITER_INTERNAL_H

#include "blocks.h"
#include "entry_list.h"
#include "core/base/file.h"
#include "share.h"
#include "writer.h"

enum { KP_WRITER_BLOB = 64, KP_WRITER_BUFFER = 1 << 20 };

struct kp_writer {
	struct kp_outfile file;
	kpack_compression_t scheme;
	struct kp_share *share;  /* scheme zstd-shared: its objects; else NULL */
	struct kp_copied copied; /* ... its first blocks */
	int level;               /* ... and how they are compressed at the end */
	unsigned jobs;
	uint32_t effort;
	char *group, *family;
	const struct kp_span *more; /* borrowed: see struct kp_writer_options */
	size_t n_more;

	uint64_t *offsets; /* where each object's stored bytes begin in the file */
	uint64_t *sizes;
	uint64_t *pieces; /* XXH3-64 of each KP_PIECE stored bytes of each object */
	size_t n_pieces, pieces_cap;
	uint32_t n_frames;
	size_t offsets_cap, sizes_cap;
	uint64_t end;      /* where the next byte of the blob goes */
	uint64_t blob_end; /* where the table begins; 0: it has not begun */

	struct kp_entry_list entries;

	/* bytes not yet written: [buffered_at, buffered_at + buffered) of the file */
	uint8_t *buffer;
	size_t buffered;
	uint64_t buffered_at;
	kpack_error_t failed;     /* the error of the first failed write */
	struct kpackx_error *why; /* for msgpack's callback */
	struct kp_hasher *hasher; /* of the table */
	bool finished;
};

/* Fail if an earlier write failed. */
kpack_error_t kp_writer_check(const struct kp_writer *w, struct kpackx_error *why);

/*
 * Append to the file, and advance END.  After a failure bytes are missing, and every
 * further call fails.
 */
kpack_error_t kp_writer_append(struct kp_writer *w, const void *data, size_t size,
			       struct kpackx_error *why);
kpack_error_t kp_writer_append_source(struct kp_writer *w, const struct kp_source *s,
				      struct kpackx_error *why);
/* Note the hashes of an object whose STORED bytes are added, of any scheme but zstd-shared. */
kpack_error_t kp_writer_hash(struct kp_writer *w, const struct kp_source *stored,
			     struct kpackx_error *why);

/*
 * Record the offset and size of one more object of SIZE bytes.  The caller appends the
 * object next, and then counts it.  INVALID_ARGUMENT: the archive has no room for it.
 */
kpack_error_t kp_writer_place(struct kp_writer *w, uint64_t size,
			      struct kpackx_error *why);

/*
 * Append the table of contents; the entries must be sorted.  BLOCKS: of a shared archive.
 */
kpack_error_t kp_writer_pack_toc(struct kp_writer *w, const struct kp_blocks *blocks,
				 struct kpackx_error *why);

#endif
