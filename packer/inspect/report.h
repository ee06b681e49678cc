/* SPDX-License-Identifier: MIT */
/*
 * What kpack report looks at, and the figures that it shows.
 *
 *	report_input.c    archives, the files next to them, and device code that is not packed yet,
 *	                  whose packed size is measured by packing it into files without a name
 *	report_figures.c  what archives hold in all, by architecture and by library, what is stored
 *	                  more than once, and what one archive for a family of GPUs would save
 *	report.html, report.css, report.js  the page
 *
 * Decoded bytes count for each entry; the stored bytes of an object count for the first of
 * its entries, in order of key and architecture.
 */
#ifndef PACKER_INSPECT_REPORT_H
#define PACKER_INSPECT_REPORT_H

#include "core/archive/archive.h"
#include "core/base/errors.h"
#include "core/target/target.h"
#include "packer/archives/arch_filter.h"

/* ---- what it looks at ---- */

struct report_archive {
	struct kpack_archive *archive;
	char *name; /* path inside the operand: a report shows nothing above it */
	uint64_t bytes;
};

struct report_input {
	struct report_archive *archives;
	size_t count;
	uint64_t archive_bytes;

	/* The other regular files; a file with several links counts once. */
	uint64_t host_files, host_bytes;
	bool trees; /* an operand is not an archive: the two numbers above are known */

	/* Files that were not packed yet: */
	bool measured;
	uint64_t coded_files;    /* files with device code */
	uint64_t coded_bytes;    /* bytes of code in them */
	uint64_t measured_bytes; /* the part of ARCHIVE_BYTES that packing made of them */

	struct kp_faults faults;
};

/*
 * Read N OPERANDS: archives, directories, files with device code.  What cannot be read is
 * reported, is a fault of IN, and is left out.
 */
void report_input_open(int n, char **operands, bool quiet, struct report_input *in);
void report_input_close(struct report_input *in);

/* Report a fault of NAME and keep it for the page. */
void report_input_fault(struct report_input *in, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- the figures ---- */

/* An entry. */
struct report_entry {
	/* key of the binary, without "#n"; or name of a library that opens files by name */
	struct kp_span library;
	struct kp_span arch;
	struct kp_span role; /* for a file of a database */
	uint64_t size;
	uint64_t stored; /* 0 if it shares the bytes of an earlier entry */
	uint32_t object, content;
	uint32_t arch_number; /* of its architecture, in order of names */
	bool database;        /* LIBRARY names a kernel database */
	bool first;           /* the first of its object's entries */
};

/* Stored bytes: an ordinal of an archive. */
struct report_object {
	uint32_t archive, entry; /* the first entry that has it */
	uint32_t entries;
	uint32_t content; /* equal for objects that decode to the same bytes */
	uint64_t size, stored;
	uint8_t hash[16]; /* XXH3-128 of the decoded bytes */
	bool hashed;      /* false: the object counts as equal to no other */
};

/* A sum over entries. */
struct report_row {
	struct kp_span name,
		second; /* SECOND: architecture or role, where rows have one */
	uint64_t objects, entries, decoded, stored;
	uint32_t number; /* before the rows were sorted by what they store */
	bool database;
};

struct report_rows {
	struct report_row *items;
	size_t count;
};

/* Content that several objects have. */
struct report_duplicate {
	const struct report_object *first;
	uint32_t copies;
	uint64_t saving; /* stored bytes of all other objects with it */
};

/* GPUs that could have one archive together. */
struct report_family {
	/* for several families with the same members, their names joined by " / " */
	char name[4 * KP_TARGET_TEXT_MAX];
	const char *kind;  /* "features", "family", ...; for several names the first's */
	uint32_t *members; /* rows of the architectures, ascending */
	size_t n_members;
	uint64_t apart;       /* sum over an archive for each member */
	uint64_t together;    /* one archive, which has every content once */
	uint64_t least, most; /* size of a separate archive: a user's download now */
};

struct report_figures {
	struct report_entry *entries;
	size_t n_entries;
	struct report_object *objects;
	size_t n_objects;
	uint32_t n_contents;

	/* sorted by stored bytes, most first */
	struct report_rows arches, libraries, databases;
	struct report_rows
		cells; /* of each library the architectures; sorted by library */
	const struct report_object **largest; /* by stored bytes, most first */
	struct report_duplicate *duplicates;  /* by saving, most first */
	size_t n_duplicates;
	struct report_family *families; /* by saving, most first */
	size_t n_families;

	uint64_t decoded, stored;
	uint64_t shared;   /* entries that share the bytes of an earlier entry */
	uint64_t saved;    /* bytes that the shared entries would have cost */
	uint64_t saving;   /* bytes that sharing across archives would save */
	uint64_t binaries; /* libraries that are not databases */

	/* With a filter: what its GPUs keep, and what is freed if only that stays. */
	char *gpus; /* their target IDs, with ", " between them; or NULL */
	struct report_row kept, freed;
};

/*
 * Count the contents of IN, which must outlive OUT; FILTER may be empty.  Hashes that archives
 * state are trusted.  An object without a hash is decoded if another one has its size; what
 * cannot be decoded is a fault of IN.  OUT_OF_MEMORY: more entries than can be counted.
 */
kpack_error_t report_figures_open(struct report_input *in, struct arch_filter *filter,
				  bool progress, struct report_figures *out,
				  struct kpackx_error *why);
void report_figures_close(struct report_figures *f);

/* The page: report.html, report.css and report.js, which the Makefile embeds. */
extern const char report_page_html[], report_page_css[], report_page_js[];

#endif
