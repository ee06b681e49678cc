/* SPDX-License-Identifier: MIT */
/* Architectures that go into one archive together. */
#ifndef PACKER_GPU_FAMILIES_H
#define PACKER_GPU_FAMILIES_H

#include "core/base/errors.h"
#include "core/base/span.h"

struct family {
	char *name;
	char **arches; /* canonical */
	size_t n_arches;
};

struct families {
	struct family *items;
	size_t count;
};

/*
 * Add a family NAME of the architectures in the comma-separated LIST.  INVALID_ARGUMENT:
 * NAME cannot be part of a file name, or an item is not a target ID, or is in a family
 * already.
 */
kpack_error_t families_add(struct families *families, struct kp_span name,
			   const char *list, struct kpackx_error *why);
void families_fini(struct families *families);

/* The family that contains ARCH, or NULL. */
const struct family *families_find(const struct families *families, const char *arch);

/* The part after the group in names of ARCH's archives: "_gfx942", "-rdna".  On the heap. */
char *families_stem(const struct families *families, const char *arch);

#endif
