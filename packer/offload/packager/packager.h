/* SPDX-License-Identifier: MIT */
/*
 * clang-offload-packager, which newer LLVM calls llvm-offload-binary: what its command line asks
 * for, and the two ways it works.  Both return an exit status, after the message that goes
 * with it.
 */
#ifndef PACKER_OFFLOAD_PACKAGER_PACKAGER_H
#define PACKER_OFFLOAD_PACKAGER_PACKAGER_H

#include "core/format/llvm/offload_binary.h"
#include "packer/offload/llvm/hash.h"
#include "packer/offload/llvm/options.h"

struct packager {
	const struct llvm_tool *tool;
	const char *input, *output; /* one of both is NULL */
	const char *const *images;  /* what --image says */
	size_t n_images;
	bool archive;
	struct kp_offload_form form;
	enum llvm_hash hash;
};

/* Make an offload binary of the files that the images name. */
int packager_pack(const struct packager *p);

/* Write the images of the input that are asked for; all when none is. */
int packager_extract(const struct packager *p);

/* "error: 'FILE': TEXT" on stderr; returns 1. */
int packager_fail(const struct packager *p, const char *file,
		  const struct kpackx_error *why);

#endif
