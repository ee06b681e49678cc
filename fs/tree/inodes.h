/* SPDX-License-Identifier: MIT */
/*
 * What inode numbers stand for: nodes of the current edition, and retired inodes, which the
 * kernel still holds though the edition does not have them.  Counts look-ups, so that a
 * retired inode, and the archive behind it, goes when the kernel has forgotten it.
 *
 * Who answers a request from an edition stands between inodes_enter and inodes_leave until
 * the answer was sent: when inodes_swap returns, no answer from the old edition
 * can come any more, and what it made the kernel believe can be taken back.
 */
#ifndef FS_TREE_INODES_H
#define FS_TREE_INODES_H

#include "edition.h"

struct inodes;

/* What an inode number stands for. */
struct inode {
	bool retired; /* it is of an edition that was */
	struct tree_node
		node; /* of the current edition; retired: without a meaning but is_dir */
	struct stat st;
};

/* O is in no edition any more, nor has it an inode.  Called without locks. */
typedef void inodes_idle(void *user, const struct origin *o);

/* Takes the reference of FIRST.  NULL: no memory. */
struct inodes *inodes_new(struct edition *first, inodes_idle *idle, void *user);
void inodes_free(struct inodes *in); /* NULL is fine */

/* The current edition, which stays the current one until inodes_leave. */
const struct edition *inodes_enter(struct inodes *in);
void inodes_leave(struct inodes *in);

/* A reference to the current edition.  Not between enter and leave. */
struct edition *inodes_edition(struct inodes *in);

/* Inside: what INO stands for, with its attributes; false: nothing. */
bool inodes_find(struct inodes *in, uint64_t ino, struct inode *out);

/* Inside: what is read of the file INO, with a reference for the caller; 0, ESTALE or EISDIR. */
int inodes_file(struct inodes *in, uint64_t ino, struct origin_entry *out);

/* Inside: the kernel gets INO once more; or did not get it, after all. */
void inodes_count(struct inodes *in, uint64_t ino);
void inodes_uncount(struct inodes *in, uint64_t ino);

/* Inside: positions in directories for telldir, and back; see positions.h. */
uint64_t inodes_tell(const struct inodes *in, uint64_t index);
uint64_t inodes_position(const struct inodes *in, uint64_t dir, uint64_t told);

/* Not inside: the kernel takes N look-ups of INO back. */
void inodes_forget(struct inodes *in, uint64_t ino, uint64_t n);

/* For edition_new: numbers of the current edition and of retired inodes. */
bool inodes_taken(void *in, uint64_t ino, const struct kp_view *view,
		  struct tree_node node);

/* A fact about a swap that the kernel must learn, in this order. */
struct change {
	enum {
		CHANGED_NAME,  /* PARENT's NAME stands for something else, or nothing */
		CHANGED_NAMES, /* the listing of INO */
		CHANGED_STAT,  /* the attributes of INO */
	} what;
	uint64_t ino; /* of the directory, or of what changed */
	char name[256];
};

/*
 * Make NEXT the current edition, taking over the caller's reference. TELL is called, not
 * inside, for each change of something that the kernel may have cached; NAMES is the
 * number of changed names. One thread at a time. false: no memory, nothing changed;
 * logged.
 */
bool inodes_swap(struct inodes *in, struct edition *next,
		 void (*tell)(void *user, const struct change *c), void *user,
		 size_t *names);

/* How many inodes are retired, and how many archives they are of. */
void inodes_retired(struct inodes *in, size_t *inodes, size_t *archives);

#endif
