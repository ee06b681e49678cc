/* SPDX-License-Identifier: MIT */
/* Open the operands ARCHIVE|DIR... as archives in order; filter them by --arch LIST. */
#ifndef PACKER_ARCHIVES_OPERANDS_H
#define PACKER_ARCHIVES_OPERANDS_H

#include <stddef.h>
#include "core/archive/archive.h"
#include "core/target/target.h"
#include "packer/cli/options.h"

struct archives {
	struct kpack_archive **items;
	size_t count;
	bool failed; /* an archive could not be opened; it was reported */
};

/*
 * Call FN with the path of every archive of the operands, in order: for a file, its own
 * path; for a directory, its *.kpack in order of names.  A missing operand is reported
 * and makes the result false; an empty directory is only reported.
 */
bool archives_paths(int n, char **operands, void (*fn)(const char *path, void *arg),
		    void *arg);

/* Open all archives.  One that cannot be opened is reported and left out. */
void archives_open(struct archives *set, int n, char **operands);
void archives_close(struct archives *set);

/* Report the entries that were refused.  Returns whether there are any. */
bool archives_refused(const struct kpack_archive *a);

/* The targets to select.  Without targets, everything is selected. */
struct arch_filter {
	struct kp_target *targets;
	bool *matched; /* per target: whether it selected anything */
	size_t count;
};

/* Add the comma-separated LIST; false: it is invalid, and WHY has the reason. */
bool arch_filter_add(struct arch_filter *filter, const char *list,
		     struct kpackx_error *why);
/* The same for an option (OPTION_TAKE) whose argument is the list; SLOT is the filter. */
int arch_filter_take(const struct options *o, const struct option_help *row, void *slot);
/* Whether FILTER selects ARCH.  Also remembers which targets matched. */
bool arch_filter_match(struct arch_filter *filter, struct kp_span arch);
/* Match every entry of the archives, then warn of targets that selected nothing. */
void arch_filter_warn(struct arch_filter *filter, const struct archives *set);
/* Warn of targets that selected nothing so far; WHAT is the message's noun: "entry". */
void arch_filter_unmatched(const struct arch_filter *filter, const char *what);
void arch_filter_fini(struct arch_filter *filter);

/*
 * Pass the decoded bytes of an entry to SINK, in pieces.  They are checked against the
 * xxh3 if the entry has one.  A chunked entry is decoded chunk by chunk: SINK then gets
 * bytes before the whole was checked.  To stop, SINK fills WHY and returns an error.
 */
kpack_error_t archive_decode(const struct kpack_archive *a, size_t entry,
			     kpack_error_t (*sink)(const void *data, size_t size,
						   void *arg, struct kpackx_error *why),
			     void *arg, struct kpackx_error *why);

#endif
