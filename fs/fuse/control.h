/* SPDX-License-Identifier: MIT */
/*
 * The directory .kpackfs: its files report on the mount itself.  Knows no FUSE.
 *
 * The kernel may open files without asking (ops.c), so a look-up makes the text: a snapshot
 * that never changes, with its own inode number, which is freed when the kernel has forgotten
 * all its look-ups.  A text that depends on the edition alone is the same snapshot for all
 * who look it up as long as one of them holds it.
 *
 * One file has no text: a read of `barrier` is answered when the mount shows everything that
 * was so before the read began.  For that the supervisor looks at the sources, and an answer
 * comes back behind all that it found.  Thread-safe.
 */
#ifndef FS_FUSE_CONTROL_H
#define FS_FUSE_CONTROL_H

#include <sys/stat.h>
#include "fs/content/content.h"
#include "fs/tree/inodes.h"

#define CONTROL_DIR 2 /* its inode number */
/*
 * In listings and attributes, the inode number of the file at position N is
 * CONTROL_LISTED + N, the same for all its snapshots: a program that stats a file and
 * then opens it sees one file.
 */
#define CONTROL_LISTED 3
/* In requests, the first inode number of a snapshot, and the end of these numbers. */
#define CONTROL_FIRST 32
#define CONTROL_END (UINT64_C(1) << 32)

struct control;

/* The subject of the files; all pointers are borrowed. */
struct control_subject {
	const struct kp_choice *arches;
	const char *subdir;         /* clean; NULL: the whole tree */
	const char *const *sandbox; /* names of the sandbox's parts, then NULL */
	struct inodes *inodes;      /* the root gives owner and read bits */
	struct content *content;
	content_answer *answer; /* called with the result of control_read */
	/*
	 * Have the supervisor look at the sources; never blocks.  false: it cannot.  Else
	 * control_seen follows.
	 */
	bool (*ask)(void *user);
	void *user;
};

/* OUT_OF_MEMORY is the only error. */
kpack_error_t control_new(const struct control_subject *about, struct control **out,
			  struct kpackx_error *why);
/* Answers waiting reads with an error; no read may begin.  NULL is fine. */
void control_free(struct control *c);

/* Call it when the mount shows another edition. */
void control_renew(struct control *c);

/*
 * The look that `ask` asked for is done, and all that it found is shown; not FINE: it
 * failed.
 */
void control_seen(struct control *c, bool fine);

/* Nobody looks at the sources any more. */
void control_unwatched(struct control *c);

/* The name at POSITION in the directory; NULL after the last. */
const char *control_name(size_t position);

/*
 * Find or make a snapshot of the file NAME, about the edition E, and count a look-up of it.
 * 0, ENOENT or ENOMEM.
 */
int control_lookup(struct control *c, const struct edition *e, struct kp_span name,
		   uint64_t *ino, struct stat *out);

/*
 * The attributes of INO, of which LOOKUPS more are counted; false: it is neither the
 * directory nor a snapshot that exists.
 */
bool control_find(struct control *c, uint64_t ino, uint64_t lookups, struct stat *out);

/* The kernel forgets N look-ups of a snapshot; without look-ups it is freed. */
void control_forget(struct control *c, uint64_t ino, uint64_t n);

/*
 * Read up to LEN bytes of a snapshot at OFF.  The callback is called once with TOKEN, now
 * or later, by any thread.  false: the snapshot does not exist, and there is no answer.
 */
bool control_read(struct control *c, uint64_t ino, uint64_t off, size_t len, void *token);

#endif
