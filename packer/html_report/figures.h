/* SPDX-License-Identifier: MIT */
/*
 * What archives hold, counted: in all, by architecture, by library, and what is there
 * twice.  The stored bytes of an object count for the first of its entries, in order of key
 * and architecture; decoded bytes count for each.
 */
#ifndef PACKER_HTML_REPORT_FIGURES_H
#define PACKER_HTML_REPORT_FIGURES_H

#include "input.h"
#include "packer/cli/progress.h"

/* An entry. */
struct page_item {
	struct kp_span
		library; /* key of the binary, without "#n"; or name of a library */
	struct kp_span arch;
	struct kp_span role;   /* of a file of a database */
	uint64_t size, stored; /* stored: 0 where it shares the bytes of an earlier one */
	uint32_t object;
	uint32_t arch_row; /* in arches */
	bool database;     /* LIBRARY is the name of one */
	bool first;        /* of its object's entries */
};

/* Bytes that are stored: an ordinal of an archive. */
struct page_object {
	uint32_t archive, entry; /* the first entry that has it */
	uint32_t entries;
	uint32_t content; /* the same for objects that decode to the same */
	uint64_t size, stored;
	uint8_t hash[16]; /* XXH3-128 of the decoded bytes */
	bool hashed;      /* false: equal to none */
};

/* A sum over entries. */
struct page_row {
	struct kp_span name,
		second; /* SECOND: architecture or role, where there is one */
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
	uint32_t first; /* the first object with it */
	uint32_t copies;
	uint64_t saving; /* stored bytes of all others */
};

struct page_figures {
	struct page_item *items; /* in order of archive, key, architecture */
	size_t n_items;
	struct page_object *objects;
	size_t n_objects;
	uint32_t n_contents;

	struct page_rows arches, libraries, databases; /* by stored bytes, most first */
	struct page_rows cells;                        /* by library, then architecture */
	uint32_t *largest;        /* objects by stored bytes, most first */
	struct page_twice *twice; /* by saving, most first */
	size_t n_twice;

	uint64_t decoded, stored;
	uint64_t shared;     /* entries that share the bytes of an earlier one */
	uint64_t saved;      /* bytes those would have cost */
	uint64_t saving;     /* bytes that sharing across archives would save */
	size_t binaries;     /* libraries that are no databases */
	size_t n_gpu_arches; /* architectures, without that of what suits every GPU */
};

/*
 * Count what IN has, which must outlive OUT.  Objects without a hash are decoded where
 * another has the same size; one that cannot be is a fault, which IN gets.
 * OUT_OF_MEMORY is the only error.
 */
kpack_error_t page_figures_open(struct page_input *in, bool progress,
				struct page_figures *out, struct kpackx_error *why);
void page_figures_close(struct page_figures *f);

/* Add without wrapping: sizes that archives state are not to be believed. */
void page_add(uint64_t *sum, uint64_t value);

#endif
