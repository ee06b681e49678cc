/* SPDX-License-Identifier: MIT */
/*
 * Scan a file or a tree: list every path in it, the files of kernel databases, and other
 * files with device code.  Each file is classified once.  Symbolic links are not
 * followed.  The bytewise first of a file's hard links counts, but in databases each path
 * does.
 */
#ifndef PACKER_SCAN_SCAN_H
#define PACKER_SCAN_SCAN_H

#include "core/archive/naming.h"
#include "input.h"
#include "packer/files/identity.h"
#include "packer/gpu/code_table.h"

/* What it means that device code is left alone. */
enum scan_left {
	SCAN_LEFT_AS_MEANT,    /* nobody expects otherwise, or it may be no code at all */
	SCAN_LEFT_UNSUPPORTED, /* the output has code that should not be in it: a warning */
	SCAN_LEFT_DAMAGED,     /* so it has, because the code cannot be read: an error */
};

/* Where packing in place keeps what undoing it needs, below the root: packer/pack/undo.h. */
#define KP_UNDO_DIR KP_ARCHIVES_DIR "/undo"

/* Marks the end of a list of links. */
#define SCAN_NO_LINK SIZE_MAX

struct scan_entry {
	char *path; /* to open it */
	/* inside `path`: the path below the root; of a file given by itself, its name */
	const char *relative;
	/*
	 * Inside `relative`: the path in the directory of the tree's archives, "" for the
	 * directory itself; NULL: it is elsewhere.
	 */
	const char *archive;
	struct file_identity id;
	mode_t mode;
	size_t first;     /* number of the first path of the same file; usually its own */
	size_t next_link; /* the file's next path, or SCAN_NO_LINK */

	/* For the first path of a regular file: */
	struct input *input; /* with device code to pack; or NULL */
	/* why it, or some of its code, is left alone although it has device code; or NULL */
	const char *note;
	char *fault; /* the note's text, when it cannot be read as what it seems */
	enum scan_left left;
	bool converted; /* it is left alone because it is already converted */

	bool database; /* a kernel database's file; if packed, `input` lists its images */
	bool faulty;   /* a library's file that cannot be packed, as was reported */
	bool leftover; /* a temporary file of a run that was killed */
};

/* The device code that is taken of files other than kernel databases. */
enum scan_code {
	SCAN_ALL_CODE, /* any, CUDA's sections of a host binary too */
	/*
	 * Code that packing takes out of files.  Bad content of a file in a tree is no fault:
	 * the file is left alone, with the reason as its note.
	 */
	SCAN_CONVERTIBLE,
	SCAN_TO_MEASURE, /* as SCAN_ALL_CODE, with faults as for SCAN_CONVERTIBLE */
};

/* Files that need no look: an earlier run has seen them, and they are the same. */
struct scan_skip {
	/* Whether the file at PATH, below the root, is one. */
	bool (*known)(const void *arg, const char *path, const struct file_identity *id);
	/* Whether what the directory PATH shows is left out; NULL: nothing is. */
	bool (*covered)(const void *arg, const char *path);
	const void *arg;
};

struct scan {
	struct file_identity root;
	struct scan_skip skip; /* set by the caller; zeros: every file is looked at */
	bool progress; /* set by the caller: files that are looked at have a bar */
	struct scan_entry *entries; /* by relative path, bytewise, without the root */
	size_t n_entries, entries_cap;
	struct input **inputs; /* with device code, by key, bytewise */
	size_t n_inputs, inputs_cap;

	/*
	 * In a tree: its regular files, with their keys as paths, and the libraries they
	 * belong to.
	 */
	struct file_tree files;
	struct library_found found; /* no `objects`: no library was asked */
	size_t *file_entries;       /* per file: number of the entry */

	size_t n_files;  /* regular files looked at */
	size_t n_faults; /* files that could not be read; each was reported */
	enum scan_code code;
	const char
		*archives_dir; /* the directory of the tree's archives, below the root */
};

/* How files of databases are treated. */
enum scan_databases {
	SCAN_FIND,     /* only find their owners */
	SCAN_IDENTIFY, /* treat them as database files, not binaries; do not pack them */
	SCAN_PACK,
};

