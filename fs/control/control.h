/* SPDX-License-Identifier: MIT */
/*
 * What the mount knows about itself, as files of the directory .kpackfs.  Knows no FUSE.
 *
 * Each look-up of a file makes a snapshot that never changes, with its own inode
 * number; it is freed when the kernel has forgotten all look-ups of it.
 * Thread-safe.
 */
#ifndef FS_CONTROL_CONTROL_H
#define FS_CONTROL_CONTROL_H

#include <sys/stat.h>
#include "fs/tree/arch_filter.h"
#include "fs/content/content.h"
#include "fs/tree/inodes.h"

#define CONTROL_DIR 2 /* its inode number */
/*
 * Listings and attributes show a file's number by its position, the same for all its
 * snapshots: a program that stats a file and then opens it sees one file.
 */
#define CONTROL_LISTED 3
/* The first number that stands for a snapshot in requests. */
#define CONTROL_FIRST 32
#define CONTROL_END (UINT64_C(1) << 32)

struct control;

/* The subject of the files. */
struct control_subject {
	const struct arches *arches;
	const char *subdir;    /* clean; NULL: the whole tree */
	struct inodes *inodes; /* the root gives owner and read bits */
	struct content *content;
	content_answer *answer; /* to control_read */
	/* Make the kernel forget a name of the directory; with USER.  NULL: there is none. */
	void (*take_back)(void *user, const char *name);
	void *user;
};

/* What ABOUT points to is borrowed.  OUT_OF_MEMORY. */
kpack_error_t control_new(const struct control_subject *about, struct control **out,
			  struct kpackx_error *why);
/* Reads that wait are answered with an error; none may begin.  NULL is fine. */
void control_free(struct control *c);

/* What is shown is another edition now. */
void control_renew(struct control *c);

/* Names in the directory, by position; NULL after the last. */
const char *control_name(size_t position);

/* Does INO stand for the directory or a snapshot that lives? */
bool control_stat(struct control *c, uint64_t ino, struct stat *out);

/* Make a snapshot of file NAME, INO, and count one look-up of it.  0 or ENOENT, ENOMEM. */
int control_lookup(struct control *c, struct kp_span name, uint64_t *ino,
		   struct stat *out);

/* Count another look-up of a snapshot; false when there is none. */
bool control_again(struct control *c, uint64_t ino, struct stat *out);

/* Take N look-ups back; the last frees the snapshot. */
void control_forget(struct control *c, uint64_t ino, uint64_t n);

/*
 * Read up to LEN bytes of a snapshot at OFF for TOKEN, which is answered once, now or later, by
 * any thread; false, and no answer, when there is no such snapshot.
 */
bool control_read(struct control *c, uint64_t ino, uint64_t off, size_t len, void *token);

#endif
