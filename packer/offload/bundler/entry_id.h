/* SPDX-License-Identifier: MIT */
/* Bundle entry IDs, "hip-amdgcn-amd-amdhsa--gfx90a:xnack+": reading, spelling, comparing. */
#ifndef PACKER_OFFLOAD_BUNDLER_ENTRY_ID_H
#define PACKER_OFFLOAD_BUNDLER_ENTRY_ID_H

#include "triple.h"

struct entry_id {
	struct kp_span text; /* as written; borrowed, as are all parts */
	struct kp_span kind;
	struct triple triple;
	struct kp_span
		target;      /* target ID as written, unknown processors too; or empty */
	bool no_environment; /* older compilers wrote none: any will do */
};

/*
 * Take TEXT apart, whichever of the four spellings it has (target.h).
 * false: no kind, or no triple of an architecture, a vendor and a system; only AMD's may lack
 * its vendor before a target ID, "openmp-amdgcn-amdhsa-gfx906".
 */
bool entry_id_parse(struct kp_span text, struct entry_id *out);

/* As bundles are written; the caller frees it; NULL: no memory. */
char *entry_id_normal(const struct entry_id *id);

bool entry_id_is_host(const struct entry_id *id);

/* May entries of that kind be bundled: host, openmp, hip, hipv4? */
bool entry_id_kind_known(const struct entry_id *id);
bool entry_id_is_hip(const struct entry_id *id);

enum entry_verdict {
	ENTRY_SAME, /* the same ID, or another spelling of it */
	ENTRY_SERVES,
	ENTRY_OTHER_KIND, /* or triple; this and what follows: does not serve */
	ENTRY_OTHER_PROCESSOR,
	ENTRY_MORE_FEATURES,
	ENTRY_FEATURE_ANY,   /* the code states a feature that the target leaves open */
	ENTRY_FEATURE_VALUE, /* ... states otherwise */
};

/*
 * Does the entry CODE serve where WANT is asked for?  The same kind (hip and hipv4 are one;
 * with HIP_OPENMP openmp is that, too), a compatible triple, the same processor, and no
 * feature stated that WANT does not state the same.
 */
enum entry_verdict entry_id_compare(const struct entry_id *code,
				    const struct entry_id *want, bool hip_openmp);

static inline bool entry_serves(enum entry_verdict verdict)
{
	return verdict <= ENTRY_SERVES;
}

/* "Compatible: Exact match: " and so on.  Static. */
const char *entry_verdict_text(enum entry_verdict verdict);

/* Are both for one processor, of one kind and triple? */
bool entry_ids_akin(const struct entry_id *a, const struct entry_id *b);

/* Does A, akin to B, state a feature that B leaves open? */
bool entry_id_states_more(const struct entry_id *a, const struct entry_id *b);

#endif