/*
 * Scan ROOT.  PREFIX (may be "") precedes every key.  In a tree the files of LIBRARIES
 * are found, unless that is NULL, and treated as DATABASES says.  Among the other files,
 * fat binaries are taken; the tree's own archives are not inspected.  A file given by
 * itself may also be a bare container.
 * CODE says which code is taken.  The caller zeroes OUT, but may set `progress`, and `skip`: a known
 * file is listed, and taken for one without device code unless it is a database's; and
 * `archives_dir`, which is borrowed; NULL: KP_ARCHIVES_DIR.
 * Faults of single files are reported and counted.  An error is returned when the walk
 * itself fails.
 */
kpack_error_t scan_open(const char *root, const char *prefix, enum scan_code code,
			const struct library_set *libraries,
			enum scan_databases databases, struct scan *out,
			struct kpackx_error *why);
void scan_close(struct scan *scan);

/* Find the entry whose path below the root is PATH; false: no entry has it. */
bool scan_find(const struct scan *scan, struct kp_span path, size_t *entry);

/* --- what was found ------------------------------------------------------------------ */

/*
 * Report what is left alone: damage as errors; if QUIET, only damage and what is not
 * supported.
 */
void scan_report_left(const struct scan *scan, bool quiet);
/* Whether a file is left alone because it is damaged: a run that does the rest fails. */
bool scan_damaged(const struct scan *scan);

/*
 * Whether ENTRY looks as if it were for one GPU, but belongs to no known library: a regular file
 * of a tree in which libraries were looked for, that is neither packed nor converted, nor short text.  OUT,
 * unless it is NULL, gets the GPU, as text.
 */
bool scan_unrecognised(const struct scan *scan, size_t entry, char *out);
/* Report each as a note; after the first 20, only how many more there are. */
void scan_report_unrecognised(const struct scan *scan);

/*
 * Add what was found to TABLE: code that can be packed, kernel databases' files for single GPUs, and
 * the archives that stand in the tree.
 */
void scan_count_code(const struct scan *scan, struct code_table *table);

/* --- further inputs ------------------------------------------------------------------ */

/* A file of a database. */
struct scan_database {
	const char *path, *key;
	const struct library_object *objects; /* borrowed by the input */
	size_t n_objects;
};

/*
 * Add D as an input that is a part of ENTRY.  INPUT may be NULL.  Call scan_sort after
 * the last one.
 * INVALID_ARGUMENT: its key cannot be a key.  Errors of input_open_database.
 */
kpack_error_t scan_add_database(struct scan *scan, size_t entry,
				const struct scan_database *d, struct input **input,
				struct kpackx_error *why);
/*
 * Look for device code in FILE (a number in `files`) of a database that was only
 * identified.  If there is some, it becomes the input of the file's entry.  Content that is
 * damaged is no fault.
 */
kpack_error_t scan_add_code(struct scan *scan, size_t file, struct kpackx_error *why);
/*
 * Make the regular file of ENTRY, which has no input, an input without images, so that it
 * can be replaced, whatever it is.
 */
kpack_error_t scan_add_plain(struct scan *scan, size_t entry, struct kpackx_error *why);
/* Sort the inputs by key again. */
void scan_sort(struct scan *scan);

/*
 * Store rocFFT's kernel caches otherwise.  DATABASES: a database per GPU instead of every kernel
 * cache that is for all GPUs.  ROWS: also the single kernels of every kernel cache.  PARTS, which
 * is zeroed, must outlive the scan.  Errors name the file.
 */
struct cache_files;
kpack_error_t rocfft_caches_split(struct scan *scan, bool databases, bool rows,
				  struct cache_files *parts, struct kpackx_error *why);
/*
 * Whether PATH, which is not stored, is a kernel cache that SCAN stores in the other
 * form: the whole cache where SCAN splits it, or the cache of one GPU where SCAN keeps it
 * whole.
 */
bool rocfft_cache_in_other_form(const struct scan *scan, const char *path);

/* --- hard links ---------------------------------------------------------------------- */

/*
 * Returns the numbers of all paths of the file whose first path is ENTRY, in order, on
 * the heap.
 */
size_t *scan_links(const struct scan *scan, size_t entry, size_t *n);
/* Make these N entries, which are in order, the paths of one file. */
void scan_chain(struct scan *scan, const size_t *links, size_t n);
/* Chain those of these N entries that are paths of one file. */
void scan_chain_files(struct scan *scan, const size_t *entries, size_t n);

#endif
