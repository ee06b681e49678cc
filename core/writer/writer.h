/* SPDX-License-Identifier: MIT */
/*
 * Creating one archive.  Frames are written when they are added; only the table of
 * contents stays in memory, and is written at the end, sorted by key, then arch.  The
 * new content of an object of a shared archive goes to a temporary file when it is added, and
 * is compressed at the end.
 * Publishing gives the complete file its name; until then nothing appears under that
 * name.  Equal calls give equal bytes.
 */
#ifndef KP_CORE_WRITER_WRITER_H
#define KP_CORE_WRITER_WRITER_H

#include "core/archive/archive.h"
#include "core/base/errors.h"
#include "core/base/span.h"

struct kp_shared;
struct kp_writer;

struct kp_writer_options {
	kpack_compression_t scheme;
	const char *group;  /* group_name */
	const char *family; /* gfx_arch_family; NULL: the only arch, or the group */
	int level; /* scheme zstd-shared: how to compress, and on how many threads */
	unsigned jobs;
	/* ... or, if not 0, how many seconds to spend on 10^9 bytes of objects (effort.h) */
	uint32_t effort;
	bool keep;    /* do not replace an existing file: see kp_outfile */
	bool lazy;    /* do not flush: for archives that can be recreated */
	bool unnamed; /* it will not be published: see kp_writer_reopen */
	/*
	 * Further pairs of the table, one MessagePack pair each.  Borrowed until finish.
	 */
	const struct kp_span *more;
	size_t n_more;
};

/*
 * Begin the archive NAME in directory DIR.  The caller frees *OUT with kp_writer_close.
 */
kpack_error_t kp_writer_open(const char *dir, const char *name,
			     const struct kp_writer_options *options,
			     struct kp_writer **out, struct kpackx_error *why);
/* As kp_writer_open, in the directory open at DIR_FD, which the writer takes over. */
kpack_error_t kp_writer_open_at(int dir_fd, const char *name,
				const struct kp_writer_options *options,
				struct kp_writer **out, struct kpackx_error *why);

/*
 * Store the encoded bytes of one object (a zstd frame, for a chunked entry with its table;
 * plain bytes for the schemes none and zstd-shared) in the blob; *ORDINAL becomes its
 * ordinal.
 * IO_ERROR; INVALID_ARGUMENT: the archive would exceed KP_ZSTD_BLOB_MAX or KP_FRAMES_MAX,
 * or a shared one KP_SHARED_OBJECTS_MAX.
 */
kpack_error_t kp_writer_add_stored(struct kp_writer *w, struct kp_span stored,
				   uint32_t *ordinal, struct kpackx_error *why);

/* As kp_writer_add_stored; a source that is not in memory is not for a shared archive. */
kpack_error_t kp_writer_add_source(struct kp_writer *w, const struct kp_source *stored,
				   uint32_t *ordinal, struct kpackx_error *why);

/*
 * Copy COUNT objects of the archive FROM, from its ordinal FIRST on, as they are stored
 * there: in long runs, inside the kernel if the file systems support that, without
 * decoding them.  They get consecutive ordinals; *ORDINAL is the first.
 * INVALID_ARGUMENT: FROM has another scheme, or zstd-shared, or as for kp_writer_add_stored;
 * INVALID_FORMAT: a length word contradicts FROM's frame index; IO_ERROR.  After a
 * failure every further call fails.
 */
kpack_error_t kp_writer_add_run(struct kp_writer *w, const struct kpack_archive *from,
				uint32_t first, uint32_t count, uint32_t *ordinal,
				struct kpackx_error *why);

/*
 * Begin a shared archive with COUNT OBJECTS, ordinals of FROM, which is
 * borrowed until W is finished; they get ordinals from 0 on.  OTHERS: about how many unique
 * bytes the objects that follow have; 0: none follow.  Blocks of FROM that have only bytes of
 * OBJECTS are copied as they are stored, with its dictionary; their other bytes are
 * compressed again, and are found in the objects that follow.
 * *DONE false: nothing is done, because FROM has blocks of another size than ours, because
 * less than three quarters of all bytes could be copied, because the dictionary has more
 * than half as many bytes as stay, or stored a 32nd of the blocks more than a new one would:
 * compressed together, they take less; or because it begins with KP_TRAINED_DICTIONARY, so
 * that no encoder can use it.
 * DECOMPRESSION_FAILED: the dictionary or a block is corrupt.  INVALID_ARGUMENT: W has
 * objects already, or is not shared, and as for kp_writer_add_stored; IO_ERROR.
 */
kpack_error_t kp_writer_add_blocks(struct kp_writer *w, const struct kp_shared *from,
				   const uint32_t *objects, uint32_t count,
				   uint64_t others, bool *done, struct kpackx_error *why);

