/* SPDX-License-Identifier: MIT */
/*
 * The state of a tree between runs of kpack apply: the files that it has looked at, and its
 * changes.  If a state is lost or damaged, the next run looks at all files again, and does
 * not know the earlier changes.
 */
#ifndef PACKER_POLICY_STATE_H
#define PACKER_POLICY_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/hash.h"
#include "core/base/span.h"
#include "policy.h"

#define STATE_DIR "/var/lib/kpack"

enum state_kind {
	STATE_THINNED,   /* it has less code, or none */
	STATE_CONVERTED, /* archives have its code */
	STATE_REMOVED,   /* a file of a kernel database for other GPUs */
	STATE_PACKED,    /* a file of a kernel database that archives have */
	STATE_KINDS,
};

/* A file that was changed, or is about to be. */
struct state_file {
	enum state_kind kind;
	char *path; /* below the tree */
	char *has;  /* the targets of its code that stays, in archives too */
	char *lost; /* the targets of its code that was removed */
	bool link;  /* a further path of a changed file, whose bytes are counted there */
	bool planned; /* a run wanted to change it, and has not said that it did */
	bool owned;   /* STATE_PACKED: a package had it in a run since it was packed */
	bool thinned; /* thin looked at it in this run; not stored */
	bool fresh;   /* this run changed it; not stored */
	uint64_t before, after; /* sizes */
	uint64_t ino,
		mtime; /* of the changed file, known by them; planned: before that */
};

struct state {
	char *tree, *arch; /* of the last run that was done; NULL: none */
	enum policy_action action;
	bool strip;              /* the same: without debugging information */
	int64_t when;            /* it ended; seconds since 1970 */
	bool sure;               /* the tree had code for ARCH */
	bool packed;             /* archives may have code of the tree */
	bool forgotten;          /* an earlier state was lost */
	enum policy_mount mount; /* how archives were mounted */
	char **places;           /* and where */
	size_t n_places, places_cap;
	struct state_file *files; /* by path, bytewise; each path once */
	size_t n_files, files_cap;
	/*
	 * The targets of the code of each part of the tree, by its name: a binary's path up
	 * to ".so", as the next version has it, or the directory of a kernel database, which
	 * ends with a slash.  NULL: none.
	 */
	json_t *parts;
	struct kp_hash *seen; /* files that need no look, sorted */
	size_t n_seen;
};

/*
 * Parse DATA, the bytes of a state, into OUT, which is zeroed and which the caller finishes
 * in any case.  INVALID_FORMAT: they are damaged.
 */
kpack_error_t state_parse(struct kp_span data, struct state *out,
			  struct kpackx_error *why);
/* The bytes of a state, on the heap. */
uint8_t *state_format(const struct state *s, size_t *size);

/* Read the file PATH.  FILE_NOT_FOUND: there is none. */
kpack_error_t state_read(const char *path, struct state *out, struct kpackx_error *why);
kpack_error_t state_write(const char *path, const struct state *s,
			  struct kpackx_error *why);
void state_fini(struct state *s);

/* The file PATH, or NULL. */
struct state_file *state_find_file(const struct state *s, const char *path);
/* Add FILE, whose texts the state takes over, in place of one with the same path. */
void state_put_file(struct state *s, const struct state_file *file);
/* Remove the files whose path is NULL. */
void state_drop_files(struct state *s);
void state_add_place(struct state *s, const char *path);
void state_clear_places(struct state *s);

/* A time as the state has it: nanoseconds since 1970. */
static inline uint64_t state_time(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/* Find the hash HASH in an array of N items of SIZE bytes, sorted by the hash in front. */
void *state_find_hash(const struct kp_hash *hash, const void *items, size_t n,
		      size_t size);
void state_sort_hashes(void *items, size_t n, size_t size);

/* --- lists of GPUs and targets, separated by commas; NULL: empty ---------------------- */

/* Step to the next name of *LIST, on the heap; NULL: there is none. */
char *list_next(const char **list);
bool list_has(const char *list, const char *name);
/* Add NAME at the end of *LIST, unless it is there. */
void list_add(char **list, const char *name);

#endif
