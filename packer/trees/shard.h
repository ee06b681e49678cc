/* SPDX-License-Identifier: MIT */
/*
 * A run that several machines share.  Each packs its part, a tree of its own; merged, the parts
 * are what one run would have written, bit by bit.
 *
 * That needs no record of what a part stored, because nothing in the result depends on who
 * packed what: the order of an archive depends on its keys (core/writer/writer.h), the volume
 * of a binary on the sizes of the plan (archive_set_place), which every shard makes whole, and
 * equal content gives equal frames, of which one is kept.
 *
 * A part has one line more than such a tree, its file SHARD_LINE, which says which part of which
 * run it is:
 *
 *   kpack part 2/3 level 7 run DIGEST files DIGEST
 *
 * The digest of the run covers INPUT, the options and the version, that of the files their
 * names, types, modes, sizes and times in the part.  Until all is written, the line is "kpack part
 * unfinished".
 */
#ifndef PACKER_TREES_SHARD_H
#define PACKER_TREES_SHARD_H

#include "packer/pack/run.h"

#define SHARD_LINE ".kpack-part"

/*
 * As packing_run: run P, whose arguments have a shard, as that shard.  If OUTPUT is the finished
 * part of this very run already, *FINISHED is set and nothing written.
 */
int shard_pack(struct packing *p, bool *finished);

struct shard_merge_options {
	char *const *parts; /* in any order; a part may occur twice */
	size_t n_parts;
	const char *out; /* becomes what OUTPUT would be without --shard */
	bool quiet, json;
};

/*
 * Check that the parts are whole and belong together, then write OUT: archives first, then the
 * binaries that name them.  The parts stay as they are; another run completes what an
 * interrupted one left.  Returns an exit status, after reporting what went wrong.
 */
int shard_merge(const struct shard_merge_options *options);

/* --- the line of a part, as packing writes and merging reads it ------------------------ */

#define SHARD_DIGEST 33 /* 16 bytes in hexadecimal digits, and a NUL */
#define SHARD_LINE_MAX 200

struct shard_line {
	enum {
		SHARD_NONE, /* there is no line */
		SHARD_UNFINISHED,
		SHARD_FINISHED,
	} state;
	struct shard shard;
	int level;
	char run[SHARD_DIGEST], files[SHARD_DIGEST];
	uid_t owner;
	struct timespec written;
};

/* Read the line of DIR; a line of another form counts as unfinished. */
kpack_error_t shard_line_read(const char *dir, struct shard_line *out,
			      struct kpackx_error *why);

/*
 * Digest what can be seen of the files in DIR without reading them, so that a copy without times
 * or modes, or of which something is missing, is not taken for the part.
 */
kpack_error_t shard_digest_files(const char *dir, char out[SHARD_DIGEST],
				 struct kpackx_error *why);

#endif
