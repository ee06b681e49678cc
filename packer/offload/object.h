/* SPDX-License-Identifier: MIT */
/*
 * Object mode: entries are sections of the host's object.  llvm-objcopy adds and removes
 * them, so that the bytes are those of clang's tool; without llvm-objcopy, elf_object.h
 * does.
 */
#ifndef PACKER_OFFLOAD_BUNDLER_OBJECT_H
#define PACKER_OFFLOAD_BUNDLER_OBJECT_H

#include "bundler.h"

/*
 * Write the host's input with a section for each target's input.  With -### print the
 * command instead; the output stays empty.
 */
int bundler_object_add(const struct bundler *b, const struct bundler_input *inputs,
		       struct bundler_output *out);

/* Write OBJECT without the sections of entries.  PATH is the file of OBJECT, or NULL. */
int bundler_object_strip(const struct bundler *b, const struct kp_source *object,
			 const char *path, struct kp_sink *sink);

#endif
