/* SPDX-License-Identifier: MIT */
/*
 * An edition is the content of the mount between two changes of its sources: the
 * archives, their union, and the inode numbers of the union.  Immutable after
 * edition_new, and shared: releasing the last reference frees it.
 */
#ifndef FS_TREE_EDITION_H
#define FS_TREE_EDITION_H

#include <stdatomic.h>
#include "core/target/choice.h"
#include "origin.h"
#include "tree.h"

/* An archive that is not served, and why. */
struct refused {
	char *path;
	char *text;
};

/* The archives of an edition. */
struct holdings {
	struct origin **origins; /* in order of precedence; owns a reference to each */
	size_t count, cap;
	struct refused *refused;
	size_t n_refused, cap_refused;
	/* Attributes of the first source, for directories when there is no archive. */
	struct stat look;
};

bool holdings_add(struct holdings *h, struct origin *o); /* takes the reference */
bool holdings_refuse(struct holdings *h, const char *path, const char *text);
void holdings_fini(struct holdings *h);

struct edition {
	atomic_uint refs;
	struct holdings holdings;
	struct kpack_archive **archives; /* the archives of the origins, for the view */
	uint64_t bytes;                  /* sum of the archives' sizes */
	bool bundles, shared;            /* as in the options */
	struct kp_view *view;
	struct tree *tree;
	struct timespec made;
};

/*
 * The conflicts that were logged, so that each is logged once for as long as it exists,
 * however often the sources are scanned.
 */
struct logged_conflicts {
	/* of the new edition; of the last one, sorted */
	struct conflict_hash {
		uint64_t value;
	} * now, *before;
	size_t n_now, now_cap, n_before;
	size_t more; /* conflicts of the last edition whose text is unknown */
};

void logged_conflicts_fini(struct logged_conflicts *w);

/* Options of all editions of a mount; all pointers are borrowed. */
struct edition_options {
	const struct kp_choice *arches;
	const char *subdir; /* clean; NULL: the whole tree */
	struct tree_options look;
	bool shared;  /* users other than the one who mounts have access */
	bool bundles; /* show bundles, too */
	struct logged_conflicts *warned; /* conflicts of the last edition */
	/* The first edition: a subdir that no archive has is a failure (later, it is an
	 * empty directory), and chosen architectures that no archive has are warned
	 * about. */
	bool first;
};

/*
 * Make an edition of HOLDINGS, whose content is taken over even on failure.  TAKEN is for
 * tree_new.  NULL: it failed; logged.
 */
struct edition *edition_new(struct holdings *holdings, const struct edition_options *o,
			    const struct tree_taken *taken);

struct edition *edition_ref(struct edition *e);
void edition_unref(struct edition *e); /* NULL is fine */

/*
 * The content of number FILE of the edition's view, which the caller releases with
 * file_content_unref.  false: no memory.
 */
bool edition_file(const struct edition *e, uint32_t file, struct file_content *out);

/* Add LIST (kp_choice_add).  false: LIST is wrong, or no memory; logged. */
bool arches_add(struct kp_choice *s, const char *list);

/*
 * If "auto" was added and "all" was not, add the GPUs of TOPOLOGY (see kp_gpus_read).
 * Logs a warning when it has no GPU, and for each part that makes no sense.  false: no
 * memory.
 */
bool arches_find(struct kp_choice *s, const char *topology);

/* The target IDs, with SEPARATORs, or "all"; NULL: there is none, or no memory. */
char *arches_line_new(const struct kp_choice *s, const char *separator);

#endif
