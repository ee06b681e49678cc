/* SPDX-License-Identifier: MIT */
/* The GPUs that an AOTriton pack is for: "amd-gfx942", "amd-gfx11xx". */
#ifndef PACKER_LIBRARY_AOTRITON_PACK_H
#define PACKER_LIBRARY_AOTRITON_PACK_H

#include "library.h"

enum { PACK_MEMBERS_MAX = 32 };

struct aotriton_pack {
	char arches[PACK_MEMBERS_MAX][KP_TARGET_TEXT_MAX]; /* canonical */
	size_t n_arches;                                   /* 0: every GPU */
	char family[KP_TARGET_TEXT_MAX]; /* name of a family of GPUs; or "" */
	bool unknown;                    /* it names GPUs, but none that kpack knows */
};

/*
 * The pack with the directory name DIRECTORY.  "amd-common", and any name other than
 * "amd-gfx...", is for every GPU.
 */
struct aotriton_pack aotriton_pack(struct kp_span directory);
/* As aotriton_pack, for a name without "amd-", as at the end of a file name. */
struct aotriton_pack aotriton_pack_named(struct kp_span name);

/* Whether a file of A may be in B: they share a GPU, or one of them is for every GPU. */
bool aotriton_packs_agree(const struct aotriton_pack *a, const struct aotriton_pack *b);

#endif
