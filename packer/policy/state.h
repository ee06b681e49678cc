/* SPDX-License-Identifier: MIT */
/*
 * The state of a tree between runs of kpack apply: the files that it has looked at, and its
 * changes.  If a state is lost or damaged, the next run looks at all files again, and does
 * not know the earlier changes.
 */
#ifndef PACKER_POLICY_STATE_H
#define PACKER_POLICY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/hash.h"
#include "core/base/span.h"

#define STATE_DIR "/var/lib/kpack"

enum state_kind {
	STATE_CHANGED, /* it has less code, or none */
	STATE_REMOVED, /* a file of a kernel database for other GPUs */
	STATE_PACKED,  /* a file of a kernel database that archives have */
	STATE_LINK, /* a further path of a changed file, whose bytes are counted there */
};

/* A file that was changed, or is about to be. */
struct state_file {
	enum state_kind kind;
	char *path;   /* below the tree */
	char *arch;   /* the GPUs whose code was to stay */
	bool planned; /* a run wanted to change it, and has not said that it did */
	bool thinned; /* thin looked at it in this run; not stored */
	bool owned;   /* STATE_PACKED: a package had it in a run since it was packed */
	uint64_t before, after; /* sizes */
	uint64_t ino; /* of the changed file; with its mtime it is known again */
	int64_t seconds, nanoseconds; /* mtime; planned: that of the file before */
};

/* A part of the tree that has code: a binary, or a directory of a kernel database. */
struct state_part {
	char *name; /* below the tree; not always a path: see parts.h */
	char *gpus; /* GPUs of the policy that it had code for; "-": none */
};

struct state {
	char *tree, *arch;  /* of the last run that was done; NULL: none */
	const char *action; /* the same; static text */
	bool strip;         /* the same: without debugging information */
	int64_t when;       /* it ended; seconds since 1970 */
	bool sure;          /* the tree had code for ARCH */
	bool forgotten;     /* an earlier state was lost */
	char **places;      /* where archives were mounted */
	size_t n_places, places_cap;
	struct state_file *files; /* by path, bytewise; each path once */
	size_t n_files, files_cap;
	struct state_part *parts; /* by name, bytewise; each name once */
	size_t n_parts, parts_cap;
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

/* Add FILE, whose texts the state takes over, in place of one with the same path. */
void state_put_file(struct state *s, const struct state_file *file);
/* The file PATH, or NULL. */
struct state_file *state_find_file(const struct state *s, const char *path);
/* Remove the files whose path is NULL. */
void state_drop_files(struct state *s);
/* The GPUs of the part NAME, or NULL. */
const char *state_find_part(const struct state *s, const char *name);
/* Replace all parts by N PARTS in order, which the state takes over. */
void state_set_parts(struct state *s, struct state_part *parts, size_t n);
void state_add_place(struct state *s, const char *path);
void state_clear_places(struct state *s);

/* The hash by which an unchanged file is recognised; PATH is below the tree. */
struct kp_hash state_hash(const char *path, uint64_t ino, uint64_t size,
			  const struct timespec *mtime, const struct timespec *ctime,
			  mode_t mode);
bool state_has_seen(const struct state *s, const struct kp_hash *hash);
/* Sort N hashes. */
void state_sort(struct kp_hash *hashes, size_t n);

#endif
