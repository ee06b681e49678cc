/* SPDX-License-Identifier: MIT */
/*
 * ar archives.  Reads GNU and BSD archives; writes GNU archives, byte for byte as LLVM's
 * tools write deterministic ones.
 */
#ifndef KP_CORE_FORMAT_AR_ARCHIVE_H
#define KP_CORE_FORMAT_AR_ARCHIVE_H

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/sink.h"
#include "core/base/span.h"

/* A member, as stored; symbol indexes and name tables do not count as members. */
struct kp_ar_member {
	char *name;      /* thin archive: a path relative to the archive's directory */
	uint64_t header; /* offset of its header */
	uint64_t offset; /* of its bytes; thin archive: 0 */
	uint64_t size;
};

struct kp_ar {
	struct kp_ar_member *items; /* in the order they are stored */
	size_t count;
	bool thin;    /* members are other files */
	bool aligned; /* the bytes of every member begin at multiples of 8: Darwin's */
};

/* Line feeds that follow the SIZE bytes that replace those of member I, so that this stays. */
static inline unsigned kp_ar_padding(const struct kp_ar *ar, size_t i, uint64_t size)
{
	return ar->aligned ? (unsigned)(ar->items[i].size - size) & 7 : 0;
}

/* True if HEAD is the beginning of an archive, thin or not. */
bool kp_ar_probe(struct kp_span head);

/*
 * Read the headers of all members of the archive SRC.
 * NOT_IMPLEMENTED: a thin archive with a member of another archive.
 * INVALID_FORMAT: SRC is not an archive, or a header or a name passes its end.  On
 * failure OUT is empty.
 */
kpack_error_t kp_ar_read(const struct kp_source *src, struct kp_ar *out,
			 struct kpackx_error *why);
void kp_ar_fini(struct kp_ar *ar);

/*
 * An archive with other bytes in some members.  WRITE writes the bytes of MEMBER to OUT at
 * AT, and sets *SIZE to their number; or sets *SAME, so that the member's bytes are copied.
 */
struct kp_ar_edit {
	kpack_error_t (*write)(void *arg, size_t member, struct kp_outfile *out,
			       uint64_t at, uint64_t *size, bool *same,
			       struct kpackx_error *why);
	void *arg;
};

/*
 * Write the archive SRC, whose members are AR, to OUT, which is empty, with the changes of
 * EDIT.  Everything else stays: the members' order, headers and names, and the index of
 * symbols, whose offsets follow the members.
 * NOT_IMPLEMENTED: a thin archive; an index that is neither GNU's nor BSD's.  INVALID_FORMAT:
 * the index has offsets that are no member's.  Errors of WRITE.
 */
kpack_error_t kp_ar_rewrite(const struct kp_source *src, const struct kp_ar *ar,
			    const struct kp_ar_edit *edit, struct kp_outfile *out,
			    struct kpackx_error *why);

/* A member to write. */
struct kp_ar_input {
	struct kp_span name;
	struct kp_source bytes;
};

/*
 * Write N members as an archive, in their order: owner 0, time 0, mode 644.  If any
 * member can define symbols, the archive gets an index of global symbols.  They come from
 * little-endian ELF64 members and from bitcode, through the symbol table that compilers
 * append to it (LLVM's tools read the module itself; the names and their order are the
 * same).  Other members, and members that cannot be read, have no symbols.  Without
 * members the archive has 8 bytes.
 * INVALID_ARGUMENT: a name is empty or has a line feed; a member's size does not fit into
 * its header.
 */
kpack_error_t kp_ar_write(const struct kp_ar_input *members, size_t n,
			  struct kp_sink *sink, struct kpackx_error *why);

#endif
