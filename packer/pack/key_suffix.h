/* SPDX-License-Identifier: MIT */
/*
 * Suffixes of keys that distinguish the objects of one container for the same
 * architecture.
 */
#ifndef PACKER_PACK_PLAN_KEY_SUFFIX_H
#define PACKER_PACK_PLAN_KEY_SUFFIX_H

#include "core/base/slots.h"
#include "core/base/span.h"

#define KEY_SUFFIX_MAX 64

/* The objects stored from the current container for one architecture.  Zeroed: none. */
struct key_suffixes {
	const char *arch; /* borrowed */
	struct suffix_seen *rows;
	size_t count, cap;
	struct kp_slots slots; /* of the rows */
	size_t n_objects;
};

/*
 * Choose what follows the path in the key of an object of ARCH and KIND that is stored
 * under ORDINAL; equal bytes have equal ordinals.  The first object of an architecture
 * has no suffix; an object that differs from it gets "@kind", further ones of that kind
 * "@kind.2" and so on.  Bytes of the kind other than ASCII letters, digits, "_", "+" and
 * "-" become "_".
 * false: the very same object was already named, so it needs no other entry.
 * The objects of one architecture must come one after another.
 */
bool key_suffix_choose(struct key_suffixes *names, const char *arch, struct kp_span kind,
		       uint32_t ordinal, char out[KEY_SUFFIX_MAX]);

/* Forget all objects: another container begins. */
void key_suffixes_fini(struct key_suffixes *names);

#endif
