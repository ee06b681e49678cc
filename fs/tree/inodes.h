/* SPDX-License-Identifier: MIT */
/*
 * Maps inode numbers to nodes of the current edition, and to retired inodes, which the
 * kernel still holds though the edition does not have them.  Counts look-ups, so that a
 * retired inode, and the archive behind it, is freed when the kernel has forgotten the
 * inode.
 *
 * A thread that answers a request from an edition stays between inodes_enter and
 * inodes_leave until the answer is sent.  So when inodes_swap returns, no answer from the
 * old edition can follow, and everything that the kernel cached from it can be
 * invalidated.
 */
#ifndef FS_TREE_INODES_H
#define FS_TREE_INODES_H

#include "edition.h"

struct inodes;

/* A node of the current edition, or a retired inode. */
struct inode {
	bool retired; /* its edition is not the current one */
	struct tree_node
		node; /* of the current edition; retired: only ino and is_dir are valid */
	struct stat st;
};

/* Called without locks when neither the current edition nor a retired inode uses O. */
typedef void inodes_idle(void *user, const struct origin *o);

/* Takes the reference of FIRST.  NULL: no memory. */
struct inodes *inodes_new(struct edition *first, inodes_idle *idle, void *user);
void inodes_free(struct inodes *in); /* NULL is fine */

/* The current edition; it stays current until inodes_leave. */
const struct edition *inodes_enter(struct inodes *in);
void inodes_leave(struct inodes *in);

/* A new reference to the current edition.  Call it outside of enter and leave. */
struct edition *inodes_edition(struct inodes *in);

/* Inside: find the inode INO and its attributes; false: it does not exist. */
bool inodes_find(struct inodes *in, uint64_t ino, struct inode *out);

/*
 * Inside: the content of the file INO, with a reference for the caller, and zeros on
 * failure; 0, ESTALE, EISDIR or ENOMEM.
 */
int inodes_file(struct inodes *in, uint64_t ino, struct file_content *out);

/*
 * Inside: count a look-up of INO that the kernel gets; or undo it, as the answer was not
 * sent.
 */
void inodes_count(struct inodes *in, uint64_t ino);
void inodes_uncount(struct inodes *in, uint64_t ino);

/*
 * Inside: positions in directories that outlive their edition: a program that is in the middle
 * of a listing when names come and go sees every name that stays exactly once.  The position
 * of name number INDEX of a directory; and the present number of the name at POSITION in DIR,
 * or of the next, if that has gone.
 */
uint64_t inodes_encode_position(const struct inodes *in, uint64_t index);
uint64_t inodes_position(const struct inodes *in, uint64_t dir, uint64_t position);

/* Outside: the kernel forgets N look-ups of INO. */
void inodes_forget(struct inodes *in, uint64_t ino, uint64_t n);

/*
 * For struct tree_taken: the current edition or a retired inode has INO for another node.
 */
bool inodes_taken(void *in, uint64_t ino, const struct kp_view *view,
		  struct tree_node node);

/*
 * A change by a swap that the kernel must learn about; a directory's come in this order.
 */
struct change {
	enum {
		CHANGED_NAME,  /* NAME in directory INO: another node now, or gone */
		CHANGED_NAMES, /* the listing of INO */
		CHANGED_STAT,  /* the attributes of INO */
	} what;
	uint64_t ino;
	char name[256];
};

/*
 * Make NEXT the current edition, taking over the caller's reference.  NOTIFY is called,
 * outside of enter and leave, for each change of something that the kernel may have
 * cached; NAMES becomes the number of changed names.  For one thread at a time.  false:
 * no memory, nothing changed; logged.
 */
bool inodes_swap(struct inodes *in, struct edition *next,
		 void (*notify)(void *user, const struct change *c), void *user,
		 size_t *names);

/* The number of retired inodes, and of the archives that they keep open. */
void inodes_retired(struct inodes *in, size_t *inodes, size_t *archives);

#endif
