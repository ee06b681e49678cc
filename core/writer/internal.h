/* SPDX-License-Identifier: MIT */
/*
 * Internals of the writer, shared by its files: the objects of a shared archive and its blocks,
 * the state of a writer, and buffered output.
 */
#ifndef KP_CORE_WRITER_INTERNAL_H
#define KP_CORE_WRITER_INTERNAL_H

#include "core/archive/shared.h"
#include "core/archive/string_table.h"
#include "core/base/file.h"
#include "core/base/slots.h"
#include "writer.h"

/* --- the objects of a shared archive (share.c) ------------------------------------------- */

/*
 * Content that an earlier object has is found, and stored once.  One thread at a time.
 */

/* Bytes of a block. */
#define KP_SHARE_BLOCK (UINT64_C(1) << 20)

/* The run of unique bytes, in a file without a name beside the archive. */
struct kp_unique {
	struct kp_outfile file;
	uint64_t size;
	uint8_t *tail; /* bytes from TAIL_AT on, which are not yet written */
	uint64_t tail_at;
};

/* A part of an object. */
struct kp_share_extent {
	uint64_t pos, size; /* of the unique bytes */
	bool is_new;        /* they are of no extent before it */
};

/* To be read only. */
struct kp_share {
	struct kp_unique unique;
	uint64_t size;   /* of all objects */
	size_t *objects; /* where each begins among the extents; then their number */
	uint32_t n_objects;
	struct kp_share_extent *extents;
	size_t n_extents;
	size_t objects_cap, extents_cap;
	struct share_finder *finder; /* of content that was seen before */
};

/* Begin, with a temporary file in the directory open at DIR.  IO_ERROR; OUT_OF_MEMORY. */
kpack_error_t kp_share_new(int dir, struct kp_share **out, struct kpackx_error *why);
void kp_share_free(struct kp_share *s); /* NULL is allowed */

/* Add an object of DATA; objects are numbered from 0.  After a failure only free. */
kpack_error_t kp_share_add(struct kp_share *s, struct kp_span data,
			   struct kpackx_error *why);

/*
 * Append DATA to the unique bytes, for objects that kp_share_add_extents adds.  SEARCHED:
 * so that objects that kp_share_add adds find it, too.
 */
kpack_error_t kp_share_append(struct kp_share *s, struct kp_span data, bool searched,
			      struct kpackx_error *why);
/* Add an object of these N extents, which a reader may reach (kp_reach_add). */
kpack_error_t kp_share_add_extents(struct kp_share *s,
				   const struct kp_share_extent *extents, size_t n,
				   struct kpackx_error *why);

/* Read an object into BUF. */
kpack_error_t kp_share_read(const struct kp_share *s, uint32_t object, uint8_t *buf,
			    struct kpackx_error *why);

/* Write all unique bytes to the file. */
kpack_error_t kp_share_flush(struct kp_share *s, struct kpackx_error *why);
/* Read SIZE bytes at POS, which the run has.  After kp_share_flush thread-safe. */
kpack_error_t kp_unique_read(const struct kp_unique *u, uint64_t pos, uint8_t *buf,
			     size_t size, struct kpackx_error *why);

/* The table of objects, as the archive has it; the caller frees *OUT.  And at most its bytes. */
kpack_error_t kp_share_objects(const struct kp_share *s, uint8_t **out, size_t *size,
			       struct kpackx_error *why);
uint64_t kp_share_objects_bound(const struct kp_share *s);

/*
 * A rolling hash: of its 64 bits, bit k depends on the last k + 1 bytes.  Where it has a
 * chosen value is decided by the content alone.  The table is filled by kp_share_new.
 */
extern uint64_t kp_rolling_table[256];

static inline uint64_t kp_rolling_add(uint64_t hash, uint8_t byte)
{
	return (hash << 1) + kp_rolling_table[byte];
}

/* --- its frames: a dictionary, and the unique bytes in blocks (blocks.c) ------------------ */

/* A dictionary is at most this part of the unique bytes that it is chosen for. */
enum { KP_DICTIONARY_SHARE = 4 };

struct kp_blocks {
	uint64_t dictionary_size; /* 0: none */
	uint8_t *sizes;           /* u32 each: stored bytes of the frames */
	uint8_t *hashes;          /* u64 each: XXH3-64 of them */
	uint32_t n;
};

/* The blocks with which the unique bytes begin are those of another archive. */
struct kp_copied {
	const struct kp_shared *from; /* NULL: none; borrowed until finish */
	uint32_t *blocks;             /* their numbers there, ascending; owned */
	uint32_t n;
	uint64_t stored; /* bytes of these frames and the dictionary's */
};

/* --- the writer ---------------------------------------------------------------------------- */

/* An entry; all but arch and type is one allocation: key, NUL, metadata, more. */
struct kp_listed {
	char *key;
	const char *arch, *type;       /* borrowed from the writer's strings */
	struct kp_span metadata, more; /* more: unknown pairs */
	uint64_t size;
	uint32_t ordinal;
	uint32_t n_more;
	uint32_t hash; /* of key and arch */
};

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

	struct {
		struct kp_listed
			*items; /* sorted bytewise by key, then arch, at the end */
		size_t n, cap;
		struct kp_slots
			slots;  /* of the items by key and arch, until they are sorted */
		uint64_t bytes; /* most bytes of them in the table of contents */
		struct kp_string_table strings; /* architectures and types, owned */
		struct kp_string_chain arch_chain, type_chain;
	} entries;

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
 * Of a shared archive whose unique bytes are flushed: append the frames that are copied, with
 * their archive's dictionary, and compress the rest in NS nanoseconds of CPU time; 0: at its level.
 * The frames do not depend on the number of threads; memory may allow fewer threads.  The caller
 * frees the tables of OUT, after a failure, too.
 * IO_ERROR; OUT_OF_MEMORY; INVALID_ARGUMENT: a level that zstd does not have.
 */
kpack_error_t kp_writer_pack_blocks(struct kp_writer *archive, uint64_t ns,
				    struct kp_blocks *out, struct kpackx_error *why);

/*
 * Append the table of contents; the entries must be sorted.  BLOCKS: of a shared archive.
 */
kpack_error_t kp_writer_pack_toc(struct kp_writer *w, const struct kp_blocks *blocks,
				 struct kpackx_error *why);

#endif
