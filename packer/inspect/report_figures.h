/* SPDX-License-Identifier: MIT */
/*
 * Count what archives hold: in all, by architecture, by library, and duplicates.  The
 * stored bytes of an object count for the first of its entries, in order of key and
 * architecture; its decoded bytes count for each entry.
 */
#ifndef PACKER_HTML_REPORT_FIGURES_H
#define PACKER_HTML_REPORT_FIGURES_H

#include "report_input.h"
#include "packer/archives/arch_filter.h"
#include "packer/cli/progress.h"

/* An entry. */
struct page_item {
	struct kp_span
		library; /* key of the binary, without "#n"; or name of a library */
	struct kp_span arch;
	struct kp_span role;   /* for a file of a database */
	uint64_t size, stored; /* stored: 0 if it shares the bytes of an earlier entry */
	uint32_t object;
	uint32_t arch_row; /* row in arches */
	bool database;     /* LIBRARY names a kernel database */
	bool first;        /* the first of its object's entries */
};

/* Stored bytes: an ordinal of an archive. */
struct page_object {
	uint32_t archive, entry; /* the first entry that has it */
	uint32_t entries;
	uint32_t content; /* equal for objects that decode to the same bytes */
	uint64_t size, stored;
	uint8_t hash[16]; /* XXH3-128 of the decoded bytes */
	bool hashed;      /* false: the object counts as equal to no other */
};

/* A sum over entries. */
struct page_row {
	struct kp_span name,
		second; /* SECOND: architecture or role, if the rows have one */
	uint64_t entries, objects;
	uint64_t decoded, stored;
	bool database;
};

struct page_rows {
	struct page_row *items;
	size_t count;
};

/* Content that several objects have. */
struct page_twice {
	uint32_t first; /* the first object with the content */
	uint32_t copies;
	uint64_t saving; /* stored bytes of all other objects with it */
};

struct page_figures {
	struct page_item *items; /* in order of archive, key, architecture */
	size_t n_items;
	struct page_object *objects;
	size_t n_objects;
	uint32_t n_contents;

	/* sorted by stored bytes, most first */
	struct page_rows arches, libraries, databases;
	struct page_rows cells;   /* sorted by library, then architecture */
	uint32_t *largest;        /* objects, sorted by stored bytes, most first */
	struct page_twice *twice; /* sorted by saving, most first */
	size_t n_twice;

	uint64_t decoded, stored;
	uint64_t shared;     /* entries that share the bytes of an earlier entry */
	uint64_t saved;      /* bytes that the shared entries would have cost */
	uint64_t saving;     /* bytes that sharing across archives would save */
	size_t binaries;     /* libraries that are not databases */
	size_t n_gpu_arches; /* architectures, without the one of code for every GPU */
};

/*
 * Count the contents of IN, which must outlive OUT.  An object without a hash is decoded
 * if another object has the same size; if decoding fails, that is a fault of IN.
 * OUT_OF_MEMORY: more entries than can be counted; the only error.
 */
kpack_error_t page_figures_open(struct page_input *in, bool progress,
				struct page_figures *out, struct kpackx_error *why);
void page_figures_close(struct page_figures *f);

/*
 * The objects that some GPUs need, and the objects that go if only these GPUs are kept.
 */
struct page_choice {
	char *gpus; /* their target IDs, with ", " between them; owned */
	struct page_row kept, freed;
};

/*
 * Sum up the objects that stay and that go (arch_filter_drops).  An object goes if all
 * its entries go.
 */
void page_choice_open(const struct page_figures *f, struct arch_filter *filter,
		      struct page_choice *out);
void page_choice_close(struct page_choice *choice);

/* Add VALUE to *SUM without wrapping: sizes that archives state cannot be trusted. */
void page_add(uint64_t *sum, uint64_t value);

#endif
