/* SPDX-License-Identifier: MIT */
/*
 * clang-offload-packager, which newer LLVM calls llvm-offload-binary: its command line,
 * read, and its two modes.  Both return an exit status; on failure they have printed the
 * message.
 */
#ifndef PACKER_OFFLOAD_PACKAGER_PACKAGER_H
#define PACKER_OFFLOAD_PACKAGER_PACKAGER_H

#include "core/format/offload_binary.h"
#include "string_map.h"
#include "options.h"

struct packager {
	const struct llvm_tool *tool;
	const char *input, *output; /* one of the two is NULL */
	const char *const *images;  /* the values of --image */
	size_t n_images;
	bool archive;
	struct kp_offload_form form;
	enum llvm_hash hash;
};

/* Make an offload binary of the files that --image names. */
int packager_pack(const struct packager *p);

/* Write the images of the input that --image selects; without --image, all of them. */
int packager_extract(const struct packager *p);

/* Print "error: 'FILE': TEXT" on stderr; returns 1. */
int packager_fail(const struct packager *p, const char *file,
		  const struct kpackx_error *why);

#endif
