/* SPDX-License-Identifier: MIT */
/*
 * Copy into a new archive the entries of an existing one that the run does not replace.
 */
#ifndef PACKER_PACK_ARCHIVES_TAKE_OVER_H
#define PACKER_PACK_ARCHIVES_TAKE_OVER_H

#include "core/archive/archive.h"
#include "volume.h"

/* The names of the entries that a run has added. */
struct entry_names {
	char **items; /* "key\0arch" */
	size_t n, cap;
};

void entry_names_add(struct entry_names *names, struct kp_span key, const char *arch);
/* Call it once, before names are looked up. */
void entry_names_sort(struct entry_names *names);
void entry_names_fini(struct entry_names *names);

/* Whether any entry of OLD is replaced by one of NAMES, which are sorted. */
bool carry_any_replaced(const struct kpack_archive *old, const struct entry_names *names);

/*
 * Add to V the entries of OLD that are not among NAMES, in the order of their frames,
 * which are copied as they are.
 * INVALID_ARGUMENT: OLD has another scheme.  INVALID_FORMAT: OLD has faults.
 */
kpack_error_t carry(struct volume *v, const struct kpack_archive *old,
		    const struct entry_names *names, struct kpackx_error *why);

#endif
