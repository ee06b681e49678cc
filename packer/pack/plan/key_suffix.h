/* SPDX-License-Identifier: MIT */
/* How the objects of one container that are for the same architecture are told apart. */
#ifndef PACKER_PACK_PLAN_KEY_SUFFIX_H
#define PACKER_PACK_PLAN_KEY_SUFFIX_H

#include "core/base/errors.h"
#include "core/base/span.h"

#define KEY_SUFFIX_MAX 64

/* What was stored of the container at hand for one architecture.  Zero: nothing. */
struct key_suffixes {
	const char *arch; /* borrowed */
	struct suffix_seen *table;
	size_t count, cap; /* of the table */
	size_t n_objects;
};

/*
 * What follows the path in the key of an object: its architecture, its kind, and where it was
 * stored, which tells equal bytes.  The first object of an architecture has nothing; what
 * differs from it is "@kind", further ones of that kind "@kind.2" and so on.  Bytes of the
 * kind other than ASCII letters, digits, "+" and "-" are "_" there.
 * AGAIN: the very same object was there, so no other entry is needed.
 * Objects of one architecture come one after another.  OUT_OF_MEMORY.
 */
kpack_error_t key_suffix_choose(struct key_suffixes *names, const char *arch,
				struct kp_span kind, uint32_t ordinal,
				char out[KEY_SUFFIX_MAX], bool *again,
				struct kpackx_error *why);

/* Forget all: another container begins. */
void key_suffixes_fini(struct key_suffixes *names);

#endif
