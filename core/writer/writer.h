/* SPDX-License-Identifier: MIT */
/*
 * Creating one archive.  Frames are written as they come; only the table of contents
 * stays in memory and is written at the end, sorted by key, then arch.  The file
 * appears under its name when it is published, whole or not at all.  Equal
 * calls give equal bytes.
 */
#ifndef KP_CORE_WRITER_WRITER_H
#define KP_CORE_WRITER_WRITER_H

#include "core/archive/archive.h"
#include "core/base/errors.h"
#include "core/base/span.h"

struct kp_writer;

struct kp_writer_options {
	kpack_compression_t scheme;
	const char *group;  /* group_name */
	const char *family; /* gfx_arch_family; NULL: the only arch, or the group */
	bool keep;    /* what stands under the name is not replaced: see kp_outfile */
	bool lazy;    /* nothing is flushed: for what can be made again */
	bool unnamed; /* it will not be published: see kp_writer_reopen */
	/* What the table says besides: one MessagePack pair each.  Borrowed until finished. */
	const struct kp_span *more;
	size_t n_more;
};

/* Begin NAME in directory DIR. */
kpack_error_t kp_writer_open(const char *dir, const char *name,
			     const struct kp_writer_options *options,
			     struct kp_writer **out, struct kpackx_error *why);

/*
 * Store one object's bytes as they go into the blob (a zstd frame, or several for a chunked
 * entry; plain bytes for scheme none) and give its ordinal.
 * IO_ERROR; INVALID_ARGUMENT: the archive would pass KP_ZSTD_BLOB_MAX or KP_FRAMES_MAX.
 */
kpack_error_t kp_writer_add_stored(struct kp_writer *w, struct kp_span stored,
				   uint32_t *ordinal, struct kpackx_error *why);

/*
 * Store COUNT objects of the archive FROM, from its ordinal FIRST on, as they are stored there:
 * in long runs, inside the kernel where the file systems can, without looking at each.  They
 * get ordinals that follow one another; *ORDINAL is the first.
 * INVALID_ARGUMENT: of another scheme, or as for kp_writer_add_stored; INVALID_FORMAT: a length
 * word is not what FROM's frame index says; IO_ERROR.  Afterwards nothing else works.
 */
kpack_error_t kp_writer_add_run(struct kp_writer *w, const struct kpack_archive *from,
				uint32_t first, uint32_t count, uint32_t *ordinal,
				struct kpackx_error *why);

/* Read back the stored bytes of an ordinal: their size, then the bytes. */
uint64_t kp_writer_stored_size(const struct kp_writer *w, uint32_t ordinal);
kpack_error_t kp_writer_read_stored(struct kp_writer *w, uint32_t ordinal, void *buf,
				    struct kpackx_error *why);

/* What an entry says besides key and arch.  Everything is copied. */
struct kp_writer_entry {
	struct kp_span type;
	uint32_t ordinal;
	uint64_t size;           /* decoded bytes */
	struct kp_span metadata; /* one MessagePack map, or empty */
	struct kp_more more;     /* what it says that is not known */
};

/*
 * May KEY be added for ARCH, not having been added before?  All are proper names; the ordinal
 * may be unknown yet.  INVALID_ARGUMENT: it was added, or more than readers accept.
 */
kpack_error_t kp_writer_check_entry(const struct kp_writer *w, struct kp_span key,
				    struct kp_span arch,
				    const struct kp_writer_entry *entry,
				    struct kpackx_error *why);

/*
 * Add KEY for ARCH; what was added for the same ordinal before is replaced.
 * INVALID_ARGUMENT: not UTF-8 without control bytes, an ordinal that is not stored, added
 * before with another ordinal, more different architectures and types than readers accept.
 */
kpack_error_t kp_writer_add_entry(struct kp_writer *w, struct kp_span key,
				  struct kp_span arch,
				  const struct kp_writer_entry *entry,
				  struct kpackx_error *why);

uint64_t kp_writer_blob_size(const struct kp_writer *w);
uint32_t kp_writer_frame_count(const struct kp_writer *w);
size_t kp_writer_entry_count(const struct kp_writer *w);

/*
 * Write the table of contents and the header and flush to disk; not visible yet.
 * INVALID_ARGUMENT: the table is larger than readers accept.  Nothing can be added any more.
 */
kpack_error_t kp_writer_finish(struct kp_writer *w, struct kpackx_error *why);
/*
 * Read the finished archive, which may have no name, and never get one: *OUT stays when W is
 * closed.  NAME is that in messages.  Errors of kp_archive_open.
 */
kpack_error_t kp_writer_reopen(const struct kp_writer *w, const char *name,
			       struct kpack_archive **out, struct kpackx_error *why);
/* Give the finished archive its name. */
kpack_error_t kp_writer_publish(struct kp_writer *w, struct kpackx_error *why);
/* Free; what was not published leaves nothing.  NULL is fine. */
void kp_writer_close(struct kp_writer *w);

#endif
