/* SPDX-License-Identifier: MIT */
/* Add sections to ELF objects and remove them with libelf, without other programs. */
#ifndef PACKER_OFFLOAD_BUNDLER_ELF_OBJECT_H
#define PACKER_OFFLOAD_BUNDLER_ELF_OBJECT_H

#include "core/base/file.h"
#include "core/base/sink.h"

struct bundler_section {
	char *name;
	struct kp_source bytes;
};

/*
 * Write OBJECT with N more sections, which linkers leave out (SHF_EXCLUDE).  The existing
 * content keeps its offsets.
 */
kpack_error_t bundler_elf_add(const struct kp_source *object,
			      const struct bundler_section *sections, size_t n,
			      struct kp_sink *sink, struct kpackx_error *why);

/*
 * Write OBJECT without the sections whose names begin with PREFIX.  The other sections
 * keep their numbers: a removed section becomes SHT_NULL.
 */
kpack_error_t bundler_elf_remove(const struct kp_source *object, const char *prefix,
				 struct kp_sink *sink, struct kpackx_error *why);

#endif
