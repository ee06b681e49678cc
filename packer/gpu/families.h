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
 * Add a family NAME of LIST, architectures separated by commas.  INVALID_ARGUMENT: NAME
 * gives no file name, an item is no target ID, or it is in a family already.
 * OUT_OF_MEMORY.
 */
kpack_error_t families_add(struct families *families, struct kp_span name,
			   const char *list, struct kpackx_error *why);
void families_fini(struct families *families);

/* The family ARCH is in, or NULL. */
const struct family *families_find(const struct families *families, const char *arch);

/* Behind the group in names of ARCH's archives: "_gfx942", "-rdna".  On the heap, or NULL. */
char *families_stem(const struct families *families, const char *arch);

#endif
