/* SPDX-License-Identifier: MIT */
/*
 * What the mount shows between two changes of its sources: the archives, their union,
 * and its inode numbers.  Immutable after edition_new, and shared: the last reference frees
 * it.
 */
#ifndef FS_TREE_EDITION_H
#define FS_TREE_EDITION_H

#include <stdatomic.h>
#include "arch_filter.h"
#include "origin.h"
#include "tree.h"

/* An archive that is not served, and why. */
struct refused {
	char *path;
	char *text;
};

/* The archives an edition is made of. */
struct holdings {
	struct origin **origins; /* in order of precedence, with a reference each */
	size_t count;
	struct refused *refused;
	size_t n_refused;
	/* Attributes of the first source, for directories that no archive has. */
	struct stat look;
};

bool holdings_add(struct holdings *h, struct origin *o); /* takes the reference */
bool holdings_refuse(struct holdings *h, const char *path, const char *text);
void holdings_fini(struct holdings *h);

struct edition {
	atomic_uint refs;
	struct holdings holdings;
	struct kpack_archive **archives; /* the origins', for the view */
	uint64_t bytes;                  /* sum of the archives' sizes */
	struct kp_view *view;
	struct tree *tree;
	struct timespec made;
};

/* How editions of a mount look, whatever its sources have: borrowed. */
struct edition_options {
	const struct arches *arches;
	const char *subdir; /* clean; NULL: the whole tree */
	struct tree_options look;
	struct logged_conflicts *warned; /* conflicts of the edition before; or NULL */
	/* A subdir that no archive has is a failure, else an empty directory; and chosen
	 * architectures that none has are warned of. */
	bool first;
};

/*
 * Takes what HOLDINGS has, in any case.  TAKEN is for tree_new.  NULL: what went wrong has
 * been logged.
 */
struct edition *edition_new(struct holdings *holdings,
			    const struct edition_options *options,
			    const struct tree_taken *taken);

struct edition *edition_ref(struct edition *e);
void edition_unref(struct edition *e); /* NULL is fine */

/* The archive and entry of a file of its view; borrowed. */
struct origin_entry edition_entry(const struct edition *e, uint32_t file);

#endif
