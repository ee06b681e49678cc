/* SPDX-License-Identifier: MIT */
/*
 * Join archives into one.  Frames are copied as they are stored, in the order of their keys
 * (struct kp_rank), so that neither the order of the sources nor theirs matters; frames with
 * equal bytes are stored once.  The blocks of the largest shared archive are copied first, as
 * far as all of their bytes stay (kp_writer_add_blocks); other objects are decoded, and
 * compressed again.  First everything is planned and checked, then written.  Equal calls give
 * equal bytes.
 *
 * merge_write does all of that; who wants to know the plan first, or to give the archive its
 * name later, takes the steps.
 */
#ifndef PACKER_ARCHIVES_MERGE_H
#define PACKER_ARCHIVES_MERGE_H

#include "core/archive/archive.h"
#include "core/writer/writer.h"
#include "packer/cli/report.h"

/* Everything is borrowed until the plan is freed. */
struct merge_source {
	const struct kpack_archive *archive;
	/* On conflict the higher `prefer` wins; a tie is an error. */
	unsigned prefer;
	bool checked; /* by the caller, with check_content: do not do it again */
};

/* An entry that two sources have differently. */
struct merge_clash {
	struct kp_span key, arch;
	const char *first, *second; /* paths of the sources' archives */
	const char *what;           /* "other bytes", "another path" */
};

typedef void merge_clash_fn(void *arg, const struct merge_clash *clash);

/* All zero: the defaults.  Borrowed until the plan is freed. */
struct merge_options {
	const char *group;    /* group_name; NULL: the one that all sources have */
	const char *family;   /* gfx_arch_family; NULL: the only arch, or the group */
	bool family_of_first; /* if the first source has one, its instead */
	bool lazy;         /* flush nothing: the sources stay, so it can be made again */
	bool keep;         /* an existing file of that name is an error, not replaced */
	bool skip_faulty;  /* leave out what cannot be read instead of failing */
	bool faults_known; /* the caller has called merge_check_faults */
	bool recode;       /* the archive gets SCHEME, whichever the sources have */
	kpack_compression_t scheme;
	int level; /* compress everything again at this zstd level; 0: what has to be */
	uint32_t
		effort; /* scheme zstd-shared: in place of the level, see kp_writer_options */

	/* Whether to take an entry of source number SOURCE; NULL: take all. */
	bool (*takes)(const void *arg, size_t source, const struct kp_entry_info *entry);
	const void *takes_arg;

	/* Called for each clash, before planning fails; NULL: not called. */
	merge_clash_fn *clash;
	void *clash_arg;
	bool has_prefer; /* the user may name the source that wins: say so if there is a clash */
};

struct merge_stats {
	uint64_t entries; /* of the new archive */
	uint64_t frames;  /* stored objects */
	/* stored bytes, with length words; for shared archives an estimate; if all is compressed
	 * again, of the sources until it is written */
	uint64_t bytes;
	uint64_t duplicates; /* entries that another source has, too */
	uint64_t settled;    /* entries left out because another source is preferred */
	uint64_t shared;     /* objects for which another, equal one is stored */
	uint64_t unused;     /* objects that no entry names */
	/* once written, of a shared archive: blocks copied, and blocks compressed again */
	uint64_t blocks_copied, blocks_encoded;
};

struct merge_plan;

/*
 * Plan the new archive: look at all tables of contents, and decode all entries that are
 * taken, to check them.  The caller frees *OUT, also after an error.
 * INVALID_ARGUMENT: no source, other schemes or groups, a clash (each is reported), or
 * more than one archive can have.  INVALID_FORMAT: a source has faults; each was reported.
 * DECOMPRESSION_FAILED: an entry is damaged; each was reported.  NOT_IMPLEMENTED: a source
 * has a version or fields of blobs that are unknown.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t merge_plan_new(const struct merge_source *sources, size_t n,
			     const struct merge_options *options, struct merge_plan **out,
			     struct kpackx_error *why);
void merge_plan_stats(const struct merge_plan *plan, struct merge_stats *out);

/*
 * Write the archive NAME in DIR, whole and, unless `lazy`, flushed, but without its name,
 * which kp_writer_publish gives it.  The caller closes *OUT, also when publishing failed.
 * Errors of the writer; INVALID_FORMAT: a frame's length word has changed.
 */
kpack_error_t merge_plan_write(struct merge_plan *plan, const char *dir, const char *name,
			       struct kp_writer **out, struct kpackx_error *why);
void merge_plan_free(struct merge_plan *plan); /* NULL is fine */

/* Plan the archive NAME in DIR, write it, and give it its name. */
kpack_error_t merge_write(const struct merge_source *sources, size_t n,
			  const struct merge_options *options, const char *dir,
			  const char *name, struct kpackx_error *why);

/* Report the faults of the sources.  INVALID_FORMAT: there are any, unless SKIP. */
kpack_error_t merge_check_faults(const struct merge_source *sources, size_t n, bool skip,
				 struct kpackx_error *why);

/* --- messages --- */

/* Reports clashes, the first of them one by one; give it as clash_arg. */
struct merge_report {
	size_t clashes; /* all of them */
	json_t *list;   /* the caller's: the reported clashes as JSON; NULL: not wanted */
};
merge_clash_fn merge_report_clash; /* ARG is the report */
/* Report how many clashes were not reported one by one. */
void merge_report_end(const struct merge_report *report);

#endif
