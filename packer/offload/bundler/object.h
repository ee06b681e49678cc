/* SPDX-License-Identifier: MIT */
/*
 * Object mode: entries are sections of the host's object.  llvm-objcopy adds and removes them,
 * so that the bytes are those of clang's tool; where there is none we do it (bundler_elf.h).
 */
#ifndef PACKER_OFFLOAD_BUNDLER_OBJECT_H
#define PACKER_OFFLOAD_BUNDLER_OBJECT_H

#include "bundler.h"

/*
 * Write the host's input with a section for each target's.  With -### the command is reported
 * instead, and the output stays empty.
 */
int bundler_object_add(const struct bundler *b, const struct bundler_input *inputs,
		       struct bundler_output *out);

/* Write OBJECT, which is the file PATH unless that is NULL, without the sections of entries. */
int bundler_object_strip(const struct bundler *b, const struct kp_source *object,
			 const char *path, struct kp_sink *sink);

#endif
