/* SPDX-License-Identifier: MIT */
/*
 * ar archives: those of GNU and of BSD are read, GNU's is written, byte by byte as LLVM's
 * tools write deterministic ones.
 */
#ifndef KP_CORE_FORMAT_AR_ARCHIVE_H
#define KP_CORE_FORMAT_AR_ARCHIVE_H

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/sink.h"
#include "core/base/span.h"

/* A member, as it stands in the archive; symbol indexes and name tables are none. */
struct kp_ar_member {
	char *name;      /* of a thin archive: a path, from the archive's directory on */
	uint64_t offset; /* of its bytes; of a thin archive: 0 */
	uint64_t size;
};

struct kp_ar {
	struct kp_ar_member *items; /* in the order they are stored */
	size_t count;
	bool thin; /* members are other files */
};

/* Does an archive begin with HEAD?  Thin ones too. */
bool kp_ar_probe(struct kp_span head);

/*
 * Read the headers of the archive that is SRC, to its end.
 * NOT_IMPLEMENTED: a thin archive with a member of another archive.
 * INVALID_FORMAT: no archive; a header or a name that does not fit.  On failure OUT is empty.
 */
kpack_error_t kp_ar_read(const struct kp_source *src, struct kp_ar *out,
			 struct kpackx_error *why);
/* The same, but on failure OUT keeps the members before what does not fit; free it, too. */
kpack_error_t kp_ar_salvage(const struct kp_source *src, struct kp_ar *out,
			    struct kpackx_error *why);
void kp_ar_fini(struct kp_ar *ar);

/* A member to write. */
struct kp_ar_input {
	struct kp_span name;
	struct kp_source bytes;
};

/*
 * Write N members as an archive, as they are ordered: owner 0, time 0, mode 644.  There is an
 * index of the global symbols that members define, when any could: of little-endian
 * ELF64 members, and of bitcode by the symbol table that compilers append to it (LLVM's tools
 * read the module itself; the names and their order are the same).  Members that are neither,
 * or cannot be read, have no symbols.  No members make an archive of 8 bytes.
 * INVALID_ARGUMENT: a name that is empty or has a line feed, a member of more bytes than its header can tell.
 */
kpack_error_t kp_ar_write(const struct kp_ar_input *members, size_t n,
			  struct kp_sink *sink, struct kpackx_error *why);

#endif
