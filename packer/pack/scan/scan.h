/* SPDX-License-Identifier: MIT */
/*
 * Walk a file or a tree: every path in it, the files of kernel databases, and what else has
 * device code, each file classified once.  Symlinks are not followed; of hard links the
 * bytewise first path counts, but in databases each does.
 */
#ifndef PACKER_PACK_SCAN_SCAN_H
#define PACKER_PACK_SCAN_SCAN_H

#include "input.h"

/* The directory of a tree that holds its archives. */

/* Marks the end of a list of links. */
#define SCAN_NO_LINK SIZE_MAX

struct scan_entry {
	char *path; /* to open it */
	/* inside path: below the root; of a file given by itself, its name */
	const char *relative;
	dev_t dev;
	ino_t ino;
	nlink_t nlink;
	mode_t mode;
	uint64_t size;
	size_t first;     /* number of the first path of the same file: mostly its own */
	size_t next_link; /* its next path, or SCAN_NO_LINK */

	/* For the first path of a regular file: */
	struct input *input; /* with device code to pack; or NULL */
	const char *note; /* why it is left alone although it has device code; or NULL */
	char *fault;      /* the note's words, when it cannot be read as what it seems */
	bool converted;   /* that is because it is converted already */

	bool database; /* a file of a kernel database; INPUT says what of it is packed, if it is */
	bool faulty;   /* a library's file, and why it cannot be packed was reported */
	bool leftover; /* a temporary file of a run that was killed */
};

struct scan {
	struct scan_entry *entries; /* by relative path, bytewise, without the root */
	size_t n_entries, entries_cap;
	struct input **inputs; /* with device code, by key, bytewise */
	size_t n_inputs, inputs_cap;

	/*
	 * In a tree: its regular files, with their paths as keys, and the libraries they
	 * belong to.
	 */
	struct file_tree files;
	struct library_found found; /* no objects: nobody was asked */
	size_t *file_entries;       /* per file: number of the entry */

	size_t n_files;  /* regular files looked at */
	size_t n_faults; /* files that could not be read; each was reported */
	bool tolerant;
};

/* What is done with the files of databases. */
enum scan_databases {
	SCAN_FIND,     /* nothing: only the owners are known */
	SCAN_IDENTIFY, /* they are files of databases, not binaries, and are not packed */
	SCAN_PACK,
};

/*
 * Scan ROOT.  PREFIX (may be "") stands before every key.  In a tree the files of LIBRARIES
 * are found, unless that is NULL; DATABASES says what for.  Of the rest fat binaries are
 * taken, and its archives are not looked into; a file given by itself may also be a bare
 * container.  Faults of single files are reported and counted; with TOLERANT, what is in a file
 * of a tree is no such fault: the file is left alone with the reason as its note.  An
 * error is returned when the walk itself fails.
 */
kpack_error_t scan_open(const char *root, const char *prefix, bool tolerant,
			const struct library_set *libraries,
			enum scan_databases databases, struct scan *out,
			struct kpackx_error *why);
void scan_close(struct scan *scan);

/*
 * Add an input of a database: N OBJECTS, which are borrowed, of the file PATH, as a part of what
 * ENTRY is; INPUT may be NULL.  To be ended with scan_sort.
 * INVALID_ARGUMENT: KEY cannot be a key; errors of input_open_database.
 */
kpack_error_t scan_add_database(struct scan *scan, size_t entry, const char *path,
				const char *key, const struct library_object *objects,
				size_t n, struct input **input, struct kpackx_error *why);
/* Let the inputs be in order again. */
void scan_sort(struct scan *scan);

/* The paths of the file whose first is ENTRY, in order, on the heap; NULL: out of memory. */
size_t *scan_links(const struct scan *scan, size_t entry, size_t *n);
/* Let these be the paths of one file from now on. */
void scan_chain(struct scan *scan, const size_t *links, size_t n);

/* Is it the directory of the tree's archives, or something in it? */
bool scan_in_archives(const struct scan_entry *e);

#endif
