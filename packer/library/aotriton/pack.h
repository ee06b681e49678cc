/* SPDX-License-Identifier: MIT */
/* For which GPUs a pack of AOTriton is: "amd-gfx942", "amd-gfx11xx". */
#ifndef PACKER_LIBRARY_AOTRITON_PACK_H
#define PACKER_LIBRARY_AOTRITON_PACK_H

#include "packer/library/library.h"

enum { PACK_MEMBERS_MAX = 32 };

struct aotriton_pack {
	char arches[PACK_MEMBERS_MAX][KP_TARGET_TEXT_MAX]; /* canonical */
	size_t n_arches;                                   /* 0: every GPU */
	char family[KP_TARGET_TEXT_MAX]; /* of several GPUs: their name; or "" */
	bool unknown;                    /* it names GPUs, but none that are known */
};

/*
 * The pack that the directory DIRECTORY is.  "amd-common" and whatever is no "amd-gfx..." is
 * for every GPU.
 */
struct aotriton_pack aotriton_pack(struct kp_span directory);
/* The same of a name without "amd-", as it stands at the end of a file's. */
struct aotriton_pack aotriton_pack_named(struct kp_span name);

/* May a file of one be in the other?  They have a GPU in common, or one is for every GPU. */
bool aotriton_packs_agree(const struct aotriton_pack *a, const struct aotriton_pack *b);

#endif
