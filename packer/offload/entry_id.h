/* SPDX-License-Identifier: MIT */
/* Parse, spell and compare bundle entry IDs: "hip-amdgcn-amd-amdhsa--gfx90a:xnack+". */
#ifndef PACKER_OFFLOAD_BUNDLER_ENTRY_ID_H
#define PACKER_OFFLOAD_BUNDLER_ENTRY_ID_H

#include "triple.h"

struct entry_id {
	struct kp_span text; /* as written; borrowed, as are all parts */
	struct kp_span kind;
	struct triple triple;
	struct kp_span
		target;      /* target ID as written, unknown processors too; or empty */
	bool no_environment; /* older compilers wrote none: any environment matches */
};

/*
 * Parse TEXT, in any of the four spellings (target.h).
 * false: there is no kind, or the triple lacks its architecture, vendor or system.  Only
 * AMD's triple may lack the vendor before a target ID: "openmp-amdgcn-amdhsa-gfx906".
 */
bool entry_id_parse(struct kp_span text, struct entry_id *out);

/* ID as it is written into bundles; the caller frees it. */
char *entry_id_normal(const struct entry_id *id);

bool entry_id_is_host(const struct entry_id *id);

/* Whether entries of the kind can be bundled: host, openmp, hip, hipv4. */
bool entry_id_kind_known(const struct entry_id *id);
bool entry_id_is_hip(const struct entry_id *id);

enum entry_verdict {
	ENTRY_SAME, /* the same ID, or another spelling of it */
	ENTRY_SERVES,
	ENTRY_OTHER_KIND, /* or triple; from here on the code does not serve the target */
	ENTRY_OTHER_PROCESSOR,
	ENTRY_MORE_FEATURES,
	ENTRY_FEATURE_ANY,   /* the code states a feature that the target leaves open */
	ENTRY_FEATURE_VALUE, /* the code and the target state different values */
};

/*
 * Whether the entry CODE serves the target WANT.  It needs the same kind (hip and hipv4
 * are the same; with HIP_OPENMP so is openmp), a compatible triple, the same processor,
 * and WANT must state every feature that CODE states, with the same value.
 */
enum entry_verdict entry_id_compare(const struct entry_id *code,
				    const struct entry_id *want, bool hip_openmp);

static inline bool entry_serves(enum entry_verdict verdict)
{
	return verdict <= ENTRY_SERVES;
}

/* "Compatible: Exact match: " and so on.  Static. */
const char *entry_verdict_text(enum entry_verdict verdict);

/* Whether A and B have the same kind, triple and processor. */
bool entry_ids_akin(const struct entry_id *a, const struct entry_id *b);

/* Whether A, akin to B, states a feature that B leaves open. */
bool entry_id_states_more(const struct entry_id *a, const struct entry_id *b);

#endif
