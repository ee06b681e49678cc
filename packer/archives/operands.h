/* SPDX-License-Identifier: MIT */
/* Operands ARCHIVE|DIR... as opened archives in order, and --arch LIST as a filter. */
#ifndef PACKER_ARCHIVES_OPERANDS_H
#define PACKER_ARCHIVES_OPERANDS_H

#include <stddef.h>
#include "core/archive/archive.h"
#include "core/target/target.h"

struct archives {
	struct kpack_archive **items;
	size_t count;
	bool failed; /* something could not be opened; it was reported */
};

/*
 * Call FN with the path of every archive of the operands, in order: a file is
 * itself, a directory its *.kpack by name.  A source that is missing is reported and
 * makes the result false; an empty directory is only reported.
 */
bool archives_paths(int n, char **operands, void (*fn)(const char *path, void *arg),
		    void *arg);

/* Archives stay open, each with its descriptor: let this process have as many as it may. */
void archives_allow_many(void);

/* Open them all. An archive that cannot be opened is reported and left out. */
void archives_open(struct archives *set, int n, char **operands);
void archives_close(struct archives *set);

/* Tell the entries that were refused.  Returns true when there is any. */
bool archives_refused(const struct kpack_archive *a);

/* Targets to choose.  Without any, all are chosen. */
struct arch_filter {
	struct kp_target *targets;
	bool *matched; /* per target: did it choose anything? */
	size_t count;
};

/* Add LIST, separated by commas; false, with the reason in words, when it is wrong. */
bool arch_filter_add(struct arch_filter *filter, const char *list,
		     struct kpackx_error *why);
/* Does it choose ARCH?  Also remembers which targets matched. */
bool arch_filter_match(struct arch_filter *filter, struct kp_span arch);
/* Look at every entry of the archives, then warn of targets that chose nothing. */
void arch_filter_warn(struct arch_filter *filter, const struct archives *set);
/* Warn of targets that chose nothing so far; WHAT is what they are for: "entry". */
void arch_filter_unmatched(const struct arch_filter *filter, const char *what);
void arch_filter_fini(struct arch_filter *filter);

/*
 * The decoded bytes of an entry, in pieces, to SINK; checked against the xxh3 where
 * there is one.  A chunked entry is decoded chunk by chunk: then bytes are handed out
 * before the end was checked.  SINK fills WHY and returns an error to stop.
 */
kpack_error_t archive_decode(const struct kpack_archive *a, size_t entry,
			     kpack_error_t (*sink)(const void *data, size_t size,
						   void *arg, struct kpackx_error *why),
			     void *arg, struct kpackx_error *why);

#endif
