/* SPDX-License-Identifier: MIT */
/*
 * Copy into a new archive the entries of an existing one that the run does not replace.
 */
#ifndef PACKER_PACK_ARCHIVES_TAKE_OVER_H
#define PACKER_PACK_ARCHIVES_TAKE_OVER_H

#include "core/archive/archive.h"
#include "packer/archives/volume.h"

/* The names of the entries that a run has added. */
struct entry_names {
	char **items; /* "key\0arch" */
	size_t n, cap;
};

void entry_names_add(struct entry_names *names, struct kp_span key, const char *arch);
/* Call it once, before names are looked up. */
void entry_names_sort(struct entry_names *names);
void entry_names_fini(struct entry_names *names);

/*
 * The entries that are not taken over: those in NAMES, which are sorted, and obsolete
 * ones.
 */
struct carry_choice {
	const struct entry_names *names;
	bool (*obsolete)(const void *arg, const struct kpack_archive *old, size_t entry);
	const void *arg;
};

/* Whether any entry of OLD does not stay. */
bool carry_any_left(const struct kpack_archive *old, const struct carry_choice *choice);

/*
 * Add to V the entries of OLD that stay, in the order of their frames, which are copied as
 * they are; the objects of a shared archive are decoded, and compressed again.
 * INVALID_ARGUMENT: OLD has another scheme.  INVALID_FORMAT: OLD has faults.
 * DECOMPRESSION_FAILED: OLD is damaged; each entry was reported.
 */
kpack_error_t carry(struct volume *v, const struct kpack_archive *old,
		    const struct carry_choice *choice, struct kpackx_error *why);

#endif