/* The blocks of a shared archive: those that kp_writer_add_blocks copied, and the rest. */
struct kp_writer_blocks {
	uint64_t copied, stored; /* blocks that are copied; their stored bytes */
	uint64_t encoded;        /* blocks that are compressed */
};
struct kp_writer_blocks kp_writer_blocks(const struct kp_writer *w);

/* Read the bytes that were added for an ordinal back into BUF. */
kpack_error_t kp_writer_read_stored(struct kp_writer *w, uint32_t ordinal, void *buf,
				    struct kpackx_error *why);

/* Of an archive that is not shared: where the added bytes of an ordinal are in its file. */
kpack_error_t kp_writer_stored_source(struct kp_writer *w, uint32_t ordinal,
				      struct kp_source *out, struct kpackx_error *why);

/* The fields of an entry besides key and arch.  Everything is copied. */
struct kp_writer_entry {
	struct kp_span type;
	uint32_t ordinal;
	uint64_t size;           /* decoded bytes */
	struct kp_span metadata; /* one MessagePack map, or empty */
	struct kp_more more;     /* its unknown pairs */
};

/* Most bytes of an entry in the table of contents: names, numbers, MessagePack heads. */
uint64_t kp_writer_entry_bytes(struct kp_span key, struct kp_span arch,
			       const struct kp_writer_entry *entry);

/*
 * Check that KEY can be added for ARCH as a new entry.  All names must be valid; the
 * ordinal is not checked.  INVALID_ARGUMENT: the entry exists, or the archive would
 * exceed what readers accept.
 */
kpack_error_t kp_writer_check_entry(const struct kp_writer *w, struct kp_span key,
				    struct kp_span arch,
				    const struct kp_writer_entry *entry,
				    struct kpackx_error *why);

/*
 * Add KEY for ARCH, or replace an earlier entry of this name that has the same ordinal.
 * INVALID_ARGUMENT: a name is not UTF-8 without control bytes; the ordinal is not stored;
 * an earlier entry of this name has another ordinal; more distinct architectures and
 * types than readers accept.
 */
kpack_error_t kp_writer_add_entry(struct kp_writer *w, struct kp_span key,
				  struct kp_span arch, const struct kp_writer_entry *from,
				  struct kpackx_error *why);

/*
 * The order of the objects of an archive depends on its keys alone, not on who wrote which
 * object first: by the path of the file or binary, then for code by index, architecture and
 * kind.  An object that several entries share is where the first of them is.  So parts that are
 * packed apart and merged give the bytes of one run.
 */
struct kp_rank {
	struct kp_span path, arch, kind, key;
	uint32_t index;
	bool named; /* false: no entry names the object, which comes last */
};
/* The rank that an entry gives its object; all spans are borrowed. */
struct kp_rank kp_rank_of(struct kp_span key, struct kp_span arch,
			  struct kp_span metadata);
int kp_rank_compare(const struct kp_rank *a, const struct kp_rank *b);

/* Whether the objects of W are in that order. */
kpack_error_t kp_writer_is_ordered(const struct kp_writer *w, bool *ordered,
				   struct kpackx_error *why);
/* The bytes of the blob; of a shared archive that is not finished, its unique bytes. */
uint64_t kp_writer_blob_size(const struct kp_writer *w);
uint32_t kp_writer_frame_count(const struct kp_writer *w);
size_t kp_writer_entry_count(const struct kp_writer *w);

/*
 * Write the table of contents and the header, and flush to disk; the file has no name
 * yet.  Afterwards nothing can be added.  INVALID_ARGUMENT: the table is larger than
 * readers accept.
 */
kpack_error_t kp_writer_finish(struct kp_writer *w, struct kpackx_error *why);
/*
 * Open the finished archive for reading, even if it has no name; *OUT stays valid after W
 * is closed.  NAME is its name in messages.  Errors of kp_archive_open.
 */
kpack_error_t kp_writer_reopen(const struct kp_writer *w, const char *name,
			       struct kpack_archive **out, struct kpackx_error *why);
/* Give the finished archive its name.  Errors of kp_outfile_publish. */
kpack_error_t kp_writer_publish(struct kp_writer *w, struct kpackx_error *why);
/* Free W; an unpublished archive leaves no file.  NULL is allowed. */
void kp_writer_close(struct kp_writer *w);

/* --- metadata ------------------------------------------------------------------------- */

/* Whether NAME is the name of a field of struct kp_meta. */
bool kp_metadata_is_field(const char *name);

/* Further pairs of a metadata map. */
struct kp_metadata_more {
	const struct kpackx_text *texts;
	size_t n_texts;
	struct kp_span pairs; /* names and values, as MessagePack */
	size_t n_pairs;
};

/*
 * Write the fields of META - spans without an address and zeros are omitted - and then
 * MORE, which may be NULL, as one MessagePack map.  The caller frees *MAP.
 * OUT_OF_MEMORY.
 */
kpack_error_t kp_metadata_write(const struct kp_meta *meta,
				const struct kp_metadata_more *more, uint8_t **map,
				size_t *size, struct kpackx_error *why);

#endif
